package delay

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Spectrum is an estimated distribution by bins.
type Spectrum struct {
	Scale  Scale
	Mass   []float64 // estimated number of values: the sum of the samples' weights
	Square []float64 // the sum of the squared weights
	Raw    []float64 // samples
	// Predicted is the weight that a sample of each bin would have; nil when nothing predicts it.
	Predicted []float64
	// Most is an upper bound of the number of values, from exact counters; 0: unknown.
	Most float64
	// Doubt is the systematic error of Count, from uncertainty of its correction.
	Doubt float64
	// Cluster is how many values are sampled together or not at all, by mean size weighted by size; 0 means 1.
	Cluster float64
}

// NewSpectrum is an empty spectrum.
func NewSpectrum(s Scale) *Spectrum {
	n := s.Bins.Len()
	return &Spectrum{Scale: s, Mass: make([]float64, n), Square: make([]float64, n), Raw: make([]float64, n)}
}

// Add sums another spectrum of the same scale into s.
func (s *Spectrum) Add(o *Spectrum) {
	for i := range s.Mass {
		s.Mass[i] += o.Mass[i]
		s.Square[i] += o.Square[i]
		s.Raw[i] += o.Raw[i]
	}
	if s.Predicted == nil {
		s.Predicted = o.Predicted
	}
	s.Cluster = max(s.Cluster, o.Cluster)
	s.Doubt += o.Doubt
}

// Plus sums the spectrum of another host into s, with the larger predicted weights and the larger cluster.
func (s *Spectrum) Plus(o *Spectrum) {
	predicted := s.Predicted
	s.Add(o)
	if predicted != nil && o.Predicted != nil {
		s.Predicted = slices.Clone(predicted)
		for i := range s.Predicted {
			s.Predicted[i] = max(s.Predicted[i], o.Predicted[i])
		}
	}
}

// Count is the estimated number of values.
func (s *Spectrum) Count() float64 { return sum(s.Mass) }

// Samples is the number of samples of the estimate.
func (s *Spectrum) Samples() float64 { return sum(s.Raw) }

func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}

// Effective is the number of equally weighted samples with the same relative error: (sum w)^2 / sum w^2.
func (s *Spectrum) Effective() float64 {
	square := sum(s.Square)
	if square == 0 {
		return 0
	}
	return s.Count() * s.Count() / square
}

// variance estimates the squared error of a bin's mass. Each value is sampled with probability q and then counts w = 1/q, so each
// adds (1-q)/q = w - 1 to the variance; its estimate over the samples is w(w-1). It is 0 without sampling.
func (s *Spectrum) variance(bin int) float64 { return max(0, s.Square[bin]-s.Mass[bin]) }

// CountErr is the standard error of Count.
func (s *Spectrum) CountErr() float64 {
	v := 0.0
	for bin := range s.Mass {
		v += s.variance(bin)
	}
	return math.Sqrt(v)
}

// Mean of the values, NaN for none.
func (s *Spectrum) Mean() float64 { return s.Sum() / s.Count() }

// Sum of the values.
func (s *Spectrum) Sum() float64 {
	total := 0.0
	for bin, mass := range s.Mass {
		if mass > 0 {
			total += mass * s.Scale.Centre(bin)
		}
	}
	return total
}

// Buckets is the cumulative distribution: the edges of the bins that hold something.
func (s *Spectrum) Buckets() []report.Bucket {
	var list []report.Bucket
	total, last := 0.0, math.Inf(-1)
	for bin, mass := range s.Mass {
		if mass <= 0 {
			continue
		}
		low, high := s.Scale.Edges(bin)
		if low > last {
			list = append(list, report.Bucket{Upper: low, Cumulative: total})
		}
		total += mass
		list = append(list, report.Bucket{Upper: high, Cumulative: total})
		last = high
	}
	return list
}
