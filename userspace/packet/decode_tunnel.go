package packet

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	portVXLAN     = 4789
	portGENEVE    = 6081
	vxlanHeader   = 8 // bytes
	geneveHeader  = 8
	greHeader     = 4
	greOptional   = 4    // each of checksum, key, sequence
	greUnreadable = 0x40 // routing bit
)

// inner is what a tunnel carries.
type inner uint8

const (
	innerNone inner = iota
	innerIPv4
	innerIPv6
	innerEthernet
)

// decap follows one tunnel; without one, the outer headers and their reason stay.
func (d *Decoder) decap(p *Packet, outer Reason) Reason {
	if outer != Parsed && outer != NoTransport {
		return outer
	}
	carried := d.tunnel(p)
	if carried == innerNone {
		return outer
	}
	if d.far() {
		return Truncated
	}
	p.enter()
	f := v4
	switch carried {
	case innerIPv6:
		f = v6
	case innerEthernet:
		var reason Reason
		if f, reason = d.ethernet(p); reason != Parsed {
			return reason
		}
	}
	return d.ip(f, p)
}

// enter forgets the outer packet: only its link, its length and its class stay.
func (p *Packet) enter() {
	*p = Packet{
		Time: p.Time, Interface: p.Interface, Segs: p.Segs, Len: p.Len, VLAN: p.VLAN, TOS: p.TOS,
		Enqueued: p.Enqueued, Queue: p.Queue,
		Valid: p.Valid&(VLAN|IsEgress|Aggregate) | Tunnel,
	}
}

// tunnel recognises a tunnel at the cursor and moves past its header.
func (d *Decoder) tunnel(p *Packet) inner {
	if p.Has(Fragment) {
		return innerNone
	}
	switch p.Proto {
	case unix.IPPROTO_IPIP:
		return innerIPv4
	case unix.IPPROTO_IPV6:
		return innerIPv6
	case unix.IPPROTO_GRE:
		return d.readGRE()
	}
	switch {
	case p.Has(UDP) && p.DstPort == portGENEVE:
		return d.readGeneve()
	case p.Has(UDP) && p.DstPort == portVXLAN:
		d.advance(vxlanHeader)
		return innerEthernet
	}
	return innerNone
}

// readGRE refuses source routes and other versions (PPTP). Optional fields need not be captured.
func (d *Decoder) readGRE() inner {
	if len(d.data) < greHeader || d.data[0]&greUnreadable != 0 || d.data[1]&7 != 0 {
		return innerNone
	}
	flags := d.data[0]
	carried := carriedBy(binary.BigEndian.Uint16(d.data[2:]))
	size := greHeader
	for _, bit := range [3]byte{0x80, 0x20, 0x10} {
		if flags&bit != 0 {
			size += greOptional
		}
	}
	d.advance(size)
	return carried
}

func (d *Decoder) readGeneve() inner {
	if len(d.data) < geneveHeader {
		return innerNone
	}
	carried := carriedBy(binary.BigEndian.Uint16(d.data[2:]))
	d.advance(geneveHeader + int(d.data[0]&0x3f)*4)
	return carried
}

func carriedBy(kind uint16) inner {
	switch kind {
	case unix.ETH_P_IP:
		return innerIPv4
	case unix.ETH_P_IPV6:
		return innerIPv6
	case unix.ETH_P_TEB:
		return innerEthernet
	}
	return innerNone
}
