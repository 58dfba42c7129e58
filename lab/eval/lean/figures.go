package lean

import (
	"context"
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// steps are the severities of the figures, one trace each: all four kinds grow together.
var steps = []severity{
	{10 * time.Millisecond, 0.01, 0.01, 0.005},
	{30 * time.Millisecond, 0.02, 0.02, 0.01},
	{50 * time.Millisecond, 0.04, 0.04, 0.02},
	{70 * time.Millisecond, 0.07, 0.07, 0.05},
	{90 * time.Millisecond, 0.10, 0.10, 0.10},
}

// axes of the figures by statistic: what is varied, in which unit.
var axes = map[string]struct {
	label string
	of    func(severity) float64
}{
	"latency": {"added delay, ms", func(s severity) float64 { return float64(s.delay) / 1e6 }},
	"loss":    {"packet loss, %", func(s severity) float64 { return 100 * s.loss }},
	"ooo":     {"packets out of order, %", func(s severity) float64 { return 100 * s.late }},
	"retrans": {"retransmissions, %", func(s severity) float64 { return 100 * s.again }},
}

// figureOf is where the paper has it: by severity, by memory.
var figureOf = map[string][2]string{"latency": {"6 a", "6 b"}, "loss": {"6 c", "6 d"}, "ooo": {"7 a", "7 b"}, "retrans": {"7 c", "7 d"}}

// studySeeds of a figure's point.
const studySeeds = 2

func severities(ctx context.Context, p *eval.Page) error {
	warn(p)
	runs := eval.Pick(p, studySeeds, 1)
	var traces []traffic.LeanOptions
	for _, s := range steps {
		traces = append(traces, seeds(p, s, runs)...)
	}
	list := both(base)
	outcomes, _, err := run(ctx, p, traces, list)
	if err != nil {
		return err
	}
	at := func(n, step int) outcome { return outcomes[n][step*runs : (step+1)*runs] }
	curves := make([]curve, len(list))
	for n, c := range list {
		curves[n].contestant = c
		for i, s := range steps {
			curves[n].points = append(curves[n].points, point{axes[c.statistic].of(s), at(n, i)})
		}
	}
	p.Text("40 KB in all, %d seeds a point.", runs)
	return draw(p, curves, "severity", 0, func(s string) figure.Axis {
		return figure.Axis{Label: axes[s].label, Min: 0, Max: axes[s].of(steps[len(steps)-1])}
	})
}

// sizes of the memory axis, bytes.
var sizes = []int{base / 2, base, 2 * base, 4 * base, 8 * base}

func memories(ctx context.Context, p *eval.Page) error {
	warn(p)
	runs := eval.Pick(p, studySeeds, 1)
	list := both(sizes...)
	outcomes, _, err := run(ctx, p, seeds(p, bar, runs), list)
	if err != nil {
		return err
	}
	var curves []curve
	for n, c := range list {
		if n%len(sizes) == 0 {
			curves = append(curves, curve{contestant: c})
		}
		last := &curves[len(curves)-1]
		last.points = append(last.points, point{float64(c.memory) / 1000, outcomes[n]})
	}
	p.Text("50 ms, 4 %% loss, 4 %% out of order, 1 %% retransmissions; %d seeds a point.", runs)
	return draw(p, curves, "memory", 1, func(string) figure.Axis {
		return figure.Axis{Label: "memory, KB", Base: 2, Format: func(x float64) string { return fmt.Sprintf("%.0f", x) }}
	})
}

// point of a curve: where on the axis, and what the runs gave.
type point struct {
	x float64
	outcome
}

type curve struct {
	contestant
	points []point
}

// draw writes one table and one picture a statistic: recall and precision of both forms.
func draw(p *eval.Page, curves []curve, kind string, column int, axis func(statistic string) figure.Axis) error {
	for _, s := range statistics {
		var forms []curve
		for _, c := range curves {
			if c.statistic == s {
				forms = append(forms, c)
			}
		}
		p.Text("### Figure %s: %s", figureOf[s][column], s)
		p.Table(tabulate(forms, axis(s).Label))
		if err := p.Figure(picture(s, forms, axis(s)), kind+"-"+s, "recall and precision of "+s+" against "+axis(s).Label); err != nil {
			return err
		}
	}
	return nil
}

func tabulate(forms []curve, label string) *figure.Table {
	t := &figure.Table{Columns: []string{label}}
	for _, c := range forms {
		t.Columns = append(t.Columns, c.form()+": recall", "precision")
	}
	for i, at := range forms[0].points {
		cells := []string{fmt.Sprintf("%.3g", at.x)}
		for _, c := range forms {
			cells = append(cells, c.points[i].recall().String(), figure.Percent(c.points[i].precision().median))
		}
		t.Add(cells...)
	}
	return t
}

func picture(statistic string, forms []curve, axis figure.Axis) *figure.Figure {
	panel := func(title string, of func(outcome) spread) figure.Panel {
		y := figure.Axis{Label: "per cent", Min: 0, Max: 100, Every: 20}
		out := figure.Panel{Title: statistic + ": " + title, X: axis, Y: y}
		for _, c := range forms {
			series := figure.Series{Name: c.form(), Style: figure.Style{Marks: true}}
			for _, at := range c.points {
				series.Points = append(series.Points, figure.Point{X: at.x, Y: 100 * of(at.outcome).median})
			}
			out.Series = append(out.Series, series)
		}
		return out
	}
	recall, precision := panel("recall of the top 100", outcome.recall), panel("precision", outcome.precision)
	recall.Legend = figure.BottomRight
	return &figure.Figure{Panels: []figure.Panel{recall, precision}}
}
