package lang

import "slices"

// index finds the first row that fits without looking at all of them: rows with the same masks are found by what they want under these (Srinivasan,
// Suri and Varghese, "Packet Classification using Tuple Space Search", SIGCOMM 1999). The order of all rows decides between groups.
type index struct{ groups []group } // none: the table is small, has ranges, or too many masks; rows are tried one by one

type group struct {
	masks []uint64
	rows  map[uint64][]placed // by a hash of the masked values
}

type placed struct {
	row *Row
	at  int
}

// fewRows are looked through faster than an index.
const (
	fewRows     = 12
	rowsOfGroup = 6 // on average, at least
)

func newIndex(rows []*Row) *index {
	x := &index{}
	if len(rows) < fewRows {
		return x
	}
	for at, r := range rows {
		masks := make([]uint64, len(r.Match))
		for i, w := range r.Match {
			if w.Range {
				return &index{}
			}
			masks[i] = w.Mask
		}
		n := slices.IndexFunc(x.groups, func(g group) bool { return slices.Equal(g.masks, masks) })
		if n < 0 {
			if n = len(x.groups); n*rowsOfGroup > len(rows) {
				return &index{}
			}
			x.groups = append(x.groups, group{masks, map[uint64][]placed{}})
		}
		h := x.groups[n].hash(values(r.Match))
		x.groups[n].rows[h] = append(x.groups[n].rows[h], placed{r, at})
	}
	return x
}

func values(match []Match) []uint64 {
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

func (g *group) fits(r *Row, vals []uint64) bool {
	for i, m := range g.masks {
		if (vals[i]^r.Match[i].Value)&m != 0 {
			return false
		}
	}
	return true
}

// find the first row that fits; nil: none does.
func (x *index) find(vals []uint64) *Row {
	best := placed{at: 1 << 62}
	for i := range x.groups {
		g := &x.groups[i]
		for _, p := range g.rows[g.hash(vals)] {
			if p.at >= best.at {
				break
			}
			if g.fits(p.row, vals) {
				best = p
				break
			}
		}
	}
	return best.row
}
