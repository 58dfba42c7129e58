package delay

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// exactBins are the buckets of an exact CDF: 128 an octave, so that a bucket is less than 1 % wide.
var exactBins = maps.Bins{Bits: 64, Mantissa: 7}

// Exact reports all values of a window; it sorts them. A percentile q is the smallest value that at least a share q of the values
// does not exceed.
func Exact(l Label, values []int64) report.Distribution {
	d := l.distribution()
	slices.Sort(values)
	n := float64(len(values))
	d.Count = n
	for _, v := range values {
		d.Sum += float64(v)
	}
	if n > 0 {
		d.Mean = d.Sum / n
	}
	for _, p := range Percentiles {
		q := report.Quantile{Name: p.Name, Q: p.Q, Defined: n*(1-p.Q) >= fewest}
		if q.Defined {
			q.Value = float64(Percentile(values, p.Q))
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	d.Buckets = exactBuckets(values)
	return d
}

// Percentile of values in order.
func Percentile(sorted []int64, q float64) int64 {
	return sorted[int(rank(q, float64(len(sorted))))-1]
}

// rank of a percentile among n sorted values, from 1 on. The factor corrects floating-point error: q*n may be slightly above its
// exact integer value.
func rank(q, n float64) float64 { return min(max(math.Ceil(q*n*(1-1e-12)), 1), n) }

func exactBuckets(sorted []int64) []report.Bucket {
	var list []report.Bucket
	for i := 0; i < len(sorted); {
		bin := exactBins.Index(uint64(max(sorted[i], 0)))
		low, high := exactBins.Range(bin)
		if lower := math.Nextafter(float64(low), math.Inf(-1)); len(list) == 0 || list[len(list)-1].Upper < lower {
			list = append(list, report.Bucket{Upper: lower, Cumulative: float64(i)})
		}
		for i < len(sorted) && uint64(max(sorted[i], 0)) < high {
			i++
		}
		list = append(list, report.Bucket{Upper: float64(high - 1), Cumulative: float64(i)})
	}
	return list
}
