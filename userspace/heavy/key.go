// Package heavy is the userspace code that the heavy-hitter algorithms share: flow keys and their words (bpf/include/key.h), the
// records of PRECISION's ways (bpf/include/ways.h), lists of the largest flows, and plain Go reference algorithms without the
// memory rules of a switch: Space-Saving, RAP, MST and RHHH.
package heavy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Fields of a key: enum key_field of bpf/include/key.h.
type Fields uint32

// The fields.
const (
	Src Fields = 1 << iota
	Dst
	SrcPort
	DstPort
	Proto
)

const addrs = Src | Dst

// FiveTuple is the key of a flow.
const FiveTuple = addrs | SrcPort | DstPort | Proto

// Family of the packets that have a key: enum key_family.
type Family uint32

// The families.
const (
	Both Family = 0
	IPv4 Family = 4
	IPv6 Family = 6
)

// KeyWords is the length of the longest key.
const KeyWords = 5

// Key is a flow's key in the form of the data plane. Words that the family does not use are zero.
type Key [KeyWords]uint64

// Spec defines the key of a packet.
type Spec struct {
	Fields Fields
	Family Family
	Tagged bool // store the tag word even if it could be omitted: an algorithm writes to it
}

// Bits of the tag word.
const (
	tagSet   = 1 << 0
	tagIPv6  = 1 << 1
	tagLevel = 8 // lowest bit for an algorithm's own use
)

var kinds = map[string]Fields{
	"5tuple":  FiveTuple,
	"srcdst":  addrs,
	"src":     Src,
	"dst":     Dst,
	"sport":   SrcPort,
	"dport":   DstPort,
	"proto":   Proto,
	"service": Dst | DstPort | Proto,
}

// KindNames lists the kinds of keys.
var KindNames = []string{"5tuple", "srcdst", "src", "dst", "service", "sport", "dport", "proto"}

// ParseKind returns the fields of a kind of KindNames.
func ParseKind(kind string) (Fields, error) {
	f, ok := kinds[kind]
	if !ok {
		return 0, fmt.Errorf("%q is no kind of key", kind)
	}
	return f, nil
}

// FamilyNames lists what ParseFamily takes.
var FamilyNames = []string{"both", "4", "6"}

// ParseFamily reads both, 4 or 6.
func ParseFamily(text string) Family {
	n, _ := strconv.Atoi(text)
	return Family(n)
}

func (s Spec) tagged() bool { return s.Tagged || s.Family != IPv4 || s.Fields&^addrs != 0 }

// Words is the number of words of the longest key.
func (s Spec) Words() int {
	switch {
	case s.Fields&addrs == 0:
		return 1
	case s.Family == IPv4:
		return 1 + btoi(s.tagged())
	case s.Fields&addrs == addrs:
		return 5
	}
	return 3
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Of is the key of a packet; false when it has none.
func (s Spec) Of(p *packet.Packet) (Key, bool) {
	v4 := p.Src.Is4()
	if !p.Has(packet.IP) || s.Family == IPv4 && !v4 || s.Family == IPv6 && v4 {
		return Key{}, false
	}
	if s.Fields&addrs == 0 && s.Fields&(SrcPort|DstPort) != 0 && !p.Has(packet.Ports) {
		return Key{}, false
	}
	return s.make(p, v4), true
}

func (s Spec) make(p *packet.Packet, v4 bool) (k Key) {
	tag := s.tag(p, v4)
	if s.Fields&addrs == 0 {
		k[0] = tag
		return k
	}
	if v4 {
		k[0] = s.addrs4(p)
		if s.tagged() {
			k[1] = tag
		}
		return k
	}
	first := p.Dst
	if s.Fields&Src != 0 {
		first = p.Src
	}
	k[1] = tag
	high := 2
	if s.Fields&addrs == addrs {
		high = 3
		k[4], k[2] = halves(p.Dst)
	}
	k[high], k[0] = halves(first)
	return k
}

func (s Spec) tag(p *packet.Packet, v4 bool) uint64 {
	tag := uint64(tagSet)
	if !v4 {
		tag |= tagIPv6
	}
	if s.Fields&SrcPort != 0 {
		tag |= uint64(p.SrcPort) << 48
	}
	if s.Fields&DstPort != 0 {
		tag |= uint64(p.DstPort) << 32
	}
	if s.Fields&Proto != 0 {
		tag |= uint64(p.Proto) << 24
	}
	return tag
}

func (s Spec) addrs4(p *packet.Packet) (w uint64) {
	if s.Fields&Src != 0 {
		a := p.Src.As4()
		w = uint64(binary.BigEndian.Uint32(a[:])) << 32
	}
	if s.Fields&Dst == 0 {
		return w | 1
	}
	a := p.Dst.As4()
	return w | uint64(binary.BigEndian.Uint32(a[:]))
}

func halves(a netip.Addr) (high, low uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// Address converts the vector's words of an address, in network order, to an address.
func Address(words [4]uint32, family uint8) netip.Addr {
	var b [16]byte
	for n, w := range words {
		binary.NativeEndian.PutUint32(b[4*n:], w)
	}
	a := netip.AddrFrom16(b)
	if family == 4 {
		return a.Unmap()
	}
	return a
}

// Clean clears the words after those of the key's family: an entry that changes its flow keeps old ones.
func (s Spec) Clean(k Key) Key {
	used := s.Words()
	if s.IsV4(k) {
		used = min(used, 2)
	}
	clear(k[used:])
	return k
}

// IsV4 reports whether a key is of IPv4.
func (s Spec) IsV4(k Key) bool {
	if !s.tagged() {
		return true
	}
	return s.tagOf(k)&tagIPv6 == 0
}

func (s Spec) tagOf(k Key) uint64 {
	if s.Fields&addrs == 0 {
		return k[0]
	}
	return k[1]
}

// Addrs are the addresses of a key; missing ones are not valid.
func (s Spec) Addrs(k Key) (src, dst netip.Addr) {
	if s.IsV4(k) {
		return s.valid(addr4(k[0]>>32), addr4(k[0]))
	}
	if s.Fields&addrs == addrs {
		return addr16(k[3], k[0]), addr16(k[4], k[2])
	}
	a := addr16(k[2], k[0])
	return s.valid(a, a)
}

// Packet has the ports and the protocol of a key.
func (s Spec) Packet(k Key) (p packet.Packet) {
	tag := s.tagOf(k)
	if !s.tagged() {
		tag = 0
	}
	p.Src, p.Dst = s.Addrs(k)
	p.SrcPort, p.DstPort, p.Proto = uint16(tag>>48), uint16(tag>>32), uint8(tag>>24)
	return p
}

func (s Spec) valid(src, dst netip.Addr) (netip.Addr, netip.Addr) {
	if s.Fields&Src == 0 {
		src = netip.Addr{}
	}
	if s.Fields&Dst == 0 {
		dst = netip.Addr{}
	}
	return src, dst
}

func addr4(w uint64) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(w))
	return netip.AddrFrom4(b)
}

func addr16(high, low uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}

var columnHelp = map[string]string{"src": "source address", "dst": "destination address", "sport": "source port", "dport": "destination port",
	"proto": "protocol: tcp, udp or its number"}

// Columns that name a flow.
func (s Spec) Columns() []report.Column {
	var list []report.Column
	for _, c := range []struct {
		field Fields
		name  string
	}{{Src, "src"}, {SrcPort, "sport"}, {Dst, "dst"}, {DstPort, "dport"}, {Proto, "proto"}} {
		if s.Fields&c.field != 0 {
			list = append(list, report.Column{Name: c.name, Label: true, Help: columnHelp[c.name]})
		}
	}
	if s.Fields&addrs == 0 && s.Family == Both {
		list = append(list, report.Column{Name: "family", Label: true, Help: "IP version"})
	}
	return list
}

// Cells of a flow under Columns.
func (s Spec) Cells(k Key) []any {
	src, dst := s.Addrs(k)
	tag := s.tagOf(k)
	all := []struct {
		field Fields
		cell  any
	}{{Src, src.String()}, {SrcPort, int64(tag >> 48)}, {Dst, dst.String()}, {DstPort, int64(tag >> 32 & 0xffff)}, {Proto, protocol(uint8(tag >> 24))}}
	var cells []any
	for _, c := range all {
		if s.Fields&c.field != 0 {
			cells = append(cells, c.cell)
		}
	}
	if s.Fields&addrs == 0 && s.Family == Both {
		family := int64(6)
		if s.IsV4(k) {
			family = 4
		}
		cells = append(cells, family)
	}
	return cells
}

func protocol(n uint8) string {
	names := map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 58: "icmpv6", 132: "sctp"}
	if name, ok := names[n]; ok {
		return name
	}
	return strconv.Itoa(int(n))
}

// Compare orders keys, so that lists of equals are the same every time.
func (k Key) Compare(o Key) int { return slices.Compare(k[:], o[:]) }
