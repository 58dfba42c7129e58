package packet

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/google/gopacket/layers"
)

const (
	ipv4Header = 20 // bytes without options
	ipv6Header = 40
	extHeader  = 8 // the smallest extension header
)

// Extension headers that gopacket has no name for.
const (
	protoMobility = 135
	protoHIP      = 139
	protoShim6    = 140
)

// jumboOption is the option of RFC 2675 with its length, where it has to stand: first in a hop-by-hop header.
const jumboOption = 0xc204

// ip reads an IP header and what follows it.
func (d *Decoder) ip(f family, p *Packet) Reason {
	if d.far() {
		return Truncated
	}
	reason := NotIP
	switch f {
	case v4:
		reason = d.ipv4(p)
	case v6:
		reason = d.ipv6(p)
	}
	if reason != Parsed {
		return reason
	}
	if d.far() {
		return Truncated
	}
	return d.transport(p)
}

// network starts a packet's network layer: what an outer header said ends with it.
func (p *Packet) network(src, dst netip.Addr, proto layers.IPProtocol) {
	p.Valid = p.Valid&(VLAN|Tunnel|IsEgress|Aggregate) | IP
	p.Src, p.Dst, p.Proto = src, dst, uint8(proto)
	p.SrcPort, p.DstPort, p.Seq, p.Ack, p.Payload = 0, 0, 0, 0, 0
	p.TCPFlags, p.ICMPType, p.IPID, p.Begin = 0, 0, 0, 0
	p.TSVal, p.TSEcr, p.AppID = 0, 0, 0
}

// class keeps what the outermost header said.
func (p *Packet) class(tos uint8) {
	if !p.Has(Tunnel) {
		p.TOS = tos
	}
}

func (d *Decoder) ipv4(p *Packet) Reason {
	if len(d.data) < ipv4Header {
		return Truncated
	}
	// Its errors are about lengths and options: the fields are there, and the lengths are judged below.
	_ = d.ip4.DecodeFromBytes(d.data, feedback)
	header, total := int(d.ip4.IHL)*4, int(binary.BigEndian.Uint16(d.data[2:]))
	if d.ip4.Version != 4 || header < ipv4Header {
		return BadIP
	}
	if total == 0 { // segmentation offload
		total = d.wire - d.off
	}
	if total < header {
		return BadIP
	}
	d.total = total
	p.network(addr4(d.ip4.SrcIP), addr4(d.ip4.DstIP), d.ip4.Protocol)
	p.class(d.ip4.TOS)
	d.l4len = total - header
	d.advance(header)
	return d.ipv4Fragment(p)
}

func (d *Decoder) ipv4Fragment(p *Packet) Reason {
	more := d.ip4.Flags&layers.IPv4MoreFragments != 0
	switch {
	case d.ip4.FragOffset != 0:
		p.Valid |= Fragment
		return LaterFragment
	case more:
		p.Valid |= Fragment
	default:
		p.Valid |= IPID
		p.IPID = d.ip4.Id
	}
	if d.ip4.Protocol == layers.IPProtocolAH {
		return d.extensions(p)
	}
	return Parsed
}

func (d *Decoder) ipv6(p *Packet) Reason {
	if len(d.data) < ipv6Header {
		return Truncated
	}
	// As for IPv4; the fixed header only, or gopacket would decode hop-by-hop options with it.
	_ = d.ip6.DecodeFromBytes(d.data[:ipv6Header], feedback)
	if d.ip6.Version != 6 {
		return BadIP
	}
	p.network(addr6(d.ip6.SrcIP), addr6(d.ip6.DstIP), d.ip6.NextHeader)
	p.class(d.ip6.TrafficClass)
	d.advance(ipv6Header)
	d.l4len = int(d.ip6.Length)
	if d.l4len == 0 {
		d.l4len = d.jumbo()
	}
	if d.l4len < 0 {
		return BadIP
	}
	d.total = d.l4len + ipv6Header
	return d.extensions(p)
}

// jumbo is the payload of a packet whose length field is 0; -1 if it cannot be (RFC 2675, section 3; no link
// carries 2 GiB).
func (d *Decoder) jumbo() int {
	hop := d.data
	if d.ip6.NextHeader == layers.IPProtocolNoNextHeader {
		return 0
	}
	if d.ip6.NextHeader == layers.IPProtocolIPv6HopByHop && len(hop) >= extHeader &&
		binary.BigEndian.Uint16(hop[2:]) == jumboOption {
		if size := binary.BigEndian.Uint32(hop[4:]); size > math.MaxUint16 && size <= math.MaxInt32 {
			return int(size)
		}
		return -1
	}
	return max(d.wire-d.off, 0)
}

func isExtension(proto uint8) bool {
	switch layers.IPProtocol(proto) {
	case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Destination,
		layers.IPProtocolIPv6Fragment, layers.IPProtocolAH, protoMobility, protoHIP, protoShim6:
		return true
	}
	return false
}

// extensions follows the chain of extension headers.
func (d *Decoder) extensions(p *Packet) Reason {
	for range MaxExtensions {
		if !isExtension(p.Proto) {
			return Parsed
		}
		if reason := d.extension(p); reason != Parsed {
			return reason
		}
	}
	if isExtension(p.Proto) {
		return ExtensionChain
	}
	return Parsed
}

func (d *Decoder) extension(p *Packet) Reason {
	if len(d.data) < extHeader {
		return Truncated
	}
	proto := layers.IPProtocol(p.Proto)
	size := extensionSize(proto, d.data[1])
	if size > d.l4len {
		return BadIP
	}
	p.Proto = d.data[0]
	if proto == layers.IPProtocolIPv6Fragment {
		place := binary.BigEndian.Uint16(d.data[2:])
		offset, more := place>>3, place&1
		if offset != 0 || more != 0 { // otherwise an atomic fragment (RFC 6946), a whole packet
			p.Valid |= Fragment
		}
		if offset != 0 {
			return LaterFragment
		}
	}
	d.advance(size)
	d.l4len -= size
	if d.far() {
		return Truncated
	}
	return Parsed
}

// extensionSize is an extension header's length in bytes; each kind counts it differently.
func extensionSize(proto layers.IPProtocol, field byte) int {
	switch proto {
	case layers.IPProtocolIPv6Fragment:
		return extHeader
	case layers.IPProtocolAH:
		return (int(field) + 2) * 4
	}
	return (int(field) + 1) * 8
}

func addr4(ip []byte) netip.Addr { return netip.AddrFrom4([4]byte(ip)) }

func addr6(ip []byte) netip.Addr { return netip.AddrFrom16([16]byte(ip)) }
