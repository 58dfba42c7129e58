package coverage

import (
	"math"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Place is where an estimate was made.
type Place struct{ Algorithm, Cell, Config, Quantity string }

// Study is the results of all seeds.
type Study struct{ tallies map[Place]*Tally }

// Tally of one quantity in one cell.
type Tally struct {
	Intervals, IntervalsHold int // judged
	Bounds, BoundsHold       int
	Exact                    int // no enclosure, and none needed
	Bare                     int // an estimate off the truth without an enclosure
	BareMany                 int // of those, with 30 samples or more, or where samples are not reported
	Unjudged                 int // the truth does not name it
	widths                   []float64
	errors                   []float64
	misses                   []outcome.Outcome // enclosures that did not hold, the first of them
}

// mostMisses of a tally are remembered.
const mostMisses = 20

func newStudy() *Study { return &Study{tallies: map[Place]*Tally{}} }

func (s *Study) add(at Place, list []outcome.Outcome) {
	for _, o := range list {
		at.Quantity = o.Quantity
		t := s.tallies[at]
		if t == nil {
			t = &Tally{}
			s.tallies[at] = t
		}
		t.add(o)
	}
}

// fewSamples: with fewer nobody promises an interval.
const fewSamples = 30

func (t *Tally) add(o outcome.Outcome) {
	if !o.Judged {
		t.Unjudged++
		return
	}
	t.errors = append(t.errors, o.Value-o.Truth)
	if o.Enclosed && !o.Holds() && len(t.misses) < mostMisses {
		t.misses = append(t.misses, o)
	}
	switch {
	case o.Enclosed && o.Exact() && o.High == o.Low:
		t.Exact++
	case o.Enclosed && o.Promise == report.Bound:
		t.Bounds++
		t.BoundsHold += one(o.Holds())
	case o.Enclosed:
		t.Intervals++
		t.IntervalsHold += one(o.Holds())
		t.widths = append(t.widths, o.High-o.Low)
	case o.Exact():
		t.Exact++
	default:
		t.Bare++
		t.BareMany += one(!(o.Samples < fewSamples))
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Judged is the number of estimates whose truth is known.
func (t *Tally) Judged() int { return t.Intervals + t.Bounds + t.Exact + t.Bare }

// Share of the intervals that held; NaN without any.
func (t *Tally) Share() float64 { return ratio(t.IntervalsHold, t.Intervals) }

// BoundShare of the bounds that held.
func (t *Tally) BoundShare() float64 { return ratio(t.BoundsHold, t.Bounds) }

// BareShare is the share of estimates that are off and have no enclosure.
func (t *Tally) BareShare() float64 { return ratio(t.Bare, t.Judged()) }

func ratio(a, b int) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// NoError reports whether no estimate of the cell was off the truth, ever: an interval there shows nothing.
func (t *Tally) NoError() bool {
	return !slices.ContainsFunc(t.errors, func(e float64) bool { return e != 0 })
}

// enoughErrors: with fewer nobody knows where the middle 95 % of them end.
const enoughErrors = 40

// Width is the median width over the empirical one: what encloses the middle 95 % of the errors of all seeds. NaN where it is not known.
func (t *Tally) Width() float64 {
	if len(t.widths) == 0 || len(t.errors) < enoughErrors {
		return math.NaN()
	}
	return quantile(t.widths, 0.5) / (quantile(t.errors, 0.975) - quantile(t.errors, 0.025))
}

func quantile(list []float64, q float64) float64 {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (t *Tally) merge(o *Tally) {
	t.Intervals += o.Intervals
	t.IntervalsHold += o.IntervalsHold
	t.Bounds += o.Bounds
	t.BoundsHold += o.BoundsHold
	t.Exact += o.Exact
	t.Bare += o.Bare
	t.BareMany += o.BareMany
	t.Unjudged += o.Unjudged
}

// Pooled is the tally of all cells; those without any error are left out.
func (s *Study) Pooled() *Tally {
	sum := &Tally{}
	for _, t := range s.tallies {
		if !t.NoError() {
			sum.merge(t)
		}
	}
	return sum
}

// Algorithms that were looked at, in order.
func (s *Study) Algorithms() (names []string) {
	for at := range s.tallies {
		if !slices.Contains(names, at.Algorithm) {
			names = append(names, at.Algorithm)
		}
	}
	slices.Sort(names)
	return names
}

// of is the part of one algorithm.
func (s *Study) of(algorithm string) *Study {
	part := newStudy()
	for at, t := range s.tallies {
		if at.Algorithm == algorithm {
			part.tallies[at] = t
		}
	}
	return part
}

// Places lists the cells in order.
func (s *Study) Places() []Place {
	var list []Place
	for p := range s.tallies {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Place) int {
		return strings.Compare(a.Cell+"\x00"+a.Config+"\x00"+a.Quantity, b.Cell+"\x00"+b.Config+"\x00"+b.Quantity)
	})
	return list
}

// At is the tally of a place; nil for none.
func (s *Study) At(p Place) *Tally { return s.tallies[p] }
