package delay

import "math"

// Pair corrects n samples for which the data plane has summed weights, assuming that all insertions were different requests, and exponents:
// the logarithms of these weights relative to that of a sample that survived no insertion. The correct weight is an exponential of the
// number of *different* requests among the x insertions, so neither sum can be used as it is. Converting the mean weight to an x would be
// correct if all samples had the same x. Of samples with equal delays some survived a burst and some did not, and the mean of exponentials
// exceeds the exponential of the mean, so that x would be too large. The two sums together give the scatter of x: the samples are modelled
// as two values of x with equal frequency, this mean and this mean weight; or, where the smaller one would be negative, as 0 and another
// value. If all insertions are different the sum of the weights is unchanged, however the samples are distributed. doubt is the rounding
// error of an exponent: within it the mean is chosen so that the samples scatter least.
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

// two returns two exponents, and the share of the higher one, that have the given mean and mean of exponentials.
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
