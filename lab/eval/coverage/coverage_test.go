package coverage

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// body of an estimate x of a truth of 1000 with standard error 10, whose interval is for an error of se.
func body(x, se float64) report.Body {
	return report.Body{
		Values: []report.Value{{Name: "n", Value: x, Low: x - report.Normal95*se, High: x + report.Normal95*se}},
		Distributions: []report.Distribution{{Name: "d", Count: x, CountErr: se, Quantiles: []report.Quantile{
			{Name: "p50", Q: .5, Value: x, Low: x - 5*se, High: x + 5*se, Promise: report.Bound, Defined: true}}}},
		Tables: []report.Table{{Name: "t", Columns: []report.Column{{Name: "flow", Label: true}, {Name: "packets", Metric: true, Err: "se"},
			{Name: "se"}}, Rows: [][]any{{"a", x, se}, {"unknown", x, se}, {"bare", x, math.NaN()}}}},
	}
}

func truth() report.Body {
	b := body(1000, 0)
	b.Tables[0].Rows = [][]any{{"a", 1000.0, nil}, {"bare", 1000.0, nil}}
	return b
}

func many(stated float64) *Study {
	s, draw := newStudy(), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s.add(Place{Cell: "model"}, outcome.Of(body(1000+10*draw.NormFloat64(), stated), truth()))
	}
	return s
}

// An honest interval has 95 %, one that is half as wide at 67 %: every kind of enclosure by itself.
func TestShares(t *testing.T) {
	for stated, want := range map[float64]float64{10: .95, 5: .673} {
		s := many(stated)
		for _, quantity := range []string{"n", "d.count", "t.packets"} {
			got := s.At(Place{Cell: "model", Quantity: quantity})
			if math.Abs(got.Share()-want) > .025 {
				t.Errorf("%s told %v: held %.3f, want %.3f", quantity, stated, got.Share(), want)
			}
			if ratio := got.Width() * 10 / stated; math.Abs(ratio-1) > .15 {
				t.Errorf("%s: width %.2f of the empirical one", quantity, got.Width())
			}
		}
		if b := s.At(Place{Cell: "model", Quantity: "d.p50"}); b.Bounds != 2000 || b.Intervals != 0 || b.BoundShare() < .98 {
			t.Errorf("bounds %+v", b)
		}
	}
}

// Rows without an enclosure and rows that the truth does not know are counted apart, and cells without errors do not count.
func TestWhatIsLeftOut(t *testing.T) {
	s := many(10)
	rows := s.At(Place{Cell: "model", Quantity: "t.packets"})
	if rows.Unjudged != 2000 || rows.Bare != 2000 || rows.Intervals != 2000 {
		t.Errorf("%d unjudged, %d bare, %d intervals", rows.Unjudged, rows.Bare, rows.Intervals)
	}
	for range 200 {
		s.add(Place{Cell: "exact"}, outcome.Of(body(1000, 10), truth()))
	}
	if all := s.Pooled(); all.Intervals != 6000 {
		t.Errorf("%d intervals pooled", all.Intervals)
	}
	if worst := s.Worst(); worst < .93 || worst > .97 {
		t.Errorf("worst cell %.3f", worst)
	}
}

// What too few seeds leave open is not called met, and why it is open is stated.
func TestBarsThatNobodyCanJudge(t *testing.T) {
	emit := func(seeds int) string {
		s, draw := newStudy(), rand.New(rand.NewPCG(1, 2))
		for range seeds {
			s.add(Place{Algorithm: "it", Cell: "model"}, outcome.Of(body(1000+10*draw.NormFloat64(), 10), truth()))
		}
		p := eval.NewPage(t.TempDir(), "it", false, t.Logf)
		s.bars(p, "it")
		var lines []string
		for _, cells := range p.Bars() {
			lines = append(lines, strings.Join(cells, " | "))
		}
		return strings.Join(lines, "\n")
	}
	for seeds, want := range map[int][]string{
		10:  {"intervals or more | 87 % or more | - | not judged: no cell with errors has 100 intervals, the largest 10", "2 or less | - | not judged: no cell with errors has 40 errors"},
		30:  {"intervals or more | 87 % or more | - | not judged", "shown | -: no cell with errors has 100 bounds, the largest 30"},
		400: {"intervals or more | 87 % or more | 9", "bounds that hold the truth, all cells | 95 % or more | 100 % | yes"},
	} {
		got := emit(seeds)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%d seeds: %q is not in\n%s", seeds, line, got)
			}
		}
		if strings.Contains(got, "- | yes") {
			t.Errorf("%d seeds: what nobody measured is met:\n%s", seeds, got)
		}
	}
}

// A row without an interval has the bounds that its column names.
func TestBoundedRows(t *testing.T) {
	column := report.Column{Name: "packets", Metric: true, Low: "low", High: "high", Least: "least", Most: "most"}
	columns := []report.Column{{Name: "flow", Label: true}, column, {Name: "low"}, {Name: "high"}, {Name: "least"}, {Name: "most"}}
	none := math.NaN()
	e := report.Body{Tables: []report.Table{{Name: "t", Columns: columns, Rows: [][]any{{"a", 9., 8., 10., 7., none}, {"b", 9., none, none, 2., 12.}, {"c", 9., none, none, 2., none}}}}}
	of := report.Body{Tables: []report.Table{{Name: "t", Columns: columns[:2], Rows: [][]any{{"a", 10.}, {"b", 3.}, {"c", 3.}}}}}
	s := newStudy()
	s.add(Place{}, outcome.Of(e, of))
	if got := s.At(Place{Quantity: "t.packets"}); got.Intervals != 1 || got.IntervalsHold != 1 || got.Bounds != 1 || got.BoundsHold != 1 || got.Bare != 1 {
		t.Errorf("%+v", got)
	}
}
