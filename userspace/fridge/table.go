package fridge

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// survivedBits is how far x is kept: survived insertions modulo 2^24.
const survivedBits = 24

// weightBins are the bins of x that the data plane looks a weight up by: BINS(24, WEIGHT_MANTISSA).
var weightBins = maps.Bins{Bits: survivedBits, Mantissa: 5}

// tableStep is the ratio of the factors at the ends of a rule, where the bins of x allow it: up to x = 0.6 M. Beyond, a
// rule is one bin, 1/32 of an octave of x, and the ratio grows to 1.03 at M and 1.06 at 2 M. Below x = 0.16 M the steps
// are finer, down to tableFirst, so that the samples of an idle fridge count as one. The paper (section 6.2) takes 1.1;
// what is left of the error is in TestTable.
const (
	tableStep  = 1.02
	tableFirst = 1.004
)

// step allowed for a rule that begins after some lifetimes.
func step(lives float64) float64 { return min(tableStep, max(tableFirst, 1+lives/8)) }

// rule gives one weight to all x that begin with a prefix.
type rule struct {
	low    uint32 // first x
	size   uint32 // a power of two
	weight uint32 // 2^-8

	exponent uint32 // 2^-8: logarithm of what the weight is beyond that of a sample that survived nothing
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

// weight of a range of x: the inverse of the mean probability to come back, since those that come back are fewer at the
// range's upper end and have to stand for all.
func (r *ruler) weight(low, size uint32) uint32 {
	a := r.exponent
	// mean of exp(-a i) for i in [0, size)
	mean := math.Expm1(-a*float64(size)) / math.Expm1(-a) / float64(size)
	w := r.factor.Weight(float64(low)) / mean * weightOne
	return uint32(math.Round(min(w, math.MaxUint32)))
}

// of a weight its exponent.
func (r *ruler) of(weight uint32) uint32 {
	beyond := math.Log(float64(weight) / weightOne * r.factor.Inclusion)
	return uint32(math.Round(max(0, beyond) * exponentOne))
}

// weightTable is fridge_weights: [fridge][bin of x].
func (c *config) weightTable() []uint64 {
	n := weightBins.Len()
	words := make([]uint64, maxFridges*n)
	for k, p := range c.parts {
		for _, r := range rules(p.Factor()) {
			first, last := weightBins.Index(uint64(r.low)), weightBins.Index(uint64(r.low+r.size-1))
			for bin := first; bin <= last; bin++ {
				words[k*n+bin] = uint64(r.exponent)<<32 | uint64(r.weight)
			}
		}
	}
	return words
}
