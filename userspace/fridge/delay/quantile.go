package delay

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// fewest is the number of samples above a percentile from which it is reported: with half a sample the largest one exceeds the
// percentile with probability 1/2.
const fewest = 0.5

// Percentiles that every distribution reports.
var Percentiles = []struct {
	Name string
	Q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}}

// Label describes a distribution: its JSON name, title, unit and help text.
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
	count := s.CountBounds()
	d.CountLow, d.CountHigh, d.CountPromise = count.Low, count.High, count.Promise
	for _, p := range Percentiles {
		value, e := s.percentile(&d, p.Q)
		d.Quantiles = append(d.Quantiles, report.Quantile{Name: p.Name, Q: p.Q, Value: value, Low: e.Low, High: e.High, Promise: e.Promise,
			Defined: !math.IsNaN(value)})
	}
	return d
}

// Percentile with its enclosure; NaN with too few samples.
func (s *Spectrum) Percentile(q float64) (float64, Enclosure) {
	return s.percentile(&report.Distribution{Count: s.Count(), Buckets: s.Buckets()}, q)
}

func (s *Spectrum) percentile(d *report.Distribution, q float64) (float64, Enclosure) {
	if s.Effective()*(1-q) < fewest {
		return math.NaN(), Enclosure{}
	}
	value := d.At(middle(q, d.Count))
	return value, s.interval(q, value)
}

// middle is the centre of the value whose rank is the percentile's, as a share of the count: of two values the lower one is the
// median and covers the shares 0 to 1/2, so its centre is 1/4.
func middle(q, count float64) float64 {
	n := math.Round(count)
	if n < 1 {
		return q
	}
	return (rank(q, n) - 0.5) / n
}

// Above estimates the share of values beyond a limit and bounds it with 95 % confidence (Wilson 1927, with the effective number
// of samples). Unlike the intervals of percentiles it treats the window's requests as a sample of a service's behaviour, so that
// three slow requests of four do not prove a broken agreement.
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
