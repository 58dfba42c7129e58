package fridge

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// survivedBits is the width of the recorded x: survived insertions modulo 2^24.
const survivedBits = 24

// weightBins are the bins of x that the data plane looks a weight up by: BINS(24, WEIGHT_MANTISSA).
var weightBins = maps.Bins{Bits: survivedBits, Mantissa: 5}

// tableStep is the ratio of the factors at the ends of a rule, where the bins of x allow it: up to x = 0.6 M. Beyond, a rule is
// one bin, 1/32 of an octave of x, and the ratio grows to 1.03 at M and 1.06 at 2 M. Below x = 0.16 M the steps are finer, down
// to tableFirst, so that the samples of an idle fridge have weight 1. The paper (section 6.2) uses 1.1; TestTable measures the
// remaining error.
const (
	tableStep  = 1.02
	tableFirst = 1.004
)

// step allowed for a rule that begins after some lifetimes.
func step(lives float64) float64 { return min(tableStep, max(tableFirst, 1+lives/8)) }

// rule assigns one weight to all x with a common bit prefix.
type rule struct {
	low    uint32 // first x
	size   uint32 // a power of two
	weight uint32 // 2^-8

	exponent uint32 // 2^-8: logarithm of weight / (weight of a sample that survived no insertion)
}

// rules cover all x by prefixes.
func rules(f delay.Factor) []rule {
	r := ruler{factor: f, exponent: -math.Log1p(-1 / float64(f.Slots))}
	r.split(0, 1<<survivedBits)
	return r.rules
}

type ruler struct {
	factor   delay.Factor
	exponent float64
	rules    []rule
}

func (r *ruler) split(low, size uint32) {
	leaf := weightBins.Index(uint64(low)) == weightBins.Index(uint64(low+size-1))
	even := math.Exp(r.exponent*float64(size-1)) <= step(r.exponent*float64(low))
	least := r.factor.Weight(float64(low)) * weightOne
	if leaf || even || least >= math.MaxUint32 {
		w := r.weight(low, size)
		r.rules = append(r.rules, rule{low: low, size: size, weight: w, exponent: r.of(w)})
		return
	}
	r.split(low, size/2)
	r.split(low+size/2, size/2)
}

// weight of a range of x: the inverse of the mean survival probability, since fewer samples survive at the range's upper end and
// the survivors have to represent all.
func (r *ruler) weight(low, size uint32) uint32 {
	a := r.exponent
	// mean of exp(-a i) for i in [0, size)
	mean := math.Expm1(-a*float64(size)) / math.Expm1(-a) / float64(size)
	w := r.factor.Weight(float64(low)) / mean * weightOne
	return uint32(math.Round(min(w, math.MaxUint32)))
}

// of returns the exponent of a weight.
func (r *ruler) of(weight uint32) uint32 {
	beyond := math.Log(float64(weight) / weightOne * r.factor.Inclusion)
	return uint32(math.Round(max(0, beyond) * exponentOne))
}

// weightTable is fridge_weights: [fridge][bin of x].
func (c *config) weightTable() []uint64 {
	n := weightBins.Len()
	words := make([]uint64, layout.Most*n)
	for k, p := range c.parts {
		f := p.Factor()
		if c.follows() {
			f.Inclusion = 1 // userspace knows the setting of each plane
		}
		for _, r := range rules(f) {
			first, last := weightBins.Index(uint64(r.low)), weightBins.Index(uint64(r.low+r.size-1))
			for bin := first; bin <= last; bin++ {
				words[k*n+bin] = uint64(r.exponent)<<32 | uint64(r.weight)
			}
		}
	}
	return words
}
