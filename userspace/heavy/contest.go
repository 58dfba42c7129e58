package heavy

import (
	"cmp"
	"math"
	"slices"
)

// contest holds the counters that flows compete with in a window: rivals, and the values of single entries, over all CPUs.
type contest struct {
	rivals  []rival
	values  []float64 // sorted
	entries int       // of one way, on all CPUs that counted
	start   float64   // value of an empty entry
}

// The number of steps of a window, and of rivals by their weight.
const (
	contestSteps  = 32
	contestRivals = 16
)

// absent is the share of flows of a size that may be without an entry, at the size that is reported as the bound.
const absent = 0.05

// UnseenAmong is the value of Table.Unseen if so many units of flows without an entry passed, which take entries from those that
// have one.
//
// A flow of x units, evenly spread, finds a rival of value sqrt(i^2 + (r^2 - i^2) s) at the part s of the window, i being the
// initial value: by one packet in v + 1 an entry grows from v to v + 1, so that its square grows with time. A unit gets the entry
// with 1 over that value and one. From then on the entry has c, which grows with the flow's own units; so many units of others
// look at it in a window as come to one entry of a way, and one of them takes it with 1/(c + 1) if its other entry is not
// smaller: if that of a randomly drawn entry of a way, as they are at the end and grown like that too, is c or more. A flow that
// has lost its entry starts over.
func (w *Ways) UnseenAmong(unmatched float64) float64 {
	c := &w.contest
	if c.entries == 0 {
		return 0
	}
	looks, rivals := unmatched/float64(c.entries), c.typical()
	outside := func(x float64) (share float64) {
		last, without := math.NaN(), 0.0
		for _, r := range rivals { // sorted: where most entries are empty, most are equal
			if r != last {
				last, without = r, c.without(x, r, looks)
			}
			share += without / float64(len(rivals))
		}
		return share
	}
	low, high := 0.0, 1.0
	for outside(high) > absent && high < countMask {
		low, high = high, 2*high
	}
	for range 12 {
		if mid := (low + high) / 2; outside(mid) > absent {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

func (c *contest) sort() { slices.Sort(c.values) }

// typical are rivals that represent equal shares of all.
func (c *contest) typical() (list []float64) {
	sorted, sum := slices.SortedFunc(slices.Values(c.rivals), func(a, b rival) int { return cmp.Compare(a.value, b.value) }), 0.0
	for _, r := range sorted {
		sum += r.weight
	}
	passed := 0.0
	for _, r := range sorted {
		for passed += r.weight; len(list) < contestRivals && (float64(len(list))+.5)/contestRivals*sum <= passed*(1+1e-9); {
			list = append(list, r.value)
		}
	}
	return list
}

// without is the share of flows of x units and a rival r that have no entry at the end.
func (c *contest) without(x, r, looks float64) float64 {
	type cohort struct{ share, count float64 } // those that got the entry in one step, and its count
	var in [contestSteps]cohort
	out, step := 1.0, x/contestSteps
	for k := range contestSteps {
		past, back, first := (float64(k)+.5)/contestSteps, 0.0, c.start*c.start
		for j := range in[:k] {
			h := &in[j]
			h.count += step
			rest := h.share * math.Exp(-looks/contestSteps*c.above(math.Sqrt(max(0, first+(h.count*h.count-first)/past)))/(h.count+1))
			back += h.share - rest
			h.share = rest
		}
		value := math.Sqrt(first + (r*r-first)*past)
		in[k] = cohort{out * -math.Expm1(-step/(value+1)), value + 1 + step/2}
		out += back - in[k].share
	}
	return out
}

// above is the share of single entries with at least a value.
func (c *contest) above(value float64) float64 {
	at, _ := slices.BinarySearch(c.values, value)
	return 1 - float64(at)/float64(len(c.values))
}
