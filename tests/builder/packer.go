package builder

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Packer makes frames of plain packets in bulk: it builds one template for each combination of headers and then
// only writes the fields that differ. A frame holds headers (and the DNS or NTP message that carries an AppID), no
// payload. The zero value is ready; it is not safe for concurrent use.
type Packer struct {
	// Checksums fills in IPv4, TCP, UDP and ICMP checksums as if the payload were zeros.
	Checksums bool

	templates [shapes]*template
}

// The headers that a template may have; their product is the number of templates.
const (
	shapeV6 = 1 << iota
	shapeVLAN
	shapeTSOpt
	shapeTransport // two bits: none, TCP, UDP, echo
	_
	shapeApp // two bits: none, DNS, NTP
	_
	shapes
)

// template is a frame with the places of the fields in it.
type template struct {
	data    []byte
	l3, l4  int // offsets
	headers int // bytes up to the payload
	v6      bool
	proto   uint8
}

// Frame makes the frame of p, whose bytes are valid until the next call with the same kind of packet. It needs
// p.IP; VLAN, TCP, TSOpt, UDP, ICMP, AppRequest and AppResponse are honoured, p.Len is not used. Fragments, tunnels
// and aggregates need a Spec.
func (k *Packer) Frame(p *packet.Packet, f *packet.Frame) error {
	if p.Valid&(packet.Fragment|packet.Tunnel|packet.Aggregate) != 0 || !p.Has(packet.IP) {
		return fmt.Errorf("pack packet with valid %#x: %w", uint16(p.Valid), ErrSpec)
	}
	t, err := k.template(p)
	if err != nil {
		return err
	}
	if t.v6 && t.headers+int(p.Payload)-t.l4 > math.MaxUint16 {
		return fmt.Errorf("pack IPv6 packet with %d bytes of payload, a jumbogram needs a Spec: %w", p.Payload, ErrSpec)
	}
	t.patch(p)
	if k.Checksums {
		t.sum(p)
	}
	*f = packet.Frame{
		Time: p.Time, Data: t.data, Len: t.headers + int(p.Payload), Interface: p.Interface,
		Direction: direction(p),
	}
	return nil
}

// Len is the length on the wire of the frame that Frame would make.
func (k *Packer) Len(p *packet.Packet) (int, error) {
	t, err := k.template(p)
	if err != nil {
		return 0, err
	}
	return t.headers + int(p.Payload), nil
}

func direction(p *packet.Packet) packet.Direction {
	if p.Has(packet.IsEgress) {
		return packet.Egress
	}
	return packet.Ingress
}

func (k *Packer) template(p *packet.Packet) (*template, error) {
	shape := shapeOf(p)
	if t := k.templates[shape]; t != nil && (shape&(3*shapeTransport) != 0 || t.proto == p.Proto) {
		return t, nil
	}
	t, err := newTemplate(p, shape)
	if err != nil {
		return nil, err
	}
	k.templates[shape] = t
	return t, nil
}

func shapeOf(p *packet.Packet) int {
	shape := 0
	if !p.Src.Is4() {
		shape |= shapeV6
	}
	if p.Has(packet.VLAN) {
		shape |= shapeVLAN
	}
	switch {
	case p.Has(packet.TCP):
		shape |= shapeTransport
		if p.Has(packet.TSOpt) {
			shape |= shapeTSOpt
		}
	case p.Has(packet.UDP):
		shape |= 2*shapeTransport | appShape(p)
	case p.Has(packet.ICMP):
		shape |= 3 * shapeTransport
	}
	return shape
}

func appShape(p *packet.Packet) int {
	switch {
	case p.Valid&(packet.AppRequest|packet.AppResponse) == 0:
		return 0
	case p.SrcPort == 123 || p.DstPort == 123:
		return 2 * shapeApp
	}
	return shapeApp
}

func newTemplate(p *packet.Packet, shape int) (*template, error) {
	s := Spec{
		IP: IP{Src: p.Src, Dst: p.Dst}, Proto: p.Proto,
		SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
	}
	if p.Has(packet.VLAN) {
		s.VLANs = []VLAN{{ID: p.VLAN}}
	}
	t := &template{v6: !p.Src.Is4(), l3: 14 + 4*len(s.VLANs)}
	t.l4 = t.l3 + 20
	if t.v6 {
		t.l4 = t.l3 + 40
	}
	t.headers = t.l4 + transportSpec(p, shape, &s)
	f, err := Build(&s)
	if err != nil {
		return nil, err
	}
	t.data = f.Data
	t.proto = s.Proto
	return t, nil
}

// transportSpec fills in the transport and returns the length of its header.
func transportSpec(p *packet.Packet, shape int, s *Spec) int {
	switch {
	case p.Has(packet.TCP) && p.Has(packet.TSOpt):
		s.TCP = &TCP{Window: 65535, Options: Timestamps(0, 0)}
		return 32
	case p.Has(packet.TCP):
		s.TCP = &TCP{Window: 65535}
		return 20
	case p.Has(packet.UDP):
		s.UDP = &UDP{}
		switch {
		case shape&(2*shapeApp) != 0:
			s.Payload = NTP(0, false)
		case shape&shapeApp != 0:
			s.Payload = DNS(0, false)
		}
		return 8
	case p.Has(packet.ICMP):
		s.Echo = &Echo{}
		return 8
	}
	return 0
}

// patch writes what differs between packets of one template.
func (t *template) patch(p *packet.Packet) {
	if p.Has(packet.VLAN) {
		binary.BigEndian.PutUint16(t.data[14:], p.VLAN)
	}
	t.patchIP(p)
	l4 := t.data[t.l4:]
	switch {
	case p.Has(packet.TCP):
		patchTCP(l4, p)
	case p.Has(packet.UDP):
		patchUDP(l4, p)
	case p.Has(packet.ICMP):
		l4[0] = p.ICMPType
		binary.BigEndian.PutUint16(l4[4:], p.SrcPort)
		binary.BigEndian.PutUint16(l4[6:], uint16(p.Seq))
	}
}

func (t *template) patchIP(p *packet.Packet) {
	ip := t.data[t.l3:]
	size := t.headers + int(p.Payload) - t.l3
	if t.v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(size-40))
		putAddr16(ip[8:], p.Src)
		putAddr16(ip[24:], p.Dst)
		return
	}
	if size > 0xffff {
		size = 0 // as BIG TCP does
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(size))
	binary.BigEndian.PutUint16(ip[4:], p.IPID)
	putAddr4(ip[12:], p.Src)
	putAddr4(ip[16:], p.Dst)
}

func putAddr4(b []byte, a netip.Addr) {
	v := a.As4()
	copy(b, v[:])
}

func putAddr16(b []byte, a netip.Addr) {
	v := a.As16()
	copy(b, v[:])
}

func patchTCP(l4 []byte, p *packet.Packet) {
	binary.BigEndian.PutUint16(l4, p.SrcPort)
	binary.BigEndian.PutUint16(l4[2:], p.DstPort)
	binary.BigEndian.PutUint32(l4[4:], p.Seq)
	binary.BigEndian.PutUint32(l4[8:], p.Ack)
	l4[13] = p.TCPFlags
	if p.Has(packet.TSOpt) {
		binary.BigEndian.PutUint32(l4[24:], p.TSVal)
		binary.BigEndian.PutUint32(l4[28:], p.TSEcr)
	}
}

func patchUDP(l4 []byte, p *packet.Packet) {
	binary.BigEndian.PutUint16(l4, p.SrcPort)
	binary.BigEndian.PutUint16(l4[2:], p.DstPort)
	binary.BigEndian.PutUint16(l4[4:], uint16(8+p.Payload))
	response := p.Has(packet.AppResponse)
	switch msg := l4[8:]; {
	case p.Valid&(packet.AppRequest|packet.AppResponse) == 0:
	case p.SrcPort == 123 || p.DstPort == 123:
		copy(msg, NTP(p.AppID, response))
	default:
		binary.BigEndian.PutUint16(msg, uint16(p.AppID))
		msg[2] = msg[2]&0x7f | boolBit(response)<<7
	}
}

func boolBit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// sum computes the checksums of a patched template.
func (t *template) sum(p *packet.Packet) {
	if !t.v6 {
		ip := t.data[t.l3:t.l4]
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], checksum(ip, 0))
	}
	field, proto := sumField(p)
	if field == 0 {
		return
	}
	l4 := t.data[t.l4:]
	binary.BigEndian.PutUint16(l4[field:], 0)
	value := checksum(l4, pseudo(p.Src, p.Dst, proto, t.headers-t.l4+int(p.Payload)))
	if value == 0 && proto == ProtoUDP {
		value = 0xffff
	}
	binary.BigEndian.PutUint16(l4[field:], value)
}

// sumField is the offset of the transport's checksum, 0 if it has none, and the protocol in the pseudo header.
func sumField(p *packet.Packet) (field int, proto uint8) {
	switch {
	case p.Has(packet.TCP):
		return 16, ProtoTCP
	case p.Has(packet.UDP):
		return 6, ProtoUDP
	case p.Has(packet.ICMP) && p.Src.Is4():
		return 2, ProtoICMP
	case p.Has(packet.ICMP):
		return 2, ProtoICMPv6
	}
	return 0, 0
}
