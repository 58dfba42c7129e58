package heavy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Prefix is a node of the hierarchy: a source prefix, a destination prefix, or both. A dimension that is not counted is
// the zero Prefix.
type Prefix struct{ Src, Dst netip.Prefix }

func (p Prefix) String() string {
	var parts []string
	for _, side := range []netip.Prefix{p.Src, p.Dst} {
		if side.IsValid() {
			parts = append(parts, side.String())
		}
	}
	return strings.Join(parts, " > ")
}

// Bits of both dimensions: the depth in the hierarchy.
func (p Prefix) Bits() int { return max(p.Src.Bits(), 0) + max(p.Dst.Bits(), 0) }

// IsV4 reports whether the prefix is of IPv4.
func (p Prefix) IsV4() bool {
	return p.Src.IsValid() && p.Src.Addr().Is4() || p.Dst.IsValid() && p.Dst.Addr().Is4()
}

func within(inner, outer netip.Prefix) bool {
	if !inner.IsValid() || !outer.IsValid() {
		return inner.IsValid() == outer.IsValid()
	}
	return inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())
}

// Within reports whether p is equal to outer or below it.
func (p Prefix) Within(outer Prefix) bool {
	return within(p.Src, outer.Src) && within(p.Dst, outer.Dst)
}

// common is the largest node below both (their greatest lower bound); false if they have nothing in common.
func (p Prefix) common(o Prefix) (Prefix, bool) {
	src, ok := narrower(p.Src, o.Src)
	if !ok {
		return Prefix{}, false
	}
	dst, ok := narrower(p.Dst, o.Dst)
	return Prefix{src, dst}, ok
}

func narrower(a, b netip.Prefix) (netip.Prefix, bool) {
	if within(a, b) {
		return a, true
	}
	return b, within(b, a)
}

// compare orders by depth, deepest first, and then by name.
func (p Prefix) compare(o Prefix) int {
	return cmp.Or(cmp.Compare(o.Bits(), p.Bits()), p.Src.Addr().Compare(o.Src.Addr()), cmp.Compare(p.Src.Bits(), o.Src.Bits()),
		p.Dst.Addr().Compare(o.Dst.Addr()), cmp.Compare(p.Dst.Bits(), o.Dst.Bits()))
}

// Heavy is a hierarchical heavy hitter.
type Heavy struct {
	Prefix      Prefix
	Count       float64 // all of the prefix
	Conditioned float64 // without what the hierarchical heavy hitters below it explain
}

// Hierarchical returns the prefixes whose conditioned count reaches the threshold: from the longest prefixes up, a parent
// counts what its heavy descendants do not explain (Cormode et al.; Mitzenmacher, Steinke, Thaler; section 3.4). In two
// dimensions the common part of two descendants would be subtracted twice and is added again.
func Hierarchical(counts map[Prefix]float64, threshold float64) []Heavy {
	nodes := make([]Prefix, 0, len(counts))
	for p, n := range counts {
		if n >= threshold { // a conditioned count is not larger
			nodes = append(nodes, p)
		}
	}
	slices.SortFunc(nodes, Prefix.compare)
	var found []Heavy
	for _, p := range nodes {
		if left := conditioned(counts, found, p); left >= threshold {
			found = append(found, Heavy{p, counts[p], left})
		}
	}
	slices.SortStableFunc(found, func(a, b Heavy) int { return cmp.Compare(b.Count, a.Count) })
	return found
}

func conditioned(counts map[Prefix]float64, found []Heavy, p Prefix) float64 {
	left := counts[p]
	minus, plus := Parts(found, p)
	for _, h := range minus {
		left -= counts[h]
	}
	for _, c := range plus {
		left += counts[c]
	}
	return left
}

// Parts of a conditioned count: what is subtracted from the prefix's total, and what is added again.
func Parts(found []Heavy, p Prefix) (minus, plus []Prefix) {
	minus = closestBelow(found, p)
	for i, h := range minus {
		for _, o := range minus[:i] {
			if c, ok := h.common(o); ok && !coveredByThird(minus, c, h, o) {
				plus = append(plus, c)
			}
		}
	}
	return minus, plus
}

// Given is a prefix's count, conditioned on given heavy prefixes.
func Given(counts map[Prefix]float64, found []Heavy, p Prefix) Heavy {
	return Heavy{p, counts[p], conditioned(counts, found, p)}
}

// closestBelow are the heavy descendants of p that are below no other of its heavy descendants.
func closestBelow(found []Heavy, p Prefix) []Prefix {
	var below []Prefix
	for _, h := range found {
		if h.Prefix != p && h.Prefix.Within(p) {
			below = append(below, h.Prefix)
		}
	}
	return slices.DeleteFunc(slices.Clone(below), func(h Prefix) bool {
		return slices.ContainsFunc(below, func(o Prefix) bool { return o != h && h.Within(o) })
	})
}

func coveredByThird(closest []Prefix, c, a, b Prefix) bool {
	return slices.ContainsFunc(closest, func(o Prefix) bool { return o != a && o != b && c.Within(o) })
}
