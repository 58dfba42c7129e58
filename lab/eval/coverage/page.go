package coverage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// What is demanded. A cell is judged by itself only where it has enough intervals for a share to mean something.
const (
	pooledLow, pooledHigh = 0.93, 0.98
	cellLow               = 0.87
	boundLow              = 0.95
	widest                = 2
	enough                = 100
)

// firstSeed of a study. Tests use the seeds from 1 on: what was repaired while looking at those is judged on others.
const firstSeed = 10_001

// Section is the section of a study that runs cells with 300 seeds each.
func Section(cells func(p *eval.Page) []Cell) eval.Section {
	return eval.Section{Name: "coverage", Title: "Does a printed interval hold the truth?", Run: func(ctx context.Context, p *eval.Page) error {
		n := eval.Pick(p, 300, 4)
		if p.Seeds > 0 {
			n = p.Seeds
		}
		list := slices.DeleteFunc(cells(p), func(c Cell) bool { return p.Cells != nil && !p.Cells.MatchString(c.title()) })
		s, err := Run(ctx, list, firstSeed, n, p.Pieces)
		if err != nil {
			return err
		}
		s.write(p, n)
		if p.Misses {
			s.logMisses(p)
		}
		return nil
	}}
}

// logMisses lists what did not hold, one line each: for whoever looks for the reason.
func (s *Study) logMisses(p *eval.Page) {
	for _, at := range s.Places() {
		for _, o := range s.tallies[at].misses {
			p.Log("miss %s, %s, %s %s: %g in [%g, %g], is %g", at.Cell, at.Config, o.Quantity, o.Row, o.Value, o.Low, o.High, o.Truth)
		}
	}
}

func (s *Study) write(p *eval.Page, seeds int) {
	p.Text("%d seeds a cell. *held*: share of the intervals that hold the truth. *width*: median width over that of the middle 95 %% of the "+
		"errors of all seeds. *bounds*: share of the bounds, printed as such, that hold. *bare*: estimates off the truth that have no "+
		"enclosure; *bare, many*: those with 30 samples or more. *unjudged*: rows that the truth does not list. Counters that only say what the data "+
		"plane did are left out. Every seed has hashes, coins and, of a model, traffic of its own, from seed %d on.", seeds, firstSeed)
	p.Table(s.Table())
	for _, name := range s.Algorithms() {
		s.of(name).bars(p, name)
	}
}

// Table has a line a cell; those without any error are counted in the last.
func (s *Study) Table() *figure.Table {
	t := &figure.Table{Columns: []string{"cell, configuration, quantity", "intervals", "held", "width", "bounds", "held", "exact", "bare", "bare, many", "unjudged"}}
	clean := &Tally{}
	for _, at := range s.Places() {
		if tally := s.tallies[at]; tally.NoError() {
			clean.merge(tally)
		} else {
			t.Add(tally.row(at.Cell + ", " + at.Config + ", " + at.Quantity)...)
		}
	}
	t.Add(s.Pooled().row("**all**")...)
	t.Add(clean.row("cells without any error")...)
	return t
}

func (t *Tally) row(name string) []string {
	return []string{name, strconv.Itoa(t.Intervals), figure.Percent(t.Share()), ratioText(t.Width()), strconv.Itoa(t.Bounds),
		figure.Percent(t.BoundShare()), strconv.Itoa(t.Exact), strconv.Itoa(t.Bare), strconv.Itoa(t.BareMany), strconv.Itoa(t.Unjudged)}
}

func ratioText(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

func (s *Study) bars(p *eval.Page, name string) {
	all := s.Pooled()
	judge(p, name+": intervals that hold the truth, all cells", "93 to 98 %", all.Share(), percent,
		all.Share() >= pooledLow && all.Share() <= pooledHigh, s.why("intervals", all.Intervals, 1))
	intervals, bounds := s.most(func(t *Tally) int { return t.Intervals }), s.most(func(t *Tally) int { return t.Bounds })
	judge(p, fmt.Sprintf(name+": the worst cell of %d intervals or more", enough), "87 % or more", s.Worst(), percent,
		s.Worst() >= cellLow, s.why("intervals", intervals, enough))
	judge(p, name+": bounds that hold the truth, all cells", "95 % or more", all.BoundShare(), percent,
		all.BoundShare() >= boundLow, s.why("bounds", all.Bounds, 1))
	if worst := s.WorstBound(); math.IsNaN(worst) {
		p.Shown(name+": bounds, the worst cell", "-: "+s.why("bounds", bounds, enough))
	} else {
		p.Shown(name+": bounds, the worst cell", figure.Percent(worst))
	}
	errors := s.most(func(t *Tally) int { return min(len(t.widths), 1) * len(t.errors) })
	judge(p, name+": width of an interval over the empirical one, median of the cells", "2 or less", s.MedianWidth(), ratioText,
		s.MedianWidth() <= widest, s.why("errors beside intervals", errors, enoughErrors))
	p.Shown(name+": estimates off the truth with 30 samples and no enclosure", fmt.Sprintf("%d of %d", all.BareMany, all.Judged()))
}

func percent(share float64) string { return figure.Percent(share) }

// judge compares what was measured; nothing was where it is no number, and why is stated.
func judge(p *eval.Page, what, demanded string, measured float64, text func(float64) string, met bool, why string) {
	if math.IsNaN(measured) {
		p.Unjudged(what, demanded, why)
		return
	}
	p.Bar(what, demanded, text(measured), met)
}

// why there was nothing to judge, where n were there in the largest cell and some were needed.
func (s *Study) why(kind string, n, needed int) string {
	if n == 0 {
		return "no cell with errors prints " + kind
	}
	return fmt.Sprintf("no cell with errors has %d %s, the largest %d", needed, kind, n)
}

// most is the largest number of something in a cell with errors.
func (s *Study) most(of func(*Tally) int) (n int) {
	for _, t := range s.tallies {
		if !t.NoError() {
			n = max(n, of(t))
		}
	}
	return n
}

// Worst is the smallest share of a cell with enough intervals; NaN for none.
func (s *Study) Worst() float64 {
	return s.least(func(t *Tally) (float64, int) { return t.Share(), t.Intervals })
}

// WorstBound is the same of the bounds.
func (s *Study) WorstBound() float64 {
	return s.least(func(t *Tally) (float64, int) { return t.BoundShare(), t.Bounds })
}

func (s *Study) least(of func(*Tally) (share float64, n int)) float64 {
	least := math.NaN()
	for _, t := range s.tallies {
		if share, n := of(t); n >= enough && !t.NoError() && !(share >= least) {
			least = share
		}
	}
	return least
}

// MedianWidth over the cells that know theirs.
func (s *Study) MedianWidth() float64 {
	var list []float64
	for _, t := range s.tallies {
		if w := t.Width(); !math.IsNaN(w) && !math.IsInf(w, 0) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	return quantile(list, 0.5)
}
