package reorder

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// buckets of figures 5 to 7.
func sizes(p *eval.Page) []int {
	return eval.Pick(p, []int{32, 128, 512, 1024, 4096, 16384}, []int{32, 1024})
}

func buckets(n int) string { return strconv.Itoa(n) }

// curve is one line of a figure, by size.
type curve struct {
	name   string
	points []summary
	x      []float64 // of a hybrid
}

// sampling is figure 5.
func sampling(ctx context.Context, p *eval.Page) error {
	var chains [][]setting
	for _, n := range sizes(p) {
		set := map[string]string{"buckets": buckets(n)}
		chains = append(chains, []setting{{definition: 1, set: set}}, []setting{{definition: 1, set: set, c: []float64{0.5, 1}}})
	}
	got, err := run(ctx, p, chains)
	if err != nil {
		return err
	}
	curves := []curve{{name: "report reorder"}, {name: "report all, c = 0.5"}, {name: "report all, c = 1"}}
	for i := 0; i < len(chains); i += 2 {
		curves[0].points = append(curves[0].points, summarize(got[i][0][0]))
		curves[1].points = append(curves[1].points, summarize(got[i+1][0][0]))
		curves[2].points = append(curves[2].points, summarize(got[i+1][0][1]))
	}
	table(p, curves)
	bars(p, "figure 5, definition 1, report reorder", curves[0])
	return draw(p, curves, "sampling")
}

// bars of issue 3 that a curve of sampling is compared with.
func bars(p *eval.Page, name string, c curve) {
	for i, n := range sizes(p) {
		least, bar := 0.5, "half or more"
		switch n {
		case 1024:
			least, bar = 0.9, "90 % or more"
		case 32:
		default:
			continue
		}
		p.Bar(fmt.Sprintf("prefixes found with %d buckets (%s)", n, name), bar, c.points[i].accuracy.String(), c.points[i].accuracy.mean >= least)
	}
	most := 0.0
	for _, s := range c.points {
		most = max(most, s.twice.mean)
	}
	p.Bar("second passes ("+name+")", "10 % of the packets or less", figure.Percent(most)+" at most", most <= 0.1)
}

func table(p *eval.Page, curves []curve) {
	t := &figure.Table{Columns: []string{"method", "buckets", "accuracy", "false positives", "reports a packet", "second passes"}}
	for _, c := range curves {
		for i, n := range sizes(p) {
			name := c.name
			if c.x != nil {
				name = fmt.Sprintf("%s, x = %.1f", name, c.x[i])
			}
			t.Add(append([]string{name, buckets(n)}, c.points[i].cells()...)...)
		}
	}
	p.Table(t)
}

func draw(p *eval.Page, curves []curve, name string) error {
	axis := figure.Axis{Label: "buckets", Base: 2}
	panels := []figure.Panel{
		{Title: "accuracy", X: axis, Y: figure.Axis{Label: "per cent", Min: 0, Max: 100}, Legend: figure.BottomRight},
		{Title: "false positives", X: axis, Y: figure.Axis{Label: "per cent"}},
		{Title: "communication", X: axis, Y: figure.Axis{Label: "reports in 100 packets", Base: 10}},
	}
	for _, c := range curves {
		for i := range panels {
			s := figure.Series{Name: c.name, Style: figure.Style{Marks: true}}
			for k, n := range sizes(p) {
				y := []spread{c.points[k].accuracy, c.points[k].wrong, c.points[k].sent}[i]
				s.Points = append(s.Points, figure.Point{X: float64(n), Y: 100 * y.mean})
			}
			panels[i].Series = append(panels[i].Series, s)
		}
	}
	return p.Figure(&figure.Figure{Panels: panels}, name, "accuracy, false positives and communication against buckets")
}

// shares of figure 6: the grid of section 4.3.
func shares(p *eval.Page) []float64 {
	return eval.Pick(p, []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, []float64{0.2, 0.5})
}

// gridOf is the hybrid with every x, in one chain.
func gridOf(p *eval.Page, definition, n int) (chain []setting) {
	for _, x := range shares(p) {
		chain = append(chain, hybridOf(definition, n, x))
	}
	return chain
}

func hybridOf(definition, n int, x float64) setting {
	return setting{definition: definition, set: map[string]string{"buckets": buckets(n), "method": "hybrid", "x": fmt.Sprint(x)}}
}

// best is the x of the grid that finds most; of those within a hundredth of it, the one with the fewest reports.
func best(p *eval.Page, grid []summary) float64 {
	top, fewest, x := 0.0, math.Inf(1), 0.0
	for _, s := range grid {
		top = max(top, s.accuracy.mean)
	}
	for i, s := range grid {
		if s.accuracy.mean >= top-0.01 && s.sent.mean < fewest {
			fewest, x = s.sent.mean, shares(p)[i]
		}
	}
	return x
}

// search runs the grid of one definition; the winners' shares, by size.
func search(ctx context.Context, p *eval.Page, definition int) (chosen []float64, err error) {
	var chains [][]setting
	for _, n := range sizes(p) {
		chains = append(chains, gridOf(p, definition, n))
	}
	got, err := run(ctx, p, chains)
	if err != nil {
		return nil, err
	}
	t := &figure.Table{Columns: []string{"buckets"}}
	for _, x := range shares(p) {
		t.Columns = append(t.Columns, fmt.Sprintf("x = %.1f", x))
	}
	for i, n := range sizes(p) {
		row, grid := []string{buckets(n)}, make([]summary, len(got[i]))
		for k := range grid {
			grid[k] = summarize(got[i][k][0])
			row = append(row, fmt.Sprintf("%s, %s", figure.Percent(grid[k].accuracy.mean), figure.Percent(grid[k].sent.mean)))
		}
		t.Add(row...)
		chosen = append(chosen, best(p, grid))
	}
	p.Text("Definition %d, the grid over x: accuracy, and reports a packet.", definition)
	p.Table(t)
	return chosen, nil
}

// allMethods is figure 6 of one definition.
func allMethods(definition int) func(ctx context.Context, p *eval.Page) error {
	return func(ctx context.Context, p *eval.Page) error {
		chosen, err := search(ctx, p, definition)
		if err != nil {
			return err
		}
		var list []setting
		for i, n := range sizes(p) {
			set := map[string]string{"buckets": buckets(n)}
			list = append(list, setting{definition: definition, set: set},
				setting{definition: definition, set: map[string]string{"buckets": buckets(n), "method": "precision"}},
				hybridOf(definition, n, chosen[i]))
		}
		got, err := run(ctx, p, alone(list))
		if err != nil {
			return err
		}
		curves := []curve{{name: "sampling"}, {name: "precision, d = 2"}, {name: "hybrid", x: chosen}}
		for i := range list {
			c := &curves[i%3]
			c.points = append(c.points, summarize(got[i][0][0]))
		}
		p.Text("Definition %d: each method alone, the hybrid with the x that finds most (of those within a hundredth, the one that "+
			"sends least).", definition)
		table(p, curves)
		bars(p, fmt.Sprintf("figure 6, definition %d", definition), curves[0])
		fewer(p, definition, curves[0], curves[2])
		return draw(p, curves, fmt.Sprintf("definition-%d", definition))
	}
}

// fewer compares reports of a hybrid with those of sampling where it finds as much, within two standard deviations of seeds.
func fewer(p *eval.Page, definition int, sampling, hybrid curve) {
	for i, n := range sizes(p) {
		s, h := sampling.points[i], hybrid.points[i]
		equal := h.accuracy.mean >= s.accuracy.mean-2*max(s.accuracy.deviation, 0.005)
		p.Bar(fmt.Sprintf("definition %d, %d buckets: hybrid against sampling", definition, n), "fewer reports at equal accuracy",
			fmt.Sprintf("%s of sampling's reports; accuracy %s against %s", figure.Percent(h.sent.mean/s.sent.mean),
				figure.Percent(h.accuracy.mean), figure.Percent(s.accuracy.mean)), equal && h.sent.mean < s.sent.mean)
	}
}
