package delay

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Normal95 is how many standard errors a 95 % confidence interval reaches to each side.
const Normal95 = 1.959964

// Intervals of an estimate around the true values of this window. The samples are known; unknown is the number of lost values, of
// which each sample of weight w represents w - 1, with the variance w (w - 1). With few samples the distribution of that number is
// skewed: a slow value that was lost contributes nothing to a variance taken from the samples. So it is bounded by the quantiles of
// the gamma distribution with its variance, above with the w - 1 of one more sample that was narrowly missed, and below with half of
// that (after Fay, Feuer, "Confidence intervals for directly standardized rates", Statistics in Medicine 1997: if each of n values is
// sampled with probability 1/w, and k were, the number lost is negative binomial with parameter k + 1).

// region holds the sums over a range of bins.
type region struct {
	mass, lost, variance float64
}

func (r *region) add(o region) {
	r.mass += o.mass
	r.lost += o.lost
	r.variance += o.variance
}

// unseen is the upper bound of the error of the estimated number of values, fewer the lower bound. one is the number of lost
// values that one more, missed, sample would have represented.
func (r region) unseen(one float64) float64 {
	weight := one + 1
	if r.lost > 0 {
		weight = max(weight, r.variance/r.lost)
	}
	mean := r.lost + weight - 1
	if mean <= 0 {
		return 0
	}
	return max(0, weight*gamma(mean/weight, Normal95)-r.lost)
}

func (r region) fewer() float64 {
	if r.variance == 0 {
		return 0
	}
	scale := r.variance / r.lost
	return max(0, r.lost-math.Floor(scale*gamma(r.lost/scale+0.5, -Normal95)))
}

// gamma is the quantile of the gamma distribution of shape k whose normal score is z (Wilson, Hilferty 1931).
func gamma(k, z float64) float64 {
	root := 1 - 1/(9*k) + z/(3*math.Sqrt(k))
	return k * math.Pow(max(0, root), 3)
}

// at is the region of one bin. Values in clusters, which are sampled all or not at all, have a larger variance.
func (s *Spectrum) at(bin int) region {
	return region{mass: s.Mass[bin], lost: max(0, s.Mass[bin]-s.Raw[bin]), variance: s.variance(bin) * max(1, s.Cluster)}
}

func (s *Spectrum) all() region {
	var r region
	for bin := range s.Mass {
		if s.Mass[bin] > 0 {
			r.add(s.at(bin))
		}
	}
	return r
}

// stands is how many lost values a sample of each bin would represent: as predicted, else as the last sample below it did.
func (s *Spectrum) stands() []float64 {
	list := make([]float64, len(s.Mass))
	last := 0.0
	for bin := range list {
		if s.Predicted != nil {
			last = max(0, s.Predicted[bin]-1)
		} else if s.Raw[bin] > 0 {
			last = max(0, s.Mass[bin]/s.Raw[bin]-1)
		}
		list[bin] = last
	}
	return list
}

// Enclosure of an estimate.
type Enclosure struct {
	Low, High float64
	Promise   report.Promise
}

// CountBounds encloses Count. A count without sampling is exact.
func (s *Spectrum) CountBounds() Enclosure {
	all := s.all()
	hidden, blind := s.tail()
	above := math.Hypot(math.Hypot(all.unseen(s.stands()[0]), s.Doubt), hidden)
	e := Enclosure{
		Low:  max(s.Samples(), math.Floor(all.mass-math.Hypot(all.fewer(), s.Doubt)+1e-6)),
		High: math.Ceil(all.mass + above - 1e-6),
	}
	if blind {
		e.Promise, e.High = report.Bound, max(s.Most, all.mass)
	}
	return e
}

// ruleOfThree: an expected number of 3 samples gives none in one of twenty cases.
const ruleOfThree = 3

// much is the share of the count from which on a possibly missing part is reported as blindness.
const much = 0.02

// tail is how many slow values without a sample to allow for. Above some delay, more values may be unseen than the interval of the count covers.
// Samples there are rare and heavy: an interval based on them would be reported exactly when none was drawn, and then be wrong. The octave below that
// delay, where most values are sampled, bounds the tail: hidden is the number of values that it and all higher delays may have held, and the count is
// blind where that exceeds both its interval and the share much. If that octave has no sample the distribution has ended below it.
func (s *Spectrum) tail() (hidden float64, blind bool) {
	if s.Predicted == nil {
		return 0, false
	}
	all := s.all()
	allowed := max(all.unseen(s.stands()[0]), 2*ruleOfThree)
	first := slices.IndexFunc(s.Predicted, func(w float64) bool { return ruleOfThree*(w-1) > allowed })
	if first < 0 {
		return 0, false
	}
	_, last := s.split(max(0, first-1<<s.Scale.Bins.Mantissa))
	if last.mass == 0 {
		return 0, false
	}
	hidden = last.mass + last.unseen(0)
	if s.Most > 0 {
		hidden = min(hidden, max(0, s.Most-all.mass))
	}
	return hidden, hidden > max(allowed, much*all.mass)
}

// Blind reports whether slow values that left no sample may change the count by more than its interval allows for.
func (s *Spectrum) Blind() bool {
	_, blind := s.tail()
	return blind
}

// hidden is how many slow values may be unseen, at delays where hardly any is sampled: the number that tail allows for, or without one as many
// as leave no sample in one of twenty cases; at most what the exact counters leave.
func (s *Spectrum) hidden() float64 {
	if last := len(s.Predicted) - 1; last < 0 || s.Predicted[last] < 2 {
		return 0
	}
	more, _ := s.tail()
	more = max(more, ruleOfThree)
	if s.Most > 0 {
		return min(more, max(0, s.Most-s.Count()))
	}
	return more
}

// certain: with fewer estimated lost values than this the count is treated as exact.
const certain = 0.02

// interval bounds a percentile with 95 % confidence. The percentile exceeds t if q times the count above t exceeds 1-q times the
// count below: the bounds are the first t on each side of the estimate at which the error of that difference, whose two parts are
// estimated independently, excludes the other sign.
func (s *Spectrum) interval(q, value float64) Enclosure {
	at := s.Scale.Bin(value)
	all := s.all()
	if all.lost < certain && all.variance < certain {
		low, high := s.Scale.Edges(at)
		return Enclosure{max(0, low), high, report.Bound}
	}
	e := Enclosure{Low: s.lowEnd(q, at), High: s.highEnd(q, at)}
	if math.IsInf(e.High, 1) || s.Blind() {
		e.Promise, e.High = report.Bound, math.Inf(1)
	}
	return e
}

// Ranks bounds a percentile of the samples together with at most others further values, which may lie anywhere, or are samples
// whose true value exceeds the measured one.
func (s *Spectrum) Ranks(q, others float64) (low, high float64) {
	n := s.Samples()
	first, last := math.Ceil(q*(n+others)*(1-1e-12))-others, math.Ceil(q*n*(1-1e-12))+others
	high = math.Inf(1)
	before := 0.0
	for bin, here := range s.Raw {
		if here == 0 {
			continue
		}
		from, to := s.Scale.Edges(bin)
		if before < first && first <= before+here {
			low = max(0, from)
		}
		if before < last && last <= before+here {
			high = to
		}
		before += here
	}
	return low, high
}

// highEnd walks up from a bin.
func (s *Spectrum) highEnd(q float64, from int) float64 {
	below, above := s.split(from)
	hidden, stands := s.hidden(), s.stands()
	for bin := from; bin < len(s.Mass); bin++ {
		here := s.at(bin)
		below.add(here)
		above.take(here)
		if excess(q, below, above, stands[bin])+q*hidden <= 0 {
			_, high := s.Scale.Edges(bin)
			return high
		}
	}
	return math.Inf(1)
}

// lowEnd walks down from a bin. Below the first sample it assumes as many values as one missed sample represents: where only a share
// of the requests is followed, a few samples may all lie in the same half.
func (s *Spectrum) lowEnd(q float64, from int) float64 {
	below, above := s.split(from)
	stands := s.stands()
	below.add(s.at(from))
	above.take(s.at(from))
	for bin := from; bin >= 0; bin-- {
		here := s.at(bin)
		above.add(here)
		below.take(here)
		if excess(1-q, above, below, stands[bin]) <= 0 {
			low, _ := s.Scale.Edges(bin)
			return max(0, low)
		}
	}
	return 0
}

// excess is the upper bound of q times the values of the far side less 1-q times those of the near side. Values are whole numbers,
// so half a value decides on which side of an end one lies.
func excess(q float64, near, far region, one float64) float64 {
	const half = 0.5
	return q*far.mass - (1-q)*near.mass + math.Hypot(q*far.unseen(one), (1-q)*near.fewer()) + half*max(q, 1-q)
}

// split sums the bins below a bin, and those from it on.
func (s *Spectrum) split(at int) (below, above region) {
	for bin := range s.Mass {
		if s.Mass[bin] <= 0 {
			continue
		}
		if bin < at {
			below.add(s.at(bin))
		} else {
			above.add(s.at(bin))
		}
	}
	return below, above
}

func (r *region) take(o region) {
	r.mass, r.lost, r.variance = max(0, r.mass-o.mass), max(0, r.lost-o.lost), max(0, r.variance-o.variance)
	if r.mass < 1e-9 {
		*r = region{}
	}
}
