package tune

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// Window is what a choice depends on.
type Window struct {
	End      int64
	Requests uint64
	NS       float64         // length
	Delays   *delay.Spectrum // of all responses
	Samples  []float64       // of each setting of the history
}

// Chooser of settings.
type Chooser interface {
	History() History // of the present window
	Word() uint64     // fridge_setting
	Next(w Window) (changed bool)
}

// Tuner follows load and delays.
type Tuner struct {
	slots   int // of all parts
	history History
	known   distribution // of the windows so far
	longest float64      // ns: delay up to which a part's records live
	// Waiting: a better setting was found, and records of an old one are not out yet.
	Waiting bool
}

// New starts with one fridge, and a quarter whose records live long.
func New(slots int) *Tuner { return &Tuner{slots: slots, history: first()} }

// History of the present window.
func (t *Tuner) History() History { return t.history }

// Word is what the data plane reads: fridge_setting.
func (t *Tuner) Word() uint64 { return t.history.word() }

// distribution of delays in a few points.
type distribution []point

type point struct {
	ns   float64
	mass float64 // all add up to 1
}

// Samples from which on a window's delays are taken as they are: fewer count half, what was known before the other half.
const telling = 100

// aheadOf is how much longer delays may be than those seen, where slow responses may have left no sample.
const aheadOf = 8

// spare: records of the longest-lived part are overwritten this many times within the longest delay. Delays or a rate that grow by 4 are then seen
// as well as is best, and by 30 at all.
const spare = 0.25

// gain is by how much the mean logarithm of the three percentiles' errors must fall, for a change: 8 %. The paper finds no difference
// within twice and half the best p.
const gain = 0.08

// Next reads a window, and reports whether the setting was changed for the next ones.
func (t *Tuner) Next(w Window) bool {
	t.Waiting = false
	if w.Requests == 0 || !(w.NS > 0) || !t.learn(w.Delays) {
		return false
	}
	rate := float64(w.Requests) / w.NS
	cost := t.costs(rate)
	best := t.best(rate, cost)
	now := t.history.Now().Classes
	if slices.Equal(best[:], now[:]) || !t.lacks(now, rate) && cost.of(now)-cost.of(best) < gain {
		return false
	}
	if !t.out(w.Samples) {
		t.Waiting = true
		return false
	}
	t.Change(best, w.End)
	return true
}

// Change sets the classes from a moment on.
func (t *Tuner) Change(classes [layout.Most]int, since int64) {
	t.history = t.history.changed(classes, since)
}

// out reports whether no record of the setting that a change would forget was answered in this window.
func (t *Tuner) out(samples []float64) bool {
	for i := range len(t.history) - live + 1 {
		if i < len(samples) && samples[i] > 0 {
			return false
		}
	}
	return true
}

// learn adds a window's delays to what is known; false: nothing is.
func (t *Tuner) learn(s *delay.Spectrum) bool {
	seen, longest := distributionOf(s), longestOf(s)
	if seen == nil {
		return t.known != nil
	}
	if certain := !s.Blind() && s.Effective() >= telling; certain || t.known == nil {
		t.known, t.longest = seen, longest
		if !certain {
			t.longest *= aheadOf
		}
		return true
	}
	if s.Blind() {
		longest = aheadOf * max(longest, t.longest)
	}
	t.known, t.longest = t.known.with(seen), max(longest, t.longest)
	return true
}

// longestOf is the upper end of the 99th percentile, or where there is none the percentile.
func longestOf(s *delay.Spectrum) float64 {
	p99, ends := s.Percentile(0.99)
	if math.IsInf(ends.High, 1) || !(ends.High >= p99) {
		for bin := len(s.Mass) - 1; bin >= 0 && !(p99 > 0); bin-- { // too few for a percentile: the slowest
			if s.Mass[bin] > 0 {
				p99 = s.Scale.Centre(bin)
			}
		}
		return p99
	}
	return ends.High
}

// octave of delays is divided into this many points.
const pointsAnOctave = 4

func distributionOf(s *delay.Spectrum) distribution {
	total := s.Count()
	if !(total > 0) {
		return nil
	}
	var d distribution
	for bin, mass := range s.Mass {
		if mass <= 0 {
			continue
		}
		ns := s.Scale.Centre(bin)
		if n := len(d); n > 0 && ns < d[n-1].ns*math.Exp2(1.0/pointsAnOctave) {
			d[n-1].mass += mass / total
			continue
		}
		d = append(d, point{ns, mass / total})
	}
	return d
}

// with is the mean of two distributions.
func (d distribution) with(o distribution) distribution {
	var sum distribution
	for _, p := range slices.Concat(d, o) {
		sum = append(sum, point{p.ns, p.mass / 2})
	}
	slices.SortFunc(sum, func(a, b point) int {
		switch {
		case a.ns < b.ns:
			return -1
		case a.ns > b.ns:
			return 1
		}
		return 0
	})
	if len(sum) > mostPoints { // the older halves fade: near ones are joined
		joined := sum[:0]
		for _, p := range sum {
			if n := len(joined); n > 0 && p.ns < joined[n-1].ns*math.Exp2(1.0/pointsAnOctave) {
				joined[n-1].mass += p.mass
				continue
			}
			joined = append(joined, p)
		}
		sum = joined
	}
	return sum
}

const mostPoints = 256

// costs are, by class and point, the probabilities to be sampled in one part.
type costs struct {
	known    distribution
	included [most + 1][]float64
}

// lives is how often a record of a class is overwritten within a delay of ns: all parts have the same slots and share.
func (t *Tuner) lives(class int, rate, ns float64) float64 {
	return rate * ns * math.Exp2(-float64(class)) / float64(t.slots)
}

func (t *Tuner) costs(rate float64) *costs {
	c := &costs{known: t.known}
	for class := range c.included {
		c.included[class] = make([]float64, len(t.known))
		for i, p := range t.known {
			c.included[class][i] = math.Exp(-float64(class)*math.Ln2-t.lives(class, rate, p.ns)) / layout.Most
		}
	}
	return c
}

// exact is the variance below which nothing is gained.
const exact = 1e-3

// of is the mean logarithm of the errors that a setting has at the 50th, 95th and 99th percentile. A response that is sampled with probability q
// adds 1/q - 1 to the variance of the count below a percentile, as `xdpmon plan` calculates it. The density of the delays there is the same for
// all settings, so the mean logarithm does not depend on it.
func (c *costs) of(classes [layout.Most]int) float64 {
	quantiles := [...]float64{0.5, 0.95, 0.99}
	var below, above [len(quantiles)]float64
	mass := 0.0
	for i, p := range c.known {
		q := 1e-30
		for _, class := range classes {
			q += c.included[class][i]
		}
		lost := p.mass * (1/q - 1)
		for n, quantile := range quantiles {
			if mass < quantile {
				below[n] += lost
			} else {
				above[n] += lost
			}
		}
		mass += p.mass
	}
	sum := 0.0
	for n, q := range quantiles {
		sum += math.Log((1-q)*(1-q)*below[n]+q*q*above[n]+exact) / 2 / float64(len(quantiles))
	}
	return sum
}

// needed is the least class of the longest-lived part.
func (t *Tuner) needed(rate float64) int {
	class := 0
	for class < most && t.lives(class, rate, t.longest) > spare {
		class++
	}
	return class
}

// lacks reports whether a setting has no part whose records live long enough by far.
func (t *Tuner) lacks(classes [layout.Most]int, rate float64) bool {
	return slices.Max(classes[:]) < t.needed(rate)-2
}

// best of all settings whose longest-lived part lives long enough.
func (t *Tuner) best(rate float64, c *costs) (best [layout.Most]int) {
	least := math.Inf(1)
	needed := t.needed(rate)
	for last := needed; last <= most; last++ {
		for third := range last + 1 {
			for second := range third + 1 {
				for one := range second + 1 {
					classes := [layout.Most]int{one, second, third, last}
					if e := c.of(classes); e < least {
						least, best = e, classes
					}
				}
			}
		}
	}
	return best
}
