package scene

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// merge adds two distributions of one name, as if their values had been counted together. Buckets need not be cut at
// the same places. Percentiles have no interval: what it would be depends on how the values were sampled.
func merge(a, b report.Distribution) report.Distribution {
	if a.Total() == 0 {
		return withoutIntervals(b)
	}
	if b.Total() == 0 {
		return withoutIntervals(a)
	}
	sum := report.Distribution{Name: b.Name, Title: b.Title, Unit: b.Unit, Help: b.Help,
		Count: a.Count + b.Count, Sum: a.Sum + b.Sum, CountErr: math.Hypot(a.CountErr, b.CountErr)}
	if sum.Count > 0 {
		sum.Mean = sum.Sum / sum.Count
	}
	for _, upper := range uppers(a, b) {
		sum.Buckets = append(sum.Buckets, report.Bucket{Upper: upper, Cumulative: upTo(a, upper) + upTo(b, upper)})
	}
	for _, q := range b.Quantiles {
		q.Value, q.Low, q.High, q.Defined = sum.At(q.Q), 0, 0, true
		sum.Quantiles = append(sum.Quantiles, q)
	}
	return sum
}

func withoutIntervals(d report.Distribution) report.Distribution {
	d.Quantiles = slices.Clone(d.Quantiles)
	for i := range d.Quantiles {
		d.Quantiles[i].Low, d.Quantiles[i].High = 0, 0
	}
	return d
}

// upTo is the number of values that are at most x.
func upTo(d report.Distribution, x float64) float64 { return d.Share(x) * d.Total() }

// uppers are the bounds of both, in order and once.
func uppers(a, b report.Distribution) []float64 {
	var all []float64
	for _, d := range []report.Distribution{a, b} {
		for _, bucket := range d.Buckets {
			all = append(all, bucket.Upper)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
