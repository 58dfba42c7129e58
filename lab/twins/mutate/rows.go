package mutate

import "github.com/xdpmon/xdpmon/p4/tna/lang"

// region is a set of keys: one condition for each part of the key.
type region []part

// part is what one condition fits, and none of others.
type part struct {
	lang.Match
	but []lang.Match
}

// mostSplits bounds the search for a key that no earlier row takes; beyond it there may be one.
const mostSplits = 20_000

// reachable: some key that fits all of these gets past the rows before it.
func reachable(keys []lang.Match, before []*lang.Row) bool {
	splits := 0
	return remains(regionOf(keys), before, &splits)
}

func regionOf(keys []lang.Match) region {
	r := make(region, len(keys))
	for i, m := range keys {
		r[i] = part{Match: m}
	}
	return r
}

// remains of a region when rows have taken theirs.
func remains(r region, rows []*lang.Row, splits *int) bool {
	for n, row := range rows {
		inside, meet := r.within(row.Match)
		if !meet {
			continue
		}
		for i, w := range row.Match {
			outside := part{r[i].Match, append(append([]lang.Match(nil), r[i].but...), w)}
			if !some(outside.Match, outside.but) {
				continue
			}
			if *splits++; *splits > mostSplits {
				return true
			}
			rest := append(append(append(region(nil), inside[:i]...), outside), r[i+1:]...)
			if remains(rest, rows[n+1:], splits) {
				return true
			}
		}
		return false // what is left is this row's
	}
	return true
}

// within is the part of a region that a row takes; false when there is none.
func (r region) within(row []lang.Match) (inside region, meet bool) {
	for i, p := range r {
		m, ok := both(p.Match, row[i])
		if !ok || !some(m, p.but) {
			return nil, false
		}
		inside = append(inside, part{m, p.but})
	}
	return inside, true
}

// some value fits a condition, and none of others.
func some(m lang.Match, but []lang.Match) bool {
	for n, b := range but {
		if _, meet := both(m, b); !meet {
			continue
		}
		for _, left := range without(m, b) {
			if some(left, but[n+1:]) {
				return true
			}
		}
		return false
	}
	return true
}

// without is what of a condition another one, that it meets, leaves. Masks are divided bit by bit.
func without(a, b lang.Match) (left []lang.Match) {
	if a.Range {
		if a.Value < b.Value {
			left = append(left, lang.Match{Value: a.Value, High: b.Value - 1, Range: true})
		}
		if a.High > b.High {
			left = append(left, lang.Match{Value: b.High + 1, High: a.High, Range: true})
		}
		return left
	}
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if b.Mask&^a.Mask&bit == 0 {
			continue
		}
		left = append(left, lang.Match{Value: a.Value | ^b.Value&bit, Mask: a.Mask | bit})
		a.Mask, a.Value = a.Mask|bit, a.Value|b.Value&bit
	}
	return left
}

// both conditions at once; false when nothing fits both.
func both(a, b lang.Match) (lang.Match, bool) {
	if a.Range {
		m := lang.Match{Value: max(a.Value, b.Value), High: min(a.High, b.High), Range: true}
		return m, m.Value <= m.High
	}
	return lang.Match{Value: a.Value | b.Value, Mask: a.Mask | b.Mask}, (a.Value^b.Value)&a.Mask&b.Mask == 0
}

// common keys of two rows.
func common(a, b []lang.Match) (keys []lang.Match, meet bool) {
	for i := range a {
		m, ok := both(a[i], b[i])
		if !ok {
			return nil, false
		}
		keys = append(keys, m)
	}
	return keys, true
}
