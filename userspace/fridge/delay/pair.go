package delay

import "math"

// Pair corrects n samples of which the data plane has added up weights, as if all insertions had been different requests, and exponents,
// the logarithms of what these weights are beyond those of samples that survived nothing.
//
// The right weight is an exponential of the *different* requests among the x insertions, so neither sum is the right one. Turning
// the mean weight back into an x would be right if all samples had the same x; of samples with one delay some
// survived a burst and some did not, and the mean of exponentials is more than the exponential of the mean, so that x came out too
// large. The two sums say how far apart the x lie: samples are taken for two values, as many of the one as of the other,
// with this mean and this mean weight; or where the smaller one would be less than none, for 0 and another one. With insertions that are all
// different the sum of the weights is what it was, wherever the samples lie.
//
// doubt is how far an exponent may be off, by rounding: within it the mean is taken for the one with which the samples lie closest together.
func (f Factor) Pair(sum, n, exponents, doubt float64) Sums {
	s := Sums{N: n, Apart: sum}
	exponential := max(1, sum/n*f.Inclusion)
	low, high, share := two(min(exponents/n+doubt, math.Log(exponential)), exponential)
	for _, p := range []struct{ share, exponent float64 }{{1 - share, low}, {share, high}} {
		x := p.exponent / f.exponent()
		w := f.Weight(x)
		s.Weight += n * p.share * w
		s.Square += n * p.share * w * w
		s.Survived += n * p.share * x
	}
	return s
}

// two exponents, and the share of the higher one, with a mean and a mean of the exponentials.
func two(mean, exponential float64) (low, high, share float64) {
	apart := math.Acosh(max(1, exponential*math.Exp(-mean)))
	if apart <= mean {
		return mean - apart, mean + apart, 0.5
	}
	// 1 - share + share e^high = exponential with share = mean / high: rises with high.
	more := func(high float64) bool { return mean*math.Expm1(high)/high < exponential-1 }
	for low, high = mean, mean+apart; more(high); {
		low, high = high, 2*high
	}
	for range 50 {
		if middle := (low + high) / 2; more(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return 0, high, min(1, mean/high)
}
