package fridge

import "github.com/xdpmon/xdpmon/userspace/fridge/delay"

// Ways to combine what several fridges say of the same delays (section 4.2). Every one of n requests with a delay t goes
// into one fridge k and comes back from it with probability q_k, so a combination with weights c_k that add up to 1 is
// unbiased and has the variance n (sum of c_k^2 / q_k - 1): best is c_k proportional to q_k.
const (
	// combineInverse predicts q_k(t) from p, M, and the rate of insertions. The weights do not depend on the samples
	// that they weigh, so they add no bias.
	combineInverse = "inverse-variance"
	// combineFixed takes share times p for every delay.
	combineFixed = "fixed"
	// combineSampled is the paper's: 1 / sum of w^2 over the samples of the bin, and where only one fridge has samples its
	// estimate as it stands. Where samples are few the weights depend on them: fridges that were lucky count more.
	combineSampled = "sample-variance"
)

// combiner weighs the fridges' estimates for one bin.
type combiner func(bin int, sums []delay.Sums) []float64

// combiner for spectra whose bin stands for delays around delayOf(bin), in ns.
func (c *config) combiner(r *rates, delayOf func(bin int) float64) combiner {
	weights := make([]float64, len(c.parts))
	switch c.combine {
	case combineSampled:
		return func(_ int, sums []delay.Sums) []float64 { return bySample(weights, sums) }
	case combineFixed:
		for k, p := range c.parts {
			weights[k] = p.Inclusion()
		}
		normalise(weights)
		return func(int, []delay.Sums) []float64 { return weights }
	}
	return func(bin int, _ []delay.Sums) []float64 {
		t := delayOf(bin)
		for k := range weights {
			weights[k] = r.included(k, t)
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

// normalise makes the weights add up to 1; what predicts nothing counts equally.
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
