package packet

import (
	"encoding/binary"

	"github.com/google/gopacket/layers"
)

const (
	etherQinQOld = 0x9100 // the EtherType of outer tags before 802.1ad had one
	etherHeader  = 14     // bytes
	tagHeader    = 4
	labelHeader  = 4
	pppoeHeader  = 8 // with the PPP protocol
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
	if d.eth.DecodeFromBytes(d.data, feedback) != nil {
		return other, Truncated
	}
	d.advance(etherHeader)
	kind, reason := d.tags(d.eth.EthernetType, p)
	if reason != Parsed {
		return other, reason
	}
	switch kind {
	case layers.EthernetTypePPPoESession:
		return d.pppoe()
	case layers.EthernetTypeMPLSUnicast, layers.EthernetTypeMPLSMulticast:
		return d.mpls()
	}
	return etherFamily(kind), Parsed
}

func etherFamily(kind layers.EthernetType) family {
	switch kind {
	case layers.EthernetTypeIPv4:
		return v4
	case layers.EthernetTypeIPv6:
		return v6
	}
	return other
}

func isTag(kind layers.EthernetType) bool {
	return kind == layers.EthernetTypeDot1Q || kind == layers.EthernetTypeQinQ || kind == etherQinQOld
}

// tags consumes VLAN tags; the outermost identifier is the packet's.
func (d *Decoder) tags(kind layers.EthernetType, p *Packet) (layers.EthernetType, Reason) {
	for range MaxTags {
		if !isTag(kind) {
			break
		}
		if d.tag.DecodeFromBytes(d.data, feedback) != nil {
			return 0, Truncated
		}
		if !p.Has(VLAN) {
			p.VLAN = d.tag.VLANIdentifier
			p.Valid |= VLAN
		}
		kind = d.tag.Type
		d.advance(tagHeader)
	}
	return kind, Parsed
}

// pppoe reads a session's header by hand: gopacket's layer panics on a length that is not there.
func (d *Decoder) pppoe() (family, Reason) {
	if len(d.data) < pppoeHeader {
		return other, Truncated
	}
	version, code := d.data[0], d.data[1]
	if version != 0x11 || layers.PPPoECode(code) != layers.PPPoECodeSession {
		return other, NotIP
	}
	protocol := layers.PPPType(binary.BigEndian.Uint16(d.data[6:]))
	size := pppoeHeader
	if protocol&0x100 != 0 { // compressed to one byte (RFC 1661, section 6.5)
		protocol >>= 8
		size--
	}
	d.advance(size)
	switch protocol {
	case layers.PPPTypeIPv4:
		return v4, Parsed
	case layers.PPPTypeIPv6:
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
