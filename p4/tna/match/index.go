package match

import "slices"

// Index finds the first matching row without looking at all of them: rows with the same masks are hashed by their masked values (Srinivasan,
// Suri and Varghese, "Packet Classification using Tuple Space Search", SIGCOMM 1999). The order of all rows decides between groups.
type Index struct {
	rows   [][]One
	groups []group // none: the table is small, has ranges, or too many masks; rows are tried one by one
}

type group struct {
	masks []uint64
	rows  map[uint64][]int // in their order, by a hash of the masked values
}

// fewRows are faster to scan than to index.
const (
	fewRows     = 12
	rowsOfGroup = 6 // on average, at least
)

// NewIndex is of so many rows in their order.
func NewIndex(n int, wants func(at int) []One) *Index {
	x := &Index{}
	for at := range n {
		x.rows = append(x.rows, wants(at))
	}
	if n >= fewRows && !x.build() {
		x.groups = nil
	}
	return x
}

// build groups the rows; false: scanning is better.
func (x *Index) build() bool {
	for at, wants := range x.rows {
		masks := make([]uint64, len(wants))
		for i, w := range wants {
			if w.Range {
				return false
			}
			masks[i] = w.Mask
		}
		n := slices.IndexFunc(x.groups, func(g group) bool { return slices.Equal(g.masks, masks) })
		if n < 0 {
			if n = len(x.groups); n*rowsOfGroup > len(x.rows) {
				return false
			}
			x.groups = append(x.groups, group{masks, map[uint64][]int{}})
		}
		h := x.groups[n].hash(values(wants))
		x.groups[n].rows[h] = append(x.groups[n].rows[h], at)
	}
	return true
}

func values(match []One) []uint64 {
	all := make([]uint64, len(match))
	for i, w := range match {
		all[i] = w.Value
	}
	return all
}

func (g *group) hash(vals []uint64) uint64 {
	h := uint64(0)
	for i, m := range g.masks {
		h = (h ^ vals[i]&m) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h
}

// First is the index of the first row that matches; -1: none.
func (x *Index) First(vals []uint64) int {
	if x.groups == nil {
		return slices.IndexFunc(x.rows, func(wants []One) bool { return defined(wants, vals) })
	}
	best := -1
	for i := range x.groups {
		g := &x.groups[i]
		for _, at := range g.rows[g.hash(vals)] {
			if best >= 0 && at >= best {
				break
			}
			if defined(x.rows[at], vals) {
				best = at
				break
			}
		}
	}
	return best
}
