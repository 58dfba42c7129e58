package report

import (
	"math"
	"sort"
)

// Total is the last cumulative count, which the shares of the CDF refer to; 0 for an empty distribution.
func (d Distribution) Total() float64 {
	if len(d.Buckets) == 0 {
		return 0
	}
	return d.Buckets[len(d.Buckets)-1].Cumulative
}

// Share returns the part of the values that are at most x, 0..1. Inside a bucket the values are taken to be
// spread evenly on a logarithmic axis, which is how the buckets of delays and sizes are cut.
func (d Distribution) Share(x float64) float64 {
	total := d.Total()
	if !(total > 0) {
		return math.NaN()
	}
	i := sort.Search(len(d.Buckets), func(i int) bool { return d.Buckets[i].Upper >= x })
	if i == len(d.Buckets) {
		return 1
	}
	low, high := d.cumulativeBefore(i), d.Buckets[i].Cumulative
	return clamp01((low + (high-low)*d.position(i, x)) / total)
}

// position is the relative position of x inside bucket i, 0..1. The first bucket has no lower end: all of it is at its upper end.
func (d Distribution) position(i int, x float64) float64 {
	upper := d.Buckets[i].Upper
	if x >= upper {
		return 1
	}
	if i == 0 {
		return 0
	}
	lower := d.Buckets[i-1].Upper
	if math.IsInf(upper, 1) {
		return 0
	}
	if lower > 0 {
		return clamp01(math.Log(x/lower) / math.Log(upper/lower))
	}
	return clamp01((x - lower) / (upper - lower))
}

// At returns the value below which the share q (0..1) of the distribution lies, by the inverse of Share; NaN for
// an empty distribution.
func (d Distribution) At(q float64) float64 {
	total := d.Total()
	if !(total > 0) {
		return math.NaN()
	}
	want := q * total
	i := sort.Search(len(d.Buckets), func(i int) bool { return d.Buckets[i].Cumulative >= want && d.Buckets[i].Cumulative > 0 })
	if i == len(d.Buckets) {
		i--
	}
	return d.inside(i, want)
}

// inside returns the value in bucket i at which the cumulative count reaches want.
func (d Distribution) inside(i int, want float64) float64 {
	upper := d.Buckets[i].Upper
	if i == 0 {
		return upper
	}
	lower := d.Buckets[i-1].Upper
	if math.IsInf(upper, 1) {
		return lower
	}
	low, high := d.Buckets[i-1].Cumulative, d.Buckets[i].Cumulative
	if high <= low {
		return upper
	}
	f := clamp01((want - low) / (high - low))
	if lower > 0 {
		return lower * math.Pow(upper/lower, f)
	}
	return lower + (upper-lower)*f
}

func clamp01(x float64) float64 { return min(1, max(0, x)) }
