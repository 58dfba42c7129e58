package mutate

import "github.com/xdpmon/xdpmon/p4/tna/lang"

// region is a set of keys: one condition for each part of the key.
type region []lang.Match

// mostSplits bounds the search for a key that no earlier row takes; beyond it there may be one.
const mostSplits = 20_000

// reachable: some key gets to this region past the rows before it.
func reachable(r region, before []*lang.Row) bool {
	splits := 0
	return remains(r, before, &splits)
}

// remains of a region when rows have taken theirs.
func remains(r region, rows []*lang.Row, splits *int) bool {
	for n, row := range rows {
		if _, meet := both(r, row.Match); !meet {
			continue
		}
		for i, w := range row.Match {
			inside, outside := split(r[i], w)
			if outside == nil {
				continue
			}
			if *splits++; *splits > mostSplits {
				return true
			}
			for _, part := range outside {
				if remains(with(r, i, part), rows[n+1:], splits) {
					return true
				}
			}
			r = with(r, i, inside)
		}
		return false // what is left is this row's
	}
	return true
}

func with(r region, i int, m lang.Match) region {
	other := append(region(nil), r...)
	other[i] = m
	return other
}

// split a condition by another one that it meets: what is in both, and the parts that are not. Masks come apart bit by bit.
func split(a, b lang.Match) (inside lang.Match, outside []lang.Match) {
	if a.Range {
		inside = lang.Match{Value: max(a.Value, b.Value), High: min(a.High, b.High), Range: true}
		if a.Value < inside.Value {
			outside = append(outside, lang.Match{Value: a.Value, High: inside.Value - 1, Range: true})
		}
		if a.High > inside.High {
			outside = append(outside, lang.Match{Value: inside.High + 1, High: a.High, Range: true})
		}
		return inside, outside
	}
	inside = a
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if b.Mask&^a.Mask&bit == 0 {
			continue
		}
		other := inside
		other.Mask, other.Value = inside.Mask|bit, inside.Value|^b.Value&bit
		outside = append(outside, other)
		inside.Mask, inside.Value = inside.Mask|bit, inside.Value|b.Value&bit
	}
	return inside, outside
}

// both conditions at once; false when no key fits both.
func both(a, b []lang.Match) (region, bool) {
	r := make(region, len(a))
	for i, v := range a {
		w := b[i]
		if v.Range {
			r[i] = lang.Match{Value: max(v.Value, w.Value), High: min(v.High, w.High), Range: true}
			if r[i].Value > r[i].High {
				return nil, false
			}
			continue
		}
		if (v.Value^w.Value)&v.Mask&w.Mask != 0 {
			return nil, false
		}
		r[i] = lang.Match{Value: v.Value | w.Value, Mask: v.Mask | w.Mask}
	}
	return r, true
}
