package packet

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	etherHeader = 14 // bytes
	tagHeader   = 4
	labelHeader = 4
	pppoeHeader = 8 // with the PPP protocol
)

// PPP protocols (RFC 1332, RFC 5072), and the code of a PPPoE packet that carries one (RFC 2516).
const (
	pppIPv4      = 0x21
	pppIPv6      = 0x57
	pppoeSession = 0
)

// family is the IP version that a lower header announces, 0 for anything else.
type family uint8

const (
	other family = 0
	v4    family = 4
	v6    family = 6
)

// link walks from the frame's beginning to its IP header.
func (d *Decoder) link(link Link, p *Packet) (family, Reason) {
	if link == LinkRaw {
		return d.version()
	}
	return d.ethernet(p)
}

// version reads the family from the nibble where an EtherType is missing.
func (d *Decoder) version() (family, Reason) {
	if len(d.data) == 0 {
		return other, Truncated
	}
	switch d.data[0] >> 4 {
	case 4:
		return v4, Parsed
	case 6:
		return v6, Parsed
	}
	return other, Parsed
}

func (d *Decoder) ethernet(p *Packet) (family, Reason) {
	if len(d.data) < etherHeader {
		return other, Truncated
	}
	kind := binary.BigEndian.Uint16(d.data[12:])
	d.advance(etherHeader)
	kind, reason := d.tags(kind, p)
	if reason != Parsed {
		return other, reason
	}
	switch kind {
	case unix.ETH_P_PPP_SES:
		return d.pppoe()
	case unix.ETH_P_MPLS_UC, unix.ETH_P_MPLS_MC:
		return d.mpls()
	}
	return etherFamily(kind), Parsed
}

func etherFamily(kind uint16) family {
	switch kind {
	case unix.ETH_P_IP:
		return v4
	case unix.ETH_P_IPV6:
		return v6
	}
	return other
}

// isTag reports whether it is the type of a tag: 802.1Q, 802.1ad, or one used for outer tags before 802.1ad.
func isTag(kind uint16) bool {
	return kind == unix.ETH_P_8021Q || kind == unix.ETH_P_8021AD || kind == unix.ETH_P_QINQ1
}

// tags consumes VLAN tags; the outermost identifier is the packet's.
func (d *Decoder) tags(kind uint16, p *Packet) (uint16, Reason) {
	for range MaxTags {
		if !isTag(kind) {
			break
		}
		if len(d.data) < tagHeader {
			return 0, Truncated
		}
		if !p.Has(VLAN) {
			p.VLAN = binary.BigEndian.Uint16(d.data) & 0xfff
			p.Valid |= VLAN
		}
		kind = binary.BigEndian.Uint16(d.data[2:])
		d.advance(tagHeader)
	}
	return kind, Parsed
}

// pppoe reads a session's header; the length in it is not needed.
func (d *Decoder) pppoe() (family, Reason) {
	if len(d.data) < pppoeHeader {
		return other, Truncated
	}
	version, code := d.data[0], d.data[1]
	if version != 0x11 || code != pppoeSession {
		return other, NotIP
	}
	protocol := binary.BigEndian.Uint16(d.data[6:])
	size := pppoeHeader
	if protocol&0x100 != 0 { // compressed to one byte (RFC 1661, section 6.5)
		protocol >>= 8
		size--
	}
	d.advance(size)
	switch protocol {
	case pppIPv4:
		return v4, Parsed
	case pppIPv6:
		return v6, Parsed
	}
	return other, Parsed
}

func (d *Decoder) mpls() (family, Reason) {
	for range MaxLabels {
		if len(d.data) < labelHeader {
			return other, Truncated
		}
		bottom := d.data[2]&1 != 0
		d.advance(labelHeader)
		if bottom {
			return d.version()
		}
	}
	return other, NotIP
}
