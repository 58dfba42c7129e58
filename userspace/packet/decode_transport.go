package packet

import (
	"encoding/binary"

	"github.com/google/gopacket/layers"
)

const (
	tcpHeader  = 20 // bytes without options
	udpHeader  = 8
	icmpHeader = 8 // of an echo
	dnsHeader  = 12
	ntpMessage = 48
	rtpHeader  = 12
)

const (
	portDNS = 53
	portNTP = 123
)

const (
	tcpOptionsSmallest = 12 // bytes of options below which there is no room for a padded timestamp option
	tcpTimestampOption = 10 // bytes
)

func (d *Decoder) transport(p *Packet) Reason {
	proto, is4 := layers.IPProtocol(p.Proto), p.Src.Is4()
	switch {
	case proto == layers.IPProtocolTCP:
		return d.readTCP(p)
	case proto == layers.IPProtocolUDP:
		return d.readUDP(p)
	case proto == layers.IPProtocolICMPv4 && is4:
		return d.readICMP4(p)
	case proto == layers.IPProtocolICMPv6 && !is4:
		return d.readICMP6(p)
	}
	return NoTransport
}

// payload is how long the payload behind a transport header at the cursor is: what the IP header promises, but no byte that
// was not on the wire. A packet that is shorter than its IP header says is dropped by its receiver.
func (d *Decoder) payload(header int) uint32 {
	return uint32(max(0, min(d.l4len-header, d.wire-d.off-header)))
}

func (d *Decoder) readTCP(p *Packet) Reason {
	if len(d.data) < tcpHeader {
		return Truncated
	}
	// An error is about the header's length or about options; both are looked at here.
	_ = d.tcp.DecodeFromBytes(d.data, feedback)
	header := int(d.tcp.DataOffset) * 4
	if header < tcpHeader || header > d.l4len {
		return BadTransport
	}
	p.Valid |= Ports | TCP
	p.SrcPort, p.DstPort = uint16(d.tcp.SrcPort), uint16(d.tcp.DstPort)
	p.Seq, p.Ack = d.tcp.Seq, d.tcp.Ack
	p.TCPFlags = tcpFlags(&d.tcp)
	p.Payload = d.payload(header)
	p.timestamps(d.data[tcpHeader:max(min(header, len(d.data)), tcpHeader)])
	d.advance(header)
	return Parsed
}

func tcpFlags(t *layers.TCP) uint8 {
	var flags uint8
	for i, set := range [8]bool{t.FIN, t.SYN, t.RST, t.PSH, t.ACK, t.URG, t.ECE, t.CWR} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// timestamps looks for the option of RFC 7323 in the captured part of the options.
func (p *Packet) timestamps(opts []byte) {
	if len(opts) < tcpOptionsSmallest {
		return
	}
	for i := 0; i < MaxTCPOptions && len(opts) >= 2; i++ {
		size := 1
		switch kind := layers.TCPOptionKind(opts[0]); {
		case kind == layers.TCPOptionKindEndList:
			return
		case kind == layers.TCPOptionKindNop:
		case kind == layers.TCPOptionKindTimestamps && opts[1] == tcpTimestampOption:
			p.setTimestamps(opts)
			return
		default:
			if size = int(opts[1]); size < 2 {
				return
			}
		}
		opts = opts[min(size, len(opts)):]
	}
}

func (p *Packet) setTimestamps(opt []byte) {
	if len(opt) < tcpTimestampOption {
		return
	}
	p.TSVal = binary.BigEndian.Uint32(opt[2:])
	p.TSEcr = binary.BigEndian.Uint32(opt[6:])
	p.Valid |= TSOpt
}

func (d *Decoder) readUDP(p *Packet) Reason {
	if len(d.data) < udpHeader {
		return Truncated
	}
	if d.l4len < udpHeader {
		return BadTransport
	}
	_ = d.udp.DecodeFromBytes(d.data, feedback) // an error is about UDP's own length, which is not used
	p.Valid |= Ports | UDP
	p.SrcPort, p.DstPort = uint16(d.udp.SrcPort), uint16(d.udp.DstPort)
	p.Payload = d.payload(udpHeader)
	d.advance(udpHeader)
	p.Begin = begin(d.data, p.Payload)
	dns, ntp := p.SrcPort == portDNS || p.DstPort == portDNS, p.SrcPort == portNTP || p.DstPort == portNTP
	if dns {
		p.dns(d.data)
		p.name(d.data)
	}
	if ntp {
		p.ntp(d.data)
	}
	if !dns && !ntp {
		p.rtp(d.data)
	}
	return Parsed
}

// begin is what tells payloads apart: parse_begin of bpf/include/parse.h.
func begin(payload []byte, length uint32) (sum uint64) {
	const short, long = 8, 32
	factors := [...]uint64{1, 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0x632be59bd9b4e019}
	words := 0
	if length >= long && len(payload) >= long {
		words = len(factors)
	} else if length >= short && length < long && len(payload) >= short {
		words = 1
	}
	for i := range words {
		sum += factors[i] * binary.NativeEndian.Uint64(payload[8*i:])
	}
	return sum
}

// rtp looks for RFC 3550's version and takes the sequence number; RTCP's packet types are no payload types.
func (p *Packet) rtp(msg []byte) {
	if len(msg) < rtpHeader || p.Payload < rtpHeader || msg[0]>>6 != 2 {
		return
	}
	if kind := msg[1] & 0x7f; kind < 72 || kind > 76 {
		p.Seq = uint32(binary.BigEndian.Uint16(msg[2:]))
		p.Valid |= RTP
	}
}

// dns reads the transaction id and whether it is a response; the rest of a message may be cut or compressed badly.
func (p *Packet) dns(msg []byte) {
	if len(msg) < dnsHeader || p.Payload < dnsHeader {
		return
	}
	p.AppID = uint64(binary.BigEndian.Uint16(msg))
	if msg[2]&0x80 != 0 {
		p.Valid |= AppResponse
	} else {
		p.Valid |= AppRequest
	}
}

// ntp: a server's answer carries the client's transmit timestamp as its origin timestamp (RFC 5905).
func (p *Packet) ntp(msg []byte) {
	const client, server = 3, 4
	if len(msg) < ntpMessage || p.Payload < ntpMessage {
		return
	}
	switch msg[0] & 7 {
	case client:
		p.AppID = binary.BigEndian.Uint64(msg[40:])
		p.Valid |= AppRequest
	case server:
		p.AppID = binary.BigEndian.Uint64(msg[24:])
		p.Valid |= AppResponse
	}
}

func (d *Decoder) readICMP4(p *Packet) Reason {
	if len(d.data) < icmpHeader {
		return Truncated
	}
	if d.l4len < icmpHeader {
		return BadTransport
	}
	if d.icmp4.DecodeFromBytes(d.data, feedback) != nil {
		return BadTransport
	}
	kind := d.icmp4.TypeCode.Type()
	if kind != layers.ICMPv4TypeEchoRequest && kind != layers.ICMPv4TypeEchoReply {
		return NoTransport
	}
	p.setEcho(kind, d.icmp4.Id, d.icmp4.Seq, d.payload(icmpHeader))
	return Parsed
}

func (d *Decoder) readICMP6(p *Packet) Reason {
	if len(d.data) < icmpHeader {
		return Truncated
	}
	if d.l4len < icmpHeader {
		return BadTransport
	}
	if d.icmp6.DecodeFromBytes(d.data, feedback) != nil {
		return BadTransport
	}
	kind := d.icmp6.TypeCode.Type()
	if kind != layers.ICMPv6TypeEchoRequest && kind != layers.ICMPv6TypeEchoReply {
		return NoTransport
	}
	if d.echo6.DecodeFromBytes(d.icmp6.Payload, feedback) != nil {
		return BadTransport
	}
	p.setEcho(kind, d.echo6.Identifier, d.echo6.SeqNumber, d.payload(icmpHeader))
	return Parsed
}

func (p *Packet) setEcho(kind uint8, id, seq uint16, payload uint32) {
	p.Valid |= ICMP
	p.ICMPType = kind
	p.SrcPort, p.DstPort, p.Seq = id, id, uint32(seq)
	p.Payload = payload
}
