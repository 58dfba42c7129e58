package fridge

import (
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// Methods to combine the estimates of several fridges for the same delays (section 4.2). Each of n requests with a delay t enters
// one fridge k and is sampled there with probability q_k, so a combination with weights c_k that add up to 1 is unbiased and has
// the variance n (sum of c_k^2 / q_k - 1), which is least for c_k proportional to q_k.
const (
	// combineInverse predicts q_k(t) from p, M, and the rate of insertions. Its weights are independent of the samples, so they
	// add no bias.
	combineInverse = "inverse-variance"
	// combineFixed uses share times p for every delay.
	combineFixed = "fixed"
	// combineSampled is the paper's: 1 / sum of w^2 over the samples of the bin, and where only one fridge has samples, its
	// estimate unchanged. With few samples the weights are correlated with them: a fridge that happened to sample more counts
	// more.
	combineSampled = "sample-variance"
)

// combiner weighs the fridges' estimates for one bin.
type combiner func(bin int, sums []delay.Sums) []float64

// combiner for spectra whose bin is delays around delayOf(bin), in ns.
func (c *config) combiner(r *rates, parts []layout.Part, over float64, delayOf func(bin int) float64) combiner {
	weights := make([]float64, len(parts))
	switch c.combine {
	case combineSampled:
		return func(_ int, sums []delay.Sums) []float64 { return bySample(weights, sums) }
	case combineFixed:
		for k, p := range parts {
			weights[k] = p.Inclusion()
		}
		normalise(weights)
		return func(int, []delay.Sums) []float64 { return weights }
	}
	return func(bin int, _ []delay.Sums) []float64 {
		t := delayOf(bin)
		for k := range weights {
			weights[k] = r.included(parts, k, t, over)
		}
		return normalise(weights)
	}
}

func bySample(weights []float64, sums []delay.Sums) []float64 {
	for k, s := range sums {
		weights[k] = 0
		if s.Square > 0 {
			weights[k] = 1 / s.Square
		}
	}
	return normalise(weights)
}

// normalise makes the weights add up to 1; they are equal when all are 0.
func normalise(weights []float64) []float64 {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for k := range weights {
		if total > 0 {
			weights[k] /= total
		} else {
			weights[k] = 1 / float64(len(weights))
		}
	}
	return weights
}
