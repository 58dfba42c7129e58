package fridge

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// counter compares recorded insertions with inferred ones, at a steady rate and with bursts.
func counter(ctx context.Context, p *eval.Page) error {
	requests := eval.Pick(p, 1_000_000, 100_000)
	steady := func() (model, error) {
		return traffic.NewLogUniform(traffic.LogUniformOptions{Requests: requests, Rate: 1e9 / burstMean, Max: burstMost * time.Nanosecond,
			Min: burstMost / (1 << burstSpan) * time.Nanosecond, Seed: 11})
	}
	bursty := func() (model, error) { return newBursts(requests, 11), nil }
	layouts := []string{"65536@1", "4096@1/8"}
	t := &figure.Table{Columns: append(append([]string{"traffic, fridge, counter"}, errorNames[:]...), "sum of weights / truth")}
	curves := make([][]figure.Series, 2)
	for k, tr := range []trace{steady, bursty} {
		m, err := measure(ctx, tr, seeds(eval.Pick(p, 10, 2), 10), counterConfigs(layouts))
		if err != nil {
			return err
		}
		for i, o := range m.outcomes {
			name := fmt.Sprintf("%s, %s, %s", []string{"steady", "bursts"}[k], layouts[i/2], []string{"recorded", "inferred"}[i%2])
			sum, se := o.ratio(m.truth)
			t.Add(append(append([]string{name}, m.truth.errors(o.combined()).percents()...), fmt.Sprintf("%.3f +- %.3f", sum, 2*se))...)
			curves[k] = append(curves[k], figure.Series{Name: layouts[i/2] + ", " + []string{"recorded", "inferred"}[i%2],
				Points: m.truth.gapPoints(o.combined()), Style: figure.Style{Place: i/2 + 1, Dashed: i%2 == 1}})
		}
	}
	p.Text("Log-uniform delays, half a million requests a second, 40 %% answered; with bursts: for 10 of every 100 ms requests come eight times as fast and " +
		"take four times as long. Combined errors, which show the bias.")
	p.Table(t)
	f := &figure.Figure{Panels: []figure.Panel{counterPanel("steady rate", curves[0], figure.TopLeft), counterPanel("bursts", curves[1], figure.NoLegend)}}
	if err := p.Figure(f, "counter", "error by percentile, insertions recorded and inferred, at a steady rate and with bursts"); err != nil {
		return err
	}
	p.Text(`At a steady rate the delay says how many insertions went by, and inferring them saves a third of the memory at little cost. (The 2 %%
of error come from the end of the trace: the mean rate includes the time after the last request, in which nothing is
inserted.) When the rate jumps, and delays with it, the inferred number is the one of an average moment, and wrong for everything that
was asked in a burst or beside it: the percentiles are several per cent off, and so is the number of answers. Bursts are what one
measures delays for, so recording is the default, as section 3.3 advises.`)
	return nil
}

func counterConfigs(layouts []string) []bytecode.Config {
	var list []bytecode.Config
	for _, layout := range layouts {
		for _, c := range []string{"recorded", "inferred"} {
			list = append(list, fridges(layout, "tcp-handshake", "counter", c))
		}
	}
	return list
}

func counterPanel(title string, curves []figure.Series, legend figure.Corner) figure.Panel {
	percent := func(x float64) string { return figure.Power(math.Round(x)) + " %" }
	return figure.Panel{Title: title, X: figure.Axis{Label: "percentile", Min: 0, Max: 100, Every: 10},
		Y: figure.Axis{Label: "log2(estimate / truth)", Min: -15, Max: 15, Every: 5, Format: percent}, Series: curves, Legend: legend}
}
