// Package group names the groups of delays: networks, ports or VLANs, from the point of view of who asked.
package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Group selects the distributions that samples are split into.
type Group struct {
	Kind bpf.FridgeFridgeGroupKind
	len4 int // prefix lengths of src and dst
	len6 int
}

var errGroup = errors.New("allowed are none, src/LEN, dst/LEN (LEN 0 to 32, of IPv4), dport, vlan")

// Parse reads a group.
func Parse(text string, len6 int) (Group, error) {
	plain := map[string]bpf.FridgeFridgeGroupKind{"none": None, "dport": Dport, "vlan": Vlan}
	if kind, ok := plain[text]; ok {
		return Group{Kind: kind}, nil
	}
	side, length, ok := strings.Cut(text, "/")
	kind := map[string]bpf.FridgeFridgeGroupKind{"src": Src, "dst": Dst}[side]
	n, err := strconv.Atoi(length)
	if !ok || kind == None || err != nil || n < 0 || n > 32 {
		return Group{}, errGroup
	}
	return Group{Kind: kind, len4: n, len6: len6}, nil
}

// Masks of IPv4 addresses and of the first 64 bits of IPv6 addresses.
func (g Group) Masks() (mask4, mask6 uint64) {
	return uint64(^uint32(0)) << (32 - g.len4) & 0xffffffff, ^uint64(0) << (64 - g.len6)
}

// The kinds of keys, in the four highest bits.
const (
	keyDport = 1
	keyVlan  = 2
	KeyIPv4  = 4
	keyIPv6  = 6
)

// untagged replaces the VLAN ID of untagged packets.
const untagged = 4096

// Key of a sample's group, as group_key of bpf/fridge/fridge.bpf.c computes it. reverse: the request had the direction opposite
// to p.
func (g Group) Key(p *packet.Packet, reverse bool) uint64 {
	switch g.Kind {
	case Dport:
		if reverse {
			return keyDport<<60 | uint64(p.SrcPort)
		}
		return keyDport<<60 | uint64(p.DstPort)
	case Vlan:
		if !p.Has(packet.VLAN) {
			return keyVlan<<60 | untagged
		}
		return keyVlan<<60 | uint64(p.VLAN)
	}
	addr := p.Dst
	if (g.Kind == Src) != reverse {
		addr = p.Src
	}
	mask4, mask6 := g.Masks()
	if addr.Is4() {
		a := addr.As4()
		return KeyIPv4<<60 | uint64(binary.BigEndian.Uint32(a[:]))&mask4
	}
	a := addr.As16()
	return keyIPv6<<60 | binary.BigEndian.Uint64(a[:8])&mask6>>4
}

// Name of a key for people.
func (g Group) Name(key uint64) string {
	value := key & (1<<60 - 1)
	switch key >> 60 {
	case KeyIPv4:
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(value))
		return netip.PrefixFrom(netip.AddrFrom4(a), g.len4).String()
	case keyIPv6:
		var a [16]byte
		binary.BigEndian.PutUint64(a[:8], value<<4)
		return netip.PrefixFrom(netip.AddrFrom16(a), g.len6).String()
	case keyVlan:
		if value == untagged {
			return "untagged"
		}
	}
	return fmt.Sprint(value)
}

// Title of the table of groups.
func (g Group) Title() string {
	switch g.Kind {
	case Src:
		return "by network that asked"
	case Dst:
		return "by network that was asked"
	case Dport:
		return "by port that was asked"
	}
	return "by VLAN"
}

// Others is the name of the row for samples whose own row was taken.
const Others = "Others"

// Groups, as enum fridge_group_kind.
const (
	None  = bpf.FridgeFridgeGroupKindGROUP_NONE
	Src   = bpf.FridgeFridgeGroupKindGROUP_SRC
	Dst   = bpf.FridgeFridgeGroupKindGROUP_DST
	Dport = bpf.FridgeFridgeGroupKindGROUP_DPORT
	Vlan  = bpf.FridgeFridgeGroupKindGROUP_VLAN
)
