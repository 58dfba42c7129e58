package delay

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Normal95 is how many standard errors a 95 % confidence interval reaches to each side.
const Normal95 = 1.959964

// fewest samples above a percentile for it to be reported: half a sample means that the largest one is beyond it as
// likely as not.
const fewest = 0.5

// Percentiles that every distribution reports.
var Percentiles = []struct {
	Name string
	Q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}}

// Label says what a distribution is: its JSON name, its title, its unit, its help text.
type Label struct {
	Name, Title, Help string
	Unit              report.Unit
}

func (l Label) distribution() report.Distribution {
	return report.Distribution{Name: l.Name, Title: l.Title, Help: l.Help, Unit: l.Unit}
}

// Distribution reports the spectrum.
func (s *Spectrum) Distribution(l Label) report.Distribution {
	d := l.distribution()
	d.Count, d.CountErr, d.Sum, d.Buckets = s.Count(), s.CountErr(), s.Sum(), s.Buckets()
	if d.Count > 0 {
		d.Mean = s.Mean()
	}
	effective := s.Effective()
	for _, p := range Percentiles {
		q := report.Quantile{Name: p.Name, Q: p.Q, Defined: effective*(1-p.Q) >= fewest}
		if q.Defined {
			q.Value = d.At(p.Q)
			q.Low, q.High = s.interval(&d, p.Q, q.Value)
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	return d
}

// interval bounds a percentile with 95 % confidence by the way of Woodruff (1952): the share of values below it has a
// standard error, and the values at which the distribution reaches the share less and plus two of them are the bounds.
// It says how far the estimate may be from the values that really passed, so with p = 1 and nothing evicted only the
// width of the bin remains, inside of which nothing is known.
func (s *Spectrum) interval(d *report.Distribution, q, value float64) (low, high float64) {
	reach := Normal95 * s.shareErr(q, value)
	low, high = s.Scale.Edges(s.Scale.Bin(value))
	if q-reach > 0 {
		low = min(low, d.At(q-reach))
	} else {
		low = 0
	}
	if q+reach >= 1 {
		return max(0, low), math.Inf(1) // nothing of the estimate lies above: no bound is known
	}
	return max(0, low), max(high, d.At(q+reach))
}

// shareErr is the standard error of the estimated share q of values that are at most t. The share is a ratio of two sums
// that have the samples below t in common.
func (s *Spectrum) shareErr(q, t float64) float64 {
	below, above, edge := 0.0, 0.0, s.Scale.Bin(t)
	for bin := range s.Mass {
		switch v := s.variance(bin); {
		case bin < edge:
			below += v
		case bin > edge:
			above += v
		default:
			below += v / 2
			above += v / 2
		}
	}
	return math.Sqrt((1-q)*(1-q)*below+q*q*above) / s.Count()
}

// Above estimates the share of values beyond a limit and bounds it with 95 % confidence (Wilson 1927, with the
// effective number of samples). Unlike the intervals of percentiles it takes what passed as a sample of a service, so
// that three slow requests of four do not condemn anybody.
func (s *Spectrum) Above(limit float64) (share, low, high float64) {
	n := s.Effective()
	if n == 0 {
		return math.NaN(), 0, 1
	}
	d := report.Distribution{Buckets: s.Buckets()}
	share = 1 - d.Share(limit)
	z2 := Normal95 * Normal95
	centre := (share + z2/(2*n)) / (1 + z2/n)
	reach := Normal95 * math.Sqrt(share*(1-share)/n+z2/(4*n*n)) / (1 + z2/n)
	return share, max(0, centre-reach), min(1, centre+reach)
}
