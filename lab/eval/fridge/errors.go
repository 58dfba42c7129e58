package fridge

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// truth is every delay of a trace, in ns, in order.
type truth []int64

func newTruth(delays []int64) truth {
	t := slices.Clone(delays)
	slices.Sort(t)
	return t
}

// at is a percentile, 0..1.
func (t truth) at(q float64) float64 { return float64(delay.Percentile(t, q)) }

// The errors that the paper looks at.
const (
	at50 = iota
	at95
	at99
	atMost // the largest from the 5th to the 95th percentile
	errorKinds
)

var (
	errorNames = [errorKinds]string{"p50", "p95", "p99", "maximum"}
	quantiles  = [...]float64{0.50, 0.95, 0.99}
)

// errs are distances |log2(estimate/truth)| by kind.
type errs [errorKinds]float64

// gap is log2(estimate/truth) at a percentile; NaN for an estimate without samples.
func (t truth) gap(d report.Distribution, q float64) float64 { return math.Log2(d.At(q) / t.at(q)) }

// errors of an estimate. What has no samples is infinitely wrong.
func (t truth) errors(d report.Distribution) (e errs) {
	far := func(q float64) float64 {
		if gap := math.Abs(t.gap(d, q)); !math.IsNaN(gap) {
			return gap
		}
		return math.Inf(1)
	}
	for i, q := range quantiles {
		e[i] = far(q)
	}
	for percent := 5; percent <= 95; percent++ {
		e[atMost] = max(e[atMost], far(float64(percent)/100))
	}
	return e
}

// single is what to expect of one run: the root of the mean squared error.
func (o *outcome) single(t truth) (e errs) {
	for _, d := range o.runs {
		for i, x := range t.errors(d) {
			e[i] += x * x / float64(len(o.runs))
		}
	}
	for i := range e {
		e[i] = math.Sqrt(e[i])
	}
	return e
}

// worst of the runs.
func (o *outcome) worst(t truth) (e errs) {
	for _, d := range o.runs {
		for i, x := range t.errors(d) {
			e[i] = max(e[i], x)
		}
	}
	return e
}

// combined is the average of the runs' CDFs. Runs without a sample have none and are left out.
func (o *outcome) combined() report.Distribution {
	var all report.Distribution
	var runs []report.Distribution
	var edges []float64
	for _, d := range o.runs {
		if d.Total() > 0 {
			runs = append(runs, d)
			for _, b := range d.Buckets {
				edges = append(edges, b.Upper)
			}
		}
	}
	slices.Sort(edges)
	for _, x := range slices.Compact(edges) {
		share := 0.0
		for _, d := range runs {
			share += d.Share(x) / float64(len(runs))
		}
		all.Buckets = append(all.Buckets, report.Bucket{Upper: x, Cumulative: share})
	}
	return all
}

// ratio of the estimated number of samples to the true one, averaged over the runs, and its standard error.
func (o *outcome) ratio(t truth) (mean, se float64) {
	n := float64(len(o.runs))
	var sum, square float64
	for _, d := range o.runs {
		r := d.Count / float64(len(t))
		sum += r
		square += r * r
	}
	mean = sum / n
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, math.Sqrt(max(0, square-sum*mean) / (n - 1) / n)
}

// samples of a run, on average.
func (o *outcome) samples() float64 {
	sum := 0.0
	for _, n := range o.matched {
		sum += n
	}
	return sum / float64(len(o.matched))
}
