// Package expect predicts the recall of a top-k list from the distribution of flows and the error of their estimates.
package expect

import "math"

// Recall is the share of the k largest of n flows that is expected among the k largest estimates, when the flow of
// rank r (from 0, the largest first) has value(r) and its estimate errs by a normal deviation(value). A flow is listed when
// its estimate passes the limit at which k flows are expected to pass; ranks beyond the first thousands are taken together,
// as many as their distance.
func Recall(k, n int, value func(rank float64) float64, deviation func(value float64) float64) float64 {
	if k >= n {
		return 1
	}
	passing := func(limit float64, ranks int) (sum float64) {
		for r, step := 0.0, 1.0; int(r) < ranks; r += step {
			step = min(max(1, math.Floor(r/64)), float64(ranks)-r)
			v := value(r + (step-1)/2)
			sum += step * Above((limit-v)/max(deviation(v), 1e-9*v))
		}
		return sum
	}
	low, high := 0.0, 2*value(0)+8*deviation(value(0))
	for range 40 {
		if middle := (low + high) / 2; passing(middle, n) > float64(k) {
			low = middle
		} else {
			high = middle
		}
	}
	return passing((low+high)/2, k) / float64(k)
}

// Above is the probability that a standard normal variable exceeds z.
func Above(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// Skewed is the size of the flow of a rank (from 0), relative to the largest, with CAIDA-like skew: (11/(rank+11))^1.1.
func Skewed(rank float64) float64 { return math.Pow(11/(rank+11), 1.1) }

// squaresFrom is the sum of squared values of the flows from a rank on.
func squaresFrom(rank, n int, value func(rank float64) float64) (sum float64) {
	for r, step := float64(rank), 1.0; int(r) < n; r += step {
		step = min(max(1, math.Floor(r/64)), float64(n)-r)
		v := value(r + (step-1)/2)
		sum += step * v * v
	}
	return sum
}

// Deviation is the standard error of the median of five rows whose cells hold the flows from a rank on. These are the unreported
// flows: reported ones are subtracted.
func Deviation(reported, n, columns int, value func(rank float64) float64) float64 {
	return MedianError * math.Sqrt(squaresFrom(reported, n, value)/float64(columns))
}

// MedianError is the standard deviation of the median of five normal variables of deviation 1.
const MedianError = 0.536
