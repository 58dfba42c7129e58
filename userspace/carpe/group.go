package carpe

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Group is a pair of prefixes (section 4): all flows from one to the other.
type Group struct{ Src, Dst netip.Prefix }

func (g Group) String() string { return g.Src.String() + " " + g.Dst.String() }

// is4 reports whether the group is of IPv4.
func (g Group) is4() bool { return g.Src.Addr().Is4() }

func (g Group) compare(o Group) int {
	if n := g.Src.Addr().Compare(o.Src.Addr()); n != 0 {
		return n
	}
	if n := g.Src.Bits() - o.Src.Bits(); n != 0 {
		return n
	}
	if n := g.Dst.Addr().Compare(o.Dst.Addr()); n != 0 {
		return n
	}
	return g.Dst.Bits() - o.Dst.Bits()
}

// grouping is the length of prefixes by which flows are grouped.
type grouping struct{ src4, dst4, src6, dst6 int }

// longest6 is the longest prefix of IPv6: the data plane looks at half of an address.
const longest6 = 64

func parseGrouping(text string, spec heavy.Spec) (g grouping, err error) {
	fields := map[string]struct {
		to   *int
		most int
		of   heavy.Fields
	}{"src": {&g.src4, 32, heavy.Src}, "dst": {&g.dst4, 32, heavy.Dst}, "src6": {&g.src6, longest6, heavy.Src}, "dst6": {&g.dst6, longest6, heavy.Dst}}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, length, _ := strings.Cut(part, "/")
		f, known := fields[name]
		n, err := strconv.Atoi(length)
		if !known || err != nil || n < 0 || n > f.most {
			return g, fmt.Errorf("%q: allowed are src/0 to src/32, dst/0 to dst/32, src6/0 to src6/64, dst6/0 to dst6/64", part)
		}
		if spec.Fields&f.of != 0 { // a prefix needs an address that is part of the key
			*f.to = n
		}
	}
	return g, nil
}

// of is the group of a flow.
func (g grouping) of(spec heavy.Spec, k heavy.Key) Group {
	src, dst := spec.Addrs(k)
	if spec.IsV4(k) {
		return Group{prefixOf(src, g.src4, netip.IPv4Unspecified()), prefixOf(dst, g.dst4, netip.IPv4Unspecified())}
	}
	return Group{prefixOf(src, g.src6, netip.IPv6Unspecified()), prefixOf(dst, g.dst6, netip.IPv6Unspecified())}
}

func prefixOf(a netip.Addr, bits int, none netip.Addr) netip.Prefix {
	if !a.IsValid() {
		a = none
	}
	p, _ := a.Prefix(bits) // a length of its family
	return p
}

// errGroup is wrapped for a group that no host of this configuration creates.
var errGroup = errors.New("invalid group")

// check refuses groups of other lengths.
func (g grouping) check(o Group) error {
	src, dst := g.src6, g.dst6
	if o.is4() {
		src, dst = g.src4, g.dst4
	}
	if !o.Src.IsValid() || !o.Dst.IsValid() || o.is4() != o.Dst.Addr().Is4() || o.Src.Bits() != src || o.Dst.Bits() != dst || o.Src != o.Src.Masked() ||
		o.Dst != o.Dst.Masked() {
		return fmt.Errorf("%w: %v", errGroup, o)
	}
	return nil
}

func mask32(bits int) uint32 { return uint32(uint64(0xffffffff) << (32 - bits)) }

func mask64(bits int) uint64 {
	if bits == 0 {
		return 0
	}
	return ^uint64(0) << (64 - bits)
}

// Roots of the tries of sources, followed by one root of destinations for every source.
const (
	root4 = iota
	root6
	firstDestinations
)

// rulesOf makes a trie of pairs: the value of a source is the root for its destinations, whose value is the number of the group.
func rulesOf(numbers map[Group]uint32) (roots int, rules []prefix.Rule) {
	roots = firstDestinations
	below := map[netip.Prefix]int{}
	for _, g := range sortedGroups(numbers) {
		root, known := below[g.Src]
		if !known {
			root, roots = roots, roots+1
			below[g.Src] = root
			of := root6
			if g.is4() {
				of = root4
			}
			rules = append(rules, prefix.Of(of, g.Src, uint32(root)))
		}
		rules = append(rules, prefix.Of(root, g.Dst, numbers[g]))
	}
	return roots, rules
}

func sortedGroups[T any](m map[Group]T) []Group {
	all := make([]Group, 0, len(m))
	for g := range m {
		all = append(all, g)
	}
	slices.SortFunc(all, Group.compare)
	return all
}
