package fridge

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// layer is one histogram as read from the data plane: [row][fridge][survival][bin], or without the survival index.
type layer struct {
	words []uint64
	hits  []uint64 // table correction: number of samples in the sums, and their exponents; nil where the data plane does not count them
	scale delay.Scale
}

// estimator turns layers into spectra.
type estimator struct {
	*config
	rates *rates
	lives []setting // the present one last
	span  [2]int64  // of the window
	lost  float64   // repetitions of the window that did not find their record
}

// steady is the relative error of assuming that the share of repeated requests among the insertions that a record survives is
// that of the whole window. With TSvals of changing connections, where four of ten insertions are repetitions, the correction was
// off by up to a quarter.
const steady = 0.3

// weightOne is a weight of 1 in the data plane's table: weights are in 2^-8.
const weightOne = 1 << 8

// exponentOne is an exponent of 1 there: they are in 2^-8.
const exponentOne = 1 << 8

// spectrum corrects one row of a layer and combines the fridges. delayOf is the delay of a bin's samples, which bins of bytes do
// not give themselves.
func (e *estimator) spectrum(l layer, row int, delayOf func(bin int) float64) *delay.Spectrum {
	out := delay.NewSpectrum(l.scale)
	for i := range e.lives {
		e.add(out, l, row, &e.lives[i], delayOf)
	}
	out.Predicted = e.predicted(out, delayOf)
	out.Cluster = e.rates.cluster()
	return out
}

// add corrects the samples of requests that were admitted with one setting, and combines its fridges. Each request was admitted with one of
// them, so the settings' estimates add up.
func (e *estimator) add(out *delay.Spectrum, l layer, row int, s *setting, delayOf func(bin int) float64) {
	sums := make([]delay.Sums, len(s.parts))
	combine := e.combiner(e.rates, s.parts, s.over, delayOf)
	for bin := range out.Mass {
		samples := 0.0
		for k := range sums {
			sums[k] = e.sums(l, row, s, k, bin, delayOf)
			samples += sums[k].N
		}
		if samples == 0 {
			continue
		}
		for k, c := range combine(bin, sums) {
			out.Mass[bin] += c * sums[k].Weight
			out.Square[bin] += c * c * sums[k].Square
			out.Doubt += c * steady * math.Abs(sums[k].Apart-sums[k].Weight)
		}
		out.Raw[bin] += samples
		s.samples += samples
	}
}

// predicted weights of samples by bins: 1 over the probability that a delay is sampled, for the combination with the least
// variance. The window's rate is only an average; where requests arrive in bursts, the weights are raised to those of the
// samples.
func (e *estimator) predicted(s *delay.Spectrum, delayOf func(bin int) float64) []float64 {
	weights := make([]float64, len(s.Mass))
	faster := e.faster(s, delayOf)
	for bin := range weights {
		weights[bin] = e.predictedAt(faster * delayOf(bin))
	}
	return weights
}

// An octave of delays is used to estimate the rate if it has this many samples, which survived this many lifetimes on average.
const (
	telling    = 10
	tellingFor = 0.1
)

// faster is the multiple of the window's rate that explains the weights of the samples: the largest over the octaves of delays,
// at least 1.
func (e *estimator) faster(s *delay.Spectrum, delayOf func(bin int) float64) float64 {
	most, octave := 1.0, 1<<s.Scale.Bins.Mantissa
	for first := 0; first < len(s.Raw); first += octave {
		samples, found, expected := 0.0, 0.0, 0.0
		for bin := first; bin < min(first+octave, len(s.Raw)); bin++ {
			n := s.Raw[bin]
			if n == 0 || s.Mass[bin] == 0 {
				continue
			}
			samples += n
			none := e.share(delayOf(bin), func(s *setting, k int) float64 { return s.parts[k].Inclusion() }) // admitted at all
			found += n * math.Log(max(1, s.Mass[bin]/n*none))
			expected += n * math.Log(none*e.predictedAt(delayOf(bin)))
		}
		if samples >= telling && expected > tellingFor*samples {
			most = max(most, found/expected)
		}
	}
	return most
}

// predictedAt is the weight of a sample with a delay of t ns at the rate of the window.
func (e *estimator) predictedAt(t float64) float64 {
	q := e.share(t, func(s *setting, k int) float64 { return e.rates.included(s.parts, k, t, s.over) })
	return 1 / max(q, 1e-300)
}

// share adds up a probability over the fridges, weighted by how many of the requests with a delay of t ns were admitted with each setting.
func (e *estimator) share(t float64, of func(s *setting, k int) float64) float64 {
	q := 0.0
	shares := e.shares(t)
	for i := range e.lives {
		for k := range e.lives[i].parts {
			q += shares[i] * of(&e.lives[i], k)
		}
	}
	return q
}

// sums of fridge k of a setting in one bin.
func (e *estimator) sums(l layer, row int, of *setting, k, bin int, delayOf func(bin int) float64) delay.Sums {
	base := (row*e.planes() + of.plane*len(e.parts) + k) * e.plane()
	if e.table {
		return e.tableSums(l, of, k, base+bin)
	}
	bins := l.scale.Bins.Len()
	if !e.recorded {
		return e.inferred(k, l.words[base+bin], delayOf(bin))
	}
	var words [delay.SurvivalBins]uint64
	for s := range words {
		words[s] = l.words[base+s*bins+bin]
	}
	s := e.rates.factorOf(of.parts, k).Row(&words)
	s.Apart = s.Weight
	if e.rates.again[k].found > 0 {
		s.Apart = of.parts[k].Factor().Row(&words).Weight
	}
	return s
}

// tableSums reads the sums of the data plane. Its weights assume that all insertions were different requests. Where some were
// repetitions, the number of samples and the sums of weights and exponents give how many insertions the samples survived, and how
// much that varied.
func (e *estimator) tableSums(l layer, of *setting, k, at int) delay.Sums {
	s := delay.Sums{Weight: float64(l.words[at]) / weightOne}
	if e.follows() { // the data plane's weights are those of the survival alone
		s.Weight /= of.parts[k].Inclusion()
	}
	s.Apart = s.Weight
	if s.Weight == 0 {
		return s
	}
	s.N, s.Square = 1, s.Weight*s.Weight
	if l.hits != nil {
		n, exponents := delay.Tallied(l.hits[at])
		return e.rates.factorOf(of.parts, k).Pair(s.Weight, max(1, n), exponents/exponentOne, 0.5/exponentOne)
	}
	return s
}

// inferred weighs samples without a recorded x by the mean number of insertions within their delay (section 3.3).
func (e *estimator) inferred(k int, word uint64, t float64) delay.Sums {
	n := float64(delay.Samples(word))
	x := e.rates.survived(k, t)
	w := e.rates.factor(k).Weight(x)
	return delay.Sums{N: n, Weight: n * w, Apart: n * e.parts[k].Factor().Weight(x), Square: n * w * w, Survived: n * x}
}

// own is the delay of a bin, for layers that are binned by delay.
func (l layer) own(bin int) float64 { return l.scale.Centre(bin) }

// scaled fills in sample counts that a spectrum lacks: the data plane counts the samples of a second leg or of a flow's volume
// only once, with the sum of the legs or the duration, so number and mean weight are taken from there.
func scaled(s, counted *delay.Spectrum) {
	samples, count := counted.Samples(), s.Count()
	if samples == 0 || count == 0 {
		return
	}
	w := counted.Count() / samples
	square := max(1, counted.Count()/counted.Effective()) // sum of squared weights over sum of weights
	for bin := range s.Mass {
		s.Mass[bin] *= counted.Count() / count
		mass := s.Mass[bin]
		s.Raw[bin] = mass / w
		s.Square[bin] = mass * square
	}
}
