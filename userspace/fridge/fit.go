package fridge

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// States of section 3.3.
const (
	fitUnder   = "under-used"
	fitGood    = "fitting"
	fitOver    = "over-subscribed"
	fitUnknown = "unknown"
)

// Bounds of a fitting fridge: lifetimes of the longest-lived fridge within the longest delays. Section 5.2 finds no difference
// between half and twice the best p, and little harm from too long a lifetime.
const (
	livesUnder = 0.25
	livesOver  = 2
)

// fit compares a fridge's lifetime, M/p requests, with the requests within the delays to be measured.
type fit struct {
	state   string
	delay   float64     // ns; the delay that the fit is judged by: the upper bound of the 99th percentile
	blind   bool        // slow responses may have left no sample: the true percentile may be higher
	lives   float64     // insertions within delay over slots, of the fridge where records live longest
	part    layout.Part // the fridge where records live longest
	p       float64     // the entry probability that would fit, with this fridge's entries
	entries int         // the entries that would fit, with this entry probability
}

func (e *estimator) fit(total *delay.Spectrum) fit {
	f := fit{state: fitUnknown, delay: math.NaN(), lives: math.NaN(), p: math.NaN(), blind: total.Blind()}
	p99, ends := total.Percentile(0.99)
	if !(p99 > 0) || math.IsInf(ends.High, 1) && !f.blind {
		return f
	}
	f.delay = p99
	if !f.blind {
		f.delay = ends.High
	}
	f.lives = math.Inf(1)
	for k, p := range e.rates.parts {
		if lives := e.rates.lives(k, f.delay); lives < f.lives {
			f.lives, f.part = lives, p
		}
	}
	f.p = min(1, f.part.P/max(f.lives, 1e-9))
	f.entries = fitting(float64(f.part.Slots) * f.lives)
	f.state = stateOf(f.lives, f.part)
	if f.blind {
		f.state = fitOver
	}
	return f
}

func stateOf(lives float64, p layout.Part) string {
	switch {
	case lives > livesOver:
		return fitOver
	case lives < livesUnder && (p.P < 1 || p.Slots > layout.LeastSlots):
		return fitUnder
	}
	return fitGood
}

// fitting is the smallest size that has n slots.
func fitting(n float64) int {
	if n <= layout.LeastSlots {
		return layout.LeastSlots
	}
	return min(layout.MostSlots, 1<<bits.Len(uint(math.Ceil(n)-1)))
}

func (f fit) values() []report.Value {
	values := []report.Value{
		{Name: "fit", Value: f.state, Kind: report.Info,
			Help: "lifetime of a record against the delays: under-used, fitting, over-subscribed (section 3.3)"},
		{Name: "overwrites_at_p99", Value: math.Round(1000*f.lives) / 1000, Help: "times that an entry of the longest-lived fridge is overwritten while the slowest per cent of the requests waits; about 1 fits"},
	}
	if f.state != fitUnknown {
		values = append(values, report.Value{Name: "fitting_probability", Value: f.p, Help: "entry probability that would fit with these entries"})
	}
	return values
}

// advice is a sentence for the operator; "" when nothing needs to be done.
func (f fit) advice() string {
	within := report.Human(f.delay, report.Nanosecond)
	switch {
	case f.blind:
		return fmt.Sprintf("over-subscribed: delays seem to exceed those whose records survive, so slow responses may have "+
			"left no sample: percentiles are lower bounds. Take a smaller entry probability than %s, or more than %d entries.",
			layout.Fraction(f.part.P), f.part.Slots)
	case f.state == fitOver:
		return fmt.Sprintf("over-subscribed: %s insertions arrive for each of the %d entries within the 99th percentile (%s), so slow "+
			"responses rest on few samples. Entry probability %s, or about %d entries, would fit.",
			report.Human(f.lives, report.None), f.part.Slots, within, layout.Fraction(f.p), f.entries)
	case f.state == fitUnder && f.part.P < 1:
		return fmt.Sprintf("under-used: hardly a record is overwritten within the 99th percentile (%s). Entry probability %s "+
			"would give more samples.", within, layout.Fraction(f.p))
	case f.state == fitUnder:
		return fmt.Sprintf("under-used: hardly a record is overwritten within the 99th percentile (at most %s); "+
			"about %d entries would hold them as well.", within, fitting(2*float64(f.part.Slots)*f.lives))
	}
	return ""
}
