package traffic

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Carrier is what requests and responses look like.
type Carrier uint8

const (
	// DefaultCarrier is the model's own: Handshake for LogUniform, Data for ISP.
	DefaultCarrier Carrier = iota
	// Handshake: a SYN from a client that is seen only once, and the SYN-ACK.
	Handshake
	// Data: a segment of one of many connections, and the pure ACK with the expected number.
	Data
)

const (
	ethernet  = 14 // bytes
	ipv4      = 20
	ipv6      = 40
	tcpHeader = 20
	protoTCP  = 6
	mss       = 1448 // bytes of payload that a full segment carries beside a timestamp option
)

// mix is a bijection of 32 bits that scatters: consecutive numbers become addresses far from each other.
func mix(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	return x ^ x>>16
}

// endpoints writes the addresses and ports of flow n from its client to its server. The client's address and port
// together are n, so no two flows of a model are the same.
func endpoints(p *packet.Packet, n uint32, v6 bool) {
	client, server := mix(n), mix(n^0x5bd1e995)
	p.SrcPort = 1024 + uint16(client&0x7fff)
	p.DstPort = 443
	host := client >> 15 // 17 bits
	site := server & 0x3fff
	if v6 {
		p.Src = addr6(0x1, host)
		p.Dst = addr6(0x2, site)
		return
	}
	p.Src = netip.AddrFrom4([4]byte{10, byte(host >> 16), byte(host >> 8), byte(host)})
	p.Dst = netip.AddrFrom4([4]byte{198, 18, byte(site >> 8), byte(site)}) // RFC 2544: for measurements
}

func addr6(net byte, host uint32) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, net, 0, 0, 0, 0, 0, 0, byte(host >> 24),
		byte(host >> 16), byte(host >> 8), byte(host)})
}

// segment completes a TCP packet whose addresses are set.
func segment(p *packet.Packet, flags uint8, payload uint32) {
	header := uint32(ethernet + ipv4 + tcpHeader)
	p.Valid = packet.IP | packet.Ports | packet.TCP | packet.IPID
	if !p.Src.Is4() {
		p.Valid &^= packet.IPID
		p.IPID = 0
		header += ipv6 - ipv4
	}
	p.Proto, p.Segs, p.TCPFlags = protoTCP, 1, flags
	p.Payload, p.Len = payload, header+payload
}

// reverse makes the packet one of the opposite direction.
func reverse(p *packet.Packet) {
	p.Src, p.Dst = p.Dst, p.Src
	p.SrcPort, p.DstPort = p.DstPort, p.SrcPort
}

// carrier makes the packets of requests and responses. The word that request returns is passed to the response.
type carrier interface {
	request(p *packet.Packet, id uint32) (aux uint32)
	response(p *packet.Packet, id, aux uint32)
	// stray makes a response that no request of this model can be waiting for.
	stray(p *packet.Packet, n uint32)
}

// handshake gives each request a separate flow. Strays are from flows with ids that no request has.
type handshake struct{ v6 bool }

const strayFlows = 1 << 31

func (h handshake) request(p *packet.Packet, id uint32) uint32 {
	endpoints(p, id, h.v6)
	p.Seq, p.Ack, p.IPID = mix(id+1), 0, uint16(id)
	segment(p, packet.SYN, 0)
	return 0
}

func (h handshake) response(p *packet.Packet, id, _ uint32) {
	endpoints(p, id, h.v6)
	reverse(p)
	p.Seq, p.Ack, p.IPID = mix(id+2), mix(id+1)+1, uint16(id)
	segment(p, packet.SYN|packet.ACK, 0)
}

func (h handshake) stray(p *packet.Packet, n uint32) { h.response(p, n|strayFlows, 0) }

// data spreads requests over connections, each with a running sequence number.
type data struct {
	v6   bool
	next []uint32 // sequence number by connection
}

func newData(connections int, v6 bool) *data {
	d := &data{v6: v6, next: make([]uint32, connections)}
	for i := range d.next {
		d.next[i] = initialSeq(uint32(i))
	}
	return d
}

// initialSeq leaves half of the number space to what strays acknowledge.
func initialSeq(connection uint32) uint32 { return 1<<31 | mix(connection)>>2 }

func (d *data) connection(id uint32) uint32 { return mix(id^0x27d4eb2f) % uint32(len(d.next)) }

func (d *data) request(p *packet.Packet, id uint32) uint32 {
	c := d.connection(id)
	size := uint32(mss)
	if id&3 == 0 { // a quarter of the segments are the last ones of something
		size = 1 + mix(id^0x165667b1)%mss
	}
	endpoints(p, c, d.v6)
	p.Seq, p.Ack, p.IPID = d.next[c], 1, uint16(id)
	d.next[c] += size
	segment(p, packet.ACK|packet.PSH, size)
	return d.next[c]
}

func (d *data) response(p *packet.Packet, id, aux uint32) {
	endpoints(p, d.connection(id), d.v6)
	reverse(p)
	p.Seq, p.Ack, p.IPID = 1, aux, uint16(id)
	segment(p, packet.ACK, 0)
}

// stray acknowledges a number below all that were sent.
func (d *data) stray(p *packet.Packet, n uint32) { d.response(p, n, mix(n)>>2) }

func newCarrier(chosen, own Carrier, connections int, v6 bool) carrier {
	if chosen == DefaultCarrier {
		chosen = own
	}
	if chosen == Data {
		return newData(connections, v6)
	}
	return handshake{v6}
}
