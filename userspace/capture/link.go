package capture

import (
	"encoding/binary"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Link types (tcpdump.org/linktypes.html) that are read here.
const (
	linkNull     = 0 // BSD loopback: address family in the byte order of the host that captured
	linkEthernet = 1
	linkRawOld1  = 12 // raw IP as various systems number it
	linkRawOld2  = 14
	linkRaw      = 101
	linkLoop     = 108 // as linkNull, in network order
	linkSLL      = 113 // Linux "any", version 1
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276 // Linux "any", version 2
)

const (
	sllHeader    = 16 // bytes
	sll2Header   = 20
	etherHeader  = 14
	sllOutgoing  = 4 // packet type: sent by this host
	familyHeader = 4
)

// normalise makes an Ethernet or raw IP frame of a record; false when the link type is neither and cannot be
// rewritten. It may write into the record's bytes.
func normalise(rec *record, f *packet.Frame) bool {
	f.Time = max(rec.time, 1) // 0 means "no time yet" to the data plane
	f.Interface = rec.iface
	f.Direction = packet.Ingress
	if rec.out {
		f.Direction = packet.Egress
	}
	switch rec.link {
	case linkEthernet:
		f.Data, f.Len, f.Link = rec.data, rec.wire, packet.LinkEthernet
		return true
	case linkRaw, linkRawOld1, linkRawOld2, linkIPv4, linkIPv6:
		f.Data, f.Len, f.Link = rec.data, rec.wire, packet.LinkRaw
		return true
	case linkNull, linkLoop:
		return normaliseLoopback(rec, f)
	case linkSLL:
		normaliseSLL(rec, f)
		return true
	case linkSLL2:
		normaliseSLL2(rec, f)
		return true
	}
	return false
}

// cut takes n bytes of link header away; a frame that ends inside of it becomes an empty one, which every parser
// counts as truncated.
func cut(rec *record, n int) ([]byte, int) {
	n = min(n, len(rec.data))
	return rec.data[n:], max(rec.wire-n, 0)
}

// normaliseLoopback drops the address family. Families other than IP are refused: their payload may look like an IP header.
func normaliseLoopback(rec *record, f *packet.Frame) bool {
	if len(rec.data) >= familyHeader {
		family := binary.BigEndian.Uint32(rec.data)
		if family > 0xffff { // written by a little-endian host
			family = binary.LittleEndian.Uint32(rec.data)
		}
		if !ipFamily(family) {
			rec.refuse = fmt.Sprintf("loopback packet of address family %d", family)
			return false
		}
	}
	f.Data, f.Len = cut(rec, familyHeader)
	f.Link = packet.LinkRaw
	return true
}

// ipFamily reports the IP version of AF_INET, and of AF_INET6 as numbered by Linux, the BSDs and macOS.
func ipFamily(family uint32) bool {
	switch family {
	case 2, 10, 24, 28, 30:
		return true
	}
	return false
}

// normaliseSLL rewrites a cooked header in place to an Ethernet header with zero addresses: the protocol is already in its
// last two bytes, where the EtherType belongs. VLAN tags after it stay in place.
func normaliseSLL(rec *record, f *packet.Frame) {
	if len(rec.data) >= sllHeader {
		if binary.BigEndian.Uint16(rec.data) == sllOutgoing {
			f.Direction = packet.Egress
		}
		clear(rec.data[sllHeader-etherHeader : sllHeader-2])
	}
	f.Data, f.Len = cut(rec, sllHeader-etherHeader)
	f.Link = packet.LinkEthernet
}

// normaliseSLL2 does the same for version 2, whose protocol is in front and which knows the interface.
func normaliseSLL2(rec *record, f *packet.Frame) {
	if len(rec.data) >= sll2Header {
		if rec.data[10] == sllOutgoing {
			f.Direction = packet.Egress
		}
		f.Interface = binary.BigEndian.Uint32(rec.data[4:])
		protocol := binary.BigEndian.Uint16(rec.data)
		clear(rec.data[sll2Header-etherHeader : sll2Header-2])
		binary.BigEndian.PutUint16(rec.data[sll2Header-2:], protocol)
	}
	f.Data, f.Len = cut(rec, sll2Header-etherHeader)
	f.Link = packet.LinkEthernet
}

// linkNames are other link types that an operator may have, without Ethernet or IP frames.
var linkNames = map[uint32]string{
	9: "PPP", 10: "FDDI", 50: "PPP in HDLC", 51: "PPPoE", 105: "802.11", 117: "pflog", 119: "802.11 with Prism header",
	127: "802.11 with radiotap header", 187: "Bluetooth", 189: "USB", 192: "802.11 with PPI header", 195: "802.15.4",
	220: "USB", 227: "SocketCAN", 239: "nflog", 253: "netlink",
}

// linkName names a link type for the operator.
func linkName(link uint32) string {
	if name := linkNames[link]; name != "" {
		return fmt.Sprintf("link type %d (%s)", link, name)
	}
	return fmt.Sprintf("link type %d", link)
}
