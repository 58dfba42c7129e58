package delay

import (
	"slices"

	"github.com/xdpmon/xdpmon/maps"
)

// RepeatBins are the bins in which the data plane counts requests that found an earlier occurrence of themselves:
// REPEAT_BINS of bpf/fridge/fridge.bpf.c.
var RepeatBins = maps.Bins{Bits: Bits, Mantissa: 3}

// Repeats estimates how many different requests a run of occurrences contains. A record can only be overwritten by different
// requests, since repetitions have the same slot, but the data plane counts occurrences.
//
// A run of x occurrences holds two consecutive ones of the same request, with n others in between, in x - n - 1 places. So if of
// all occurrences a share r(n) follows another one of the same request after n others, the run holds x - sum over n < x - 1 of
// r(n) (x - n - 1) different requests. r(n) is measured as delays are: a repetition finds the previous occurrence if none of the
// n others took its slot, with a probability q(n) that depends on how many different requests they were, that is, on r of smaller
// gaps; each such repetition has weight 1/q(n).
type Repeats struct {
	gaps  []float64 // n + 1, ascending
	rate  []float64 // sum of r up to each gap
	moved []float64 // sum of r (n + 1) up to each gap
	Found float64   // repetitions that found their record
	Lost  float64   // estimated number of those that did not: it had been overwritten
}

// Gap is a number of repetitions that found the occurrence before them after Others occurrences of other requests.
type Gap struct {
	Others float64
	Found  float64
}

// NewRepeats takes gaps in ascending order, seen among so many occurrences; f gives the survival probability of a record.
func NewRepeats(gaps []Gap, occurrences float64, f Factor) *Repeats {
	r := &Repeats{}
	f.Repeats, f.Inclusion = r, 1
	rate, moved := 0.0, 0.0
	for _, g := range gaps {
		if g.Found == 0 || occurrences == 0 {
			continue
		}
		pairs := g.Found * f.Weight(g.Others)
		share := min(pairs/occurrences, 1-rate)
		r.Found += g.Found
		r.Lost += pairs - g.Found
		rate += share
		moved += share * (g.Others + 1)
		r.gaps = append(r.gaps, g.Others+1)
		r.rate = append(r.rate, rate)
		r.moved = append(r.moved, moved)
	}
	return r
}

// Different requests among x occurrences in a row; x itself for nil.
func (r *Repeats) Different(x float64) float64 {
	if r == nil || len(r.gaps) == 0 {
		return x
	}
	i, _ := slices.BinarySearch(r.gaps, x)
	if i == 0 {
		return x
	}
	return x - r.rate[i-1]*x + r.moved[i-1]
}
