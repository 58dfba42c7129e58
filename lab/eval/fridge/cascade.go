package fridge

import (
	"context"
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// stageNames of the fridges of section 4.1.
var stageNames = []string{"one stage", "two stages", "four stages"}

// staged are fridges of one, two and four stages with the same memory, p = 1.
func staged(entries int) []bytecode.Config {
	return []bytecode.Config{
		fridges(fmt.Sprintf("%d@1", entries), "tcp-data"),
		array(entries, 2, "cascade", "tcp-data"),
		array(entries, 4, "cascade", "tcp-data"),
	}
}

// slowISP is the ISP model at a sixteenth of its rate, so that the largest array holds on to the slowest requests: no
// array may have more than 65,536 records, or it would not fit a switch.
func slowISP(packets int) trace {
	return func() (model, error) {
		return traffic.NewISP(traffic.ISPOptions{Packets: packets, Seed: 5, Duration: 16 * time.Duration(packets) * 1140 * time.Nanosecond})
	}
}

// cascade is the multi-stage fridge of section 4.1, as a warning.
func cascade(ctx context.Context, p *eval.Page) error {
	sizes := eval.Pick(p, powers(10, 15), powers(10, 11))
	var configs []bytecode.Config
	for _, entries := range sizes {
		configs = append(configs, staged(entries)...)
	}
	m, err := measure(ctx, slowISP(eval.Pick(p, 2_000_000, 300_000)), seeds(eval.Pick(p, 5, 2), 8), configs)
	if err != nil {
		return err
	}
	p.Text("ISP model at a sixteenth of its rate (17,000 requests within the 99th percentile), %d answered requests, p = 1, %d hash seeds; the same memory in one array, or split into stages that pass evicted records on. "+
		"Errors of one run, and the sum of weights.", len(m.truth), len(m.outcomes[0].runs))
	t := &figure.Table{Columns: append(append([]string{"entries, stages"}, errorNames[:]...), "sum of weights / truth", "samples")}
	for i, o := range m.outcomes {
		sum, _ := o.ratio(m.truth)
		cells := append([]string{fmt.Sprintf("%d, %s", sizes[i/3], stageNames[i%3])}, o.single(m.truth).percents()...)
		t.Add(append(cells, fmt.Sprintf("%.3f", sum), fmt.Sprintf("%.0f", o.samples()))...)
	}
	p.Table(t)
	if err := p.Figure(m.stageFigure(sizes), "cascade", "error against memory of fridges with one, two and four stages"); err != nil {
		return err
	}
	p.Text(`All of them are unbiased in theory, but a weight can only be given to a sample that comes back. Records of a fridge with D stages
live about equally long, M/p insertions; those of one stage live geometrically long, and some much longer. Delays above the lifetime
thus return from one stage with large weights, and from four stages hardly at all: what never returns is missing in the
percentiles and in the sum of weights, unless a run is lucky and gets one sample with an enormous weight. Only with a lifetime
of twice the 99th percentile (here 32,768 entries) do stages no harm, and then they are not needed. A fridge has one stage; more
memory goes into a larger array, or into a second fridge.`)
	return nil
}

func (m *measured) stageFigure(sizes []int) *figure.Figure {
	var panels []figure.Panel
	for kind, name := range errorNames {
		panel := figure.Panel{Title: name, X: entriesAxis(float64(sizes[0]), float64(sizes[len(sizes)-1])), Y: errorAxis("")}
		panel.Y.Min, panel.Y.Max = 0.01, 1000
		panel.X.Every = 1
		if kind == 0 {
			panel.Y.Label, panel.Legend = "error of one run", figure.TopLeft
		}
		for stage, stages := range stageNames {
			s := figure.Series{Name: stages, Style: figure.Style{Marks: true, Dashed: stage > 0}}
			for i, entries := range sizes {
				s.Points = append(s.Points, figure.Point{X: float64(entries), Y: 100 * m.outcomes[3*i+stage].single(m.truth)[kind]})
			}
			panel.Series = append(panel.Series, s)
		}
		panels = append(panels, panel)
	}
	return small(panels)
}
