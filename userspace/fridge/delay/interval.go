package delay

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Normal95 is how many standard errors a 95 % confidence interval reaches to each side.
const Normal95 = 1.959964

// How far an estimate may be from what really passed in this window. The samples are known; what is unknown is how many
// values were lost, of which each sample with a weight w stands for w - 1, with the variance w (w - 1). Where the lost ones rest on
// few samples they are not scattered evenly around their estimate: a slow value that never came back leaves nothing that
// a variance could be taken from. So they are bounded like a Poisson number of which k = lost^2 / variance samples were
// seen, by the quantiles of the gamma distribution, above for k + 1, with the one that was just not seen, and below for
// k + 1/2 (Fay, Feuer, "Confidence intervals for directly standardized rates", Statistics in Medicine 1997, who take k below).

// region is what is known of a range of values.
type region struct {
	mass, lost, variance float64
}

func (r *region) add(o region) {
	r.mass += o.mass
	r.lost += o.lost
	r.variance += o.variance
}

// unseen is how many more values may be there than estimated, and fewer how many fewer. one: lost values that a sample
// which just was not seen would have stood for.
func (r region) unseen(one float64) float64 {
	scale := one
	if r.lost > 0 {
		scale = max(scale, r.variance/r.lost)
	}
	if scale == 0 {
		return 0
	}
	return max(0, scale*gamma(r.lost/scale+1, Normal95)-r.lost)
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

// at is what is known of a bin. Values that come in clusters, of which all are seen or none, scatter more.
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

// stands is how many lost values a sample of each bin would stand for: as predicted, else as the last one before it did.
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

// CountBounds encloses Count. A count of which nothing was left to chance is what it is.
func (s *Spectrum) CountBounds() Enclosure {
	all := s.all()
	one := s.stands()[0]
	e := Enclosure{
		Low:  max(s.Samples(), math.Floor(all.mass-math.Hypot(all.fewer(), s.Doubt)+1e-6)),
		High: math.Ceil(all.mass + math.Hypot(all.unseen(one), s.Doubt) - 1e-6),
	}
	if s.Blind() {
		e.Promise, e.High = report.Bound, max(s.Most, all.mass)
	}
	return e
}

// A hidden mass leaves no sample in one of twenty cases when it stands for this many samples.
const ruleOfThree = 3

// Blind reports whether many slow values may have gone by without leaving a sample: as many as would change the count by
// what its interval allows, at delays to which what was seen seems to go on. A distribution that has ended, to a small part of that,
// an octave before such delays begin is taken to have ended.
func (s *Spectrum) Blind() bool {
	if s.Predicted == nil {
		return false
	}
	all := s.all()
	allowed := max(all.unseen(s.stands()[0]), 0.02*all.mass, 2*ruleOfThree)
	first := len(s.Predicted)
	for bin, w := range s.Predicted {
		if ruleOfThree*(w-1) > allowed {
			first = bin
			break
		}
	}
	octave := 1 << s.Scale.Bins.Mantissa
	beyond := 0.0
	for bin := max(0, first-octave); bin < len(s.Mass); bin++ {
		beyond += s.Mass[bin]
	}
	return first < len(s.Predicted) && beyond > allowed/2
}

// hidden is how many slow values may have gone by alone, at delays where hardly one comes back, beside what was seen: what is
// not seen in one of twenty cases, unless the counters say that there were fewer.
func (s *Spectrum) hidden() float64 {
	if last := len(s.Predicted) - 1; last < 0 || s.Predicted[last] < 2 {
		return 0
	}
	if s.Most > 0 {
		return min(ruleOfThree, max(0, s.Most-s.Count()))
	}
	return ruleOfThree
}

// certain: with fewer lost values than this nothing was left to chance.
const certain = 0.02

// interval bounds a percentile with 95 % confidence. It is more than t if q times what lies above t exceeds 1-q times
// what lies below: the bounds are the first t to both sides of the estimate at which the error of that difference, of
// which both parts are estimated by themselves, no longer allows the other sign.
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

// Ranks bounds a percentile of the samples and of other values, so many at most, that may lie anywhere; or that are samples
// whose value is more than was measured.
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

// lowEnd walks down from a bin. In front of the first sample there are as many values as one stands for that was just not seen: where
// a share of the requests is followed, a few samples may all lie in the same half.
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

// excess is how much the values of the far side may exceed, times q, those of the near side times 1-q.
func excess(q float64, near, far region, one float64) float64 {
	return q*far.mass - (1-q)*near.mass + math.Hypot(q*far.unseen(one), (1-q)*near.fewer())
}

// split of the values in front of a bin, and of it and all behind.
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
