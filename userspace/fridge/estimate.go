package fridge

import (
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// layer is one histogram of the data plane as it was read: [row][fridge][survival][bin], or without survival.
type layer struct {
	words []uint64
	hits  []uint64 // table correction: samples behind the sums; nil where the data plane does not count them
	scale delay.Scale
}

// estimator turns layers into spectra.
type estimator struct {
	*config
	rates *rates
}

// weightOne is a weight of 1 in the data plane's table: weights are in 2^-8.
const weightOne = 1 << 8

// spectrum corrects one row of a layer and combines the fridges. delayOf is the delay that a bin's samples had, which for
// bins of bytes is not what the bin says.
func (e *estimator) spectrum(l layer, row int, delayOf func(bin int) float64) *delay.Spectrum {
	out := delay.NewSpectrum(l.scale)
	sums := make([]delay.Sums, len(e.parts))
	combine := e.combiner(e.rates, delayOf)
	for bin := range out.Mass {
		samples := 0.0
		for k := range sums {
			sums[k] = e.sums(l, row, k, bin, delayOf)
			samples += sums[k].N
		}
		if samples == 0 {
			continue
		}
		for k, c := range combine(bin, sums) {
			out.Mass[bin] += c * sums[k].Weight
			out.Square[bin] += c * c * sums[k].Square
		}
		out.Raw[bin] = samples
	}
	return out
}

// sums of fridge k in one bin.
func (e *estimator) sums(l layer, row, k, bin int, delayOf func(bin int) float64) delay.Sums {
	base := (row*len(e.parts) + k) * e.plane()
	if e.table {
		return tableSums(l, base+bin)
	}
	bins := l.scale.Bins.Len()
	if !e.recorded {
		return e.inferred(k, l.words[base+bin], delayOf(bin))
	}
	var words [delay.SurvivalBins]uint64
	for s := range words {
		words[s] = l.words[base+s*bins+bin]
	}
	return e.parts[k].Factor().Row(&words)
}

// tableSums reads what the data plane has added up. The samples of a bin have nearly the same weight.
func tableSums(l layer, at int) delay.Sums {
	s := delay.Sums{Weight: float64(l.words[at]) / weightOne}
	if s.Weight == 0 {
		return s
	}
	s.N = 1
	if l.hits != nil {
		s.N = max(1, float64(l.hits[at]))
	}
	s.Square = s.Weight * s.Weight / s.N
	return s
}

// inferred weighs samples without a recorded x by the insertions that their delay saw on average (section 3.3).
func (e *estimator) inferred(k int, word uint64, t float64) delay.Sums {
	n := float64(delay.Samples(word))
	x := e.rates.survived(k, t)
	w := e.parts[k].Factor().Weight(x)
	return delay.Sums{N: n, Weight: n * w, Square: n * w * w, Survived: n * x}
}

// own is the delay of a bin of delays.
func (l layer) own(bin int) float64 { return l.scale.Centre(bin) }

// scaled makes a spectrum without a count of samples plausible: the data plane counts the samples of a second leg or of
// a flow's volume only once, with the first leg or the duration, so the mean weight is taken from there.
func scaled(s, counted *delay.Spectrum) {
	samples := counted.Samples()
	if samples == 0 {
		return
	}
	w := counted.Count() / samples
	square := max(1, counted.Count()/counted.Effective()) // sum of squared weights over sum of weights
	for bin, mass := range s.Mass {
		s.Raw[bin] = mass / w
		s.Square[bin] = mass * square
	}
}
