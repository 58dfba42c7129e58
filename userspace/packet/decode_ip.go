package packet

import (
	"encoding/binary"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	ipv4Header = 20 // bytes without options
	ipv6Header = 40
	extHeader  = 8 // the smallest extension header
)

// Extension headers that the kernel has no name for.
const (
	protoHIP   = 139
	protoShim6 = 140
)

// jumboOption is the option of RFC 2675 with its length, at its required position: first in a hop-by-hop header.
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

// network starts a packet's network layer, and clears the fields of an outer one.
func (p *Packet) network(src, dst netip.Addr, proto uint8) {
	p.Valid = p.Valid&(VLAN|Tunnel|IsEgress|Aggregate) | IP
	p.Src, p.Dst, p.Proto = src, dst, proto
	p.SrcPort, p.DstPort, p.Seq, p.Ack, p.Payload = 0, 0, 0, 0, 0
	p.TCPFlags, p.ICMPType, p.IPID, p.Begin = 0, 0, 0, 0
	p.TSVal, p.TSEcr, p.AppID, p.Scale = 0, 0, 0, 0
}

// class keeps the traffic class of the outermost header.
func (p *Packet) class(tos uint8) {
	if !p.Has(Tunnel) {
		p.TOS = tos
	}
}

func (d *Decoder) ipv4(p *Packet) Reason {
	if len(d.data) < ipv4Header {
		return Truncated
	}
	ip := d.data[:ipv4Header]
	header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < ipv4Header {
		return BadIP
	}
	if total == 0 { // segmentation offload
		total = d.wire - d.off
	}
	if total < header {
		return BadIP
	}
	d.total = total
	p.network(netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:])), ip[9])
	p.class(ip[1])
	d.l4len = total - header
	d.advance(header)
	return d.ipv4Fragment(p, binary.BigEndian.Uint16(ip[4:]), binary.BigEndian.Uint16(ip[6:]))
}

// ipv4Fragment judges by the identification and the word of flags and offset (RFC 791, section 3.1).
func (d *Decoder) ipv4Fragment(p *Packet, id, place uint16) Reason {
	const more, offset = 1 << 13, 1<<13 - 1
	switch {
	case place&offset != 0:
		p.Valid |= Fragment
		return LaterFragment
	case place&more != 0:
		p.Valid |= Fragment
	default:
		p.Valid |= IPID
		p.IPID = id
	}
	if p.Proto == unix.IPPROTO_AH {
		return d.extensions(p)
	}
	return Parsed
}

func (d *Decoder) ipv6(p *Packet) Reason {
	if len(d.data) < ipv6Header {
		return Truncated
	}
	ip := d.data[:ipv6Header]
	if ip[0]>>4 != 6 {
		return BadIP
	}
	p.network(netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:])), ip[6])
	p.class(ip[0]<<4 | ip[1]>>4)
	d.advance(ipv6Header)
	d.l4len = int(binary.BigEndian.Uint16(ip[4:]))
	if d.l4len == 0 {
		d.l4len = d.jumbo(p.Proto)
	}
	if d.l4len < 0 {
		return BadIP
	}
	d.total = d.l4len + ipv6Header
	return d.extensions(p)
}

// jumbo is the payload of a packet whose length field is 0; -1 if it cannot be (RFC 2675, section 3; no link
// carries 2 GiB).
func (d *Decoder) jumbo(next uint8) int {
	hop := d.data
	if next == unix.IPPROTO_NONE {
		return 0
	}
	if next == unix.IPPROTO_HOPOPTS && len(hop) >= extHeader &&
		binary.BigEndian.Uint16(hop[2:]) == jumboOption {
		if size := binary.BigEndian.Uint32(hop[4:]); size > math.MaxUint16 && size <= math.MaxInt32 {
			return int(size)
		}
		return -1
	}
	return max(d.wire-d.off, 0)
}

func isExtension(proto uint8) bool {
	switch proto {
	case unix.IPPROTO_HOPOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_DSTOPTS, unix.IPPROTO_FRAGMENT, unix.IPPROTO_AH,
		unix.IPPROTO_MH, protoHIP, protoShim6:
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
	proto := p.Proto
	size := extensionSize(proto, d.data[1])
	if size > d.l4len {
		return BadIP
	}
	p.Proto = d.data[0]
	if proto == unix.IPPROTO_FRAGMENT {
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
func extensionSize(proto, field byte) int {
	switch proto {
	case unix.IPPROTO_FRAGMENT:
		return extHeader
	case unix.IPPROTO_AH:
		return (int(field) + 2) * 4
	}
	return (int(field) + 1) * 8
}
