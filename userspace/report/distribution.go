package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/plot"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Least size of the plot beside the percentiles; where that does not fit it is drawn below them.
const (
	minPlotWidth = 30
	maxPlotWidth = 72
	minPlotRows  = 6
	belowRows    = 8
)

// distribution draws the percentiles and the CDF beside them.
func (a against) distribution(d Distribution, style Style) []string {
	truth, hasTruth := a.distributionTruth(d.Name)
	left := a.percentiles(d, truth, hasTruth, style.dense == airy || !hasTruth)
	if widest(left) > style.width() {
		left = a.percentiles(d, truth, hasTruth, false)
	}
	lines := typeset.Wrap(d.heading(), style.width(), 2)
	var t *Distribution
	if hasTruth {
		t = &truth
	}
	lines = append(lines, withPlot(left, d, t, style)...)
	return append(lines, a.gap(d.Name, style)...)
}

func (a against) distributionTruth(name string) (Distribution, bool) {
	if a.truth == nil {
		return Distribution{}, false
	}
	return Find(a.truth.Distributions, name)
}

func (d Distribution) heading() string {
	if d.Title != "" {
		return typeset.Printable(d.Title)
	}
	return plainWords(d.Name, d.Unit)
}

// percentiles is the grid: name, estimate, its interval (if it fits), and with a truth its value and the error.
func (a against) percentiles(d, truth Distribution, hasTruth, intervals bool) []string {
	g := typeset.Grid{Right: []bool{false, true, !intervals, true, true}}
	add := func(name string, unit Unit, value, low, high any, promise Promise, truthValue any, err string) {
		cells := []string{"  " + name, Human(value, unit)}
		if intervals {
			cells = append(cells, bracket(value, low, high, unit, promise))
		}
		if hasTruth {
			cells = append(cells, Human(truthValue, unit), err)
		}
		g.Add(cells...)
	}
	if hasTruth && intervals {
		g.Add("", "estimate", "", "truth", "error")
	} else if hasTruth {
		g.Add("", "estimate", "truth", "error")
	}
	low, high := d.countBounds()
	add("count", Count, d.Count, low, high, Interval, truth.Count, a.err(d.Name+".count"))
	add("mean", d.Unit, orNaN(d.Mean, d.Count > 0), nil, nil, Interval, orNaN(truth.Mean, truth.Count > 0), a.err(d.Name+".mean"))
	for _, q := range d.Quantiles {
		add(q.label(), d.Unit, q.value(), q.low(), q.high(), q.Promise, truth.quantile(q.Name), a.err(d.Name+"."+q.Name))
	}
	return g.Lines()
}

func (d Distribution) countBounds() (low, high any) {
	l, h, ok := d.CountInterval()
	if !ok {
		return nil, nil
	}
	return l, h
}

// bracket is the text in brackets that Enclosed appends to the value.
func bracket(value, low, high any, unit Unit, promise Promise) string {
	return trimPrefix(Enclosed(value, low, high, unit, promise), Human(value, unit))
}

func trimPrefix(text, prefix string) string {
	if len(text) <= len(prefix) {
		return ""
	}
	return text[len(prefix)+1:]
}

// label is the percentile for people: p50, p99.9.
func (q Quantile) label() string {
	return "p" + strconv.FormatFloat(100*q.Q, 'g', 6, 64)
}

func (q Quantile) value() any {
	if !q.Defined {
		return "too few"
	}
	return q.Value
}

func (q Quantile) low() any  { return bounded(q.Low, q) }
func (q Quantile) high() any { return bounded(q.High, q) }

func bounded(x float64, q Quantile) any {
	if !q.Bounded() {
		return nil
	}
	return x
}

// quantile returns the value of a percentile by its JSON name, nil when there is none.
func (d Distribution) quantile(name string) any {
	for _, q := range d.Quantiles {
		if q.Name == name {
			return q.value()
		}
	}
	return nil
}

// withPlot sets the CDF beside the percentiles, or below them on a narrow screen.
func withPlot(left []string, d Distribution, truth *Distribution, style Style) []string {
	const gap = 3
	room := min(maxPlotWidth, style.width()-widest(left)-gap)
	draw := func(width, rows int) []string {
		var curve plot.Curve
		if truth != nil {
			curve = *truth
		}
		return plot.Lines(plot.Options{Unicode: style.Unicode, Width: width, Rows: rows, Tick: func(x float64) string { return tickText(x, d.Unit) }}, d, curve)
	}
	if room < minPlotWidth {
		return append(left, draw(min(maxPlotWidth, style.width()), belowRows)...)
	}
	if lines := draw(room, max(minPlotRows, (len(left)-1)/2*2)); lines != nil {
		return typeset.SideBySide(left, lines, gap)
	}
	return left
}

// gap is a line with the largest distance between the two curves.
func (a against) gap(name string, style Style) []string {
	if a.errors == nil {
		return nil
	}
	ratio, ok := Find(a.errors.Values, name+".p5_p95_max")
	log2, okLog := Find(a.errors.Values, name+".p5_p95_max_log2")
	if !ok || !okLog {
		return nil
	}
	f, _ := Number(ratio.Value)
	text := fmt.Sprintf("largest gap, p5 to p95: %s (|log2| %s); %s is the truth",
		signed(f), Human(log2.Value, None), style.glyph("●", "o"))
	return typeset.Wrap(text, style.width(), 2)
}

// tickText writes a round value as shortly as possible: 20ms, 1.5KiB.
func tickText(x float64, unit Unit) string {
	if scales := unit.scales(); scales != nil {
		s := pick(scales, x)
		return strconv.FormatFloat(typeset.Round(x/s.factor), 'f', -1, 64) + s.name
	}
	return strings.ReplaceAll(Human(x, unit), " ", "")
}
