package fridge

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
)

// named is a configuration with what the reader knows it by.
type named struct {
	name   string
	config bytecode.Config
}

func configsOf(list []named) []bytecode.Config {
	configs := make([]bytecode.Config, len(list))
	for i, n := range list {
		configs[i] = n.config
	}
	return configs
}

// contestants of figure 2, by the number of entries.
func contestants(entries int) []named {
	return []named{
		{"fridge", fridges(fmt.Sprintf("%d@1", entries), "tcp-data")},
		{"overwriting array", array(entries, 1, "overwrite", "tcp-data")},
		{"array, expiry 512 ms", array(entries, 1, "expiry", "tcp-data", "expiry", "512ms")},
	}
}

// cdf is figure 2: 10 million packets, 65,536 entries, p = 1.
func cdf(ctx context.Context, p *eval.Page) error {
	list := contestants(65536)
	packets := eval.Pick(p, 10_000_000, 1_000_000)
	m, err := measure(ctx, isp(packets), seeds(eval.Pick(p, 10, 2), 2), configsOf(list))
	if err != nil {
		return err
	}
	p.Text("ISP model, %d packets, %d answered requests; 65,536 entries, p = 1; %d hash seeds.", packets, len(m.truth), len(m.outcomes[0].runs))
	p.Table(m.percentileTable(list))
	p.Text("Errors, combined as in the paper:")
	p.Table(m.errorTable(list))
	if err := p.Figure(m.cdfFigure(list), "cdf", "CDF of the delays and its error: fridge, overwriting array, array with expiry, truth"); err != nil {
		return err
	}
	m.judgeCDF(p)
	return nil
}

func (m *measured) judgeCDF(p *eval.Page) {
	fridge, overwrite, expiry := m.outcomes[0], m.outcomes[1], m.outcomes[2]
	combined := m.truth.errors(fridge.combined())[atMost]
	worst := fridge.worst(m.truth)[atMost]
	bias := m.truth.errors(overwrite.combined())[atMost]
	p.Bar("maximum error p5 to p95, 65,536 entries, p = 1, ISP model", "8 % or less",
		fmt.Sprintf("%s combined, %s in the worst run", figure.Percent(combined), figure.Percent(worst)), worst <= 0.08)
	p.Bar("the overwriting array in the same run", "above 100 %", figure.Percent(bias), bias > 1)
	late := m.truth.errors(expiry.combined())
	single := "Single runs stay below it too"
	if worst > 0.08 {
		single = "Single runs exceed it"
	}
	p.Text(`The paper has 8 %% for the fridge and 168 %% for its naive array. %s: the worst of them errs by %s. The overwriting array loses what
stays longer than its slots, where at 535,000 requests a second a record lives 122 ms on average.

The array with expiry, which is the one that section 5.1 compares with, is much better than the paper's figure says. With T at the 99th
percentile it is a fair sample of all that is faster than T, since whether a request is accepted does not depend on its delay
and an accepted one cannot be lost before T. What is slower than T is lost for the most part: one per cent of the truth, so that its
95th percentile is about the true 94th (%s too small) and its 99th is %s too small. On this model of the
paper's trace we cannot reproduce 168 %% with expiry, only with overwriting. The price of expiry is the number of samples, %.0f
against %.0f, because requests that nobody answers (87 %%) block their slots until T has passed; and T has to be known.`,
		single, figure.Percent(worst), figure.Percent(late[at95]), figure.Percent(late[at99]), expiry.samples(), fridge.samples())
}

func (m *measured) percentileTable(list []named) *figure.Table {
	t := &figure.Table{Columns: []string{"", "p50", "p95", "p99", "samples", "sum of weights / truth"}}
	t.Add("truth", ms(m.truth.at(0.5)), ms(m.truth.at(0.95)), ms(m.truth.at(0.99)), fmt.Sprint(len(m.truth)), "1")
	for i, n := range list {
		d := m.outcomes[i].combined()
		mean, _ := m.outcomes[i].ratio(m.truth)
		t.Add(n.name, ms(d.At(0.5)), ms(d.At(0.95)), ms(d.At(0.99)), fmt.Sprintf("%.0f", m.outcomes[i].samples()), fmt.Sprintf("%.4f", mean))
	}
	return t
}

func (m *measured) errorTable(list []named) *figure.Table {
	t := &figure.Table{Columns: append(append([]string{""}, errorNames[:]...), "maximum, one run", "maximum, worst run")}
	for i, n := range list {
		o := m.outcomes[i]
		cells := append([]string{n.name}, m.truth.errors(o.combined()).percents()...)
		t.Add(append(cells, figure.Percent(o.single(m.truth)[atMost]), figure.Percent(o.worst(m.truth)[atMost]))...)
	}
	return t
}

func (m *measured) cdfFigure(list []named) *figure.Figure {
	const from, to = 1, 4096 // ms
	curves := []figure.Series{{Name: "truth", Points: cdfPoints(m.truth.share, from, to), Style: figure.Style{Wide: true}}}
	var gaps []figure.Series
	for i, n := range list {
		d := m.outcomes[i].combined()
		style := figure.Style{Place: i + 1, Dashed: i > 0}
		curves = append(curves, figure.Series{Name: n.name, Points: cdfPoints(d.Share, from, to), Style: style})
		gaps = append(gaps, figure.Series{Name: n.name, Points: m.truth.gapPoints(d), Style: style})
	}
	percent := func(x float64) string { return figure.Power(math.Round(x)) + " %" }
	return &figure.Figure{Panels: []figure.Panel{
		{Title: "distribution", X: delayAxis(from, to), Y: figure.Axis{Label: "share of the delays", Min: 0, Max: 100, Every: 20, Format: percent},
			Series: curves, Legend: figure.TopLeft},
		{Title: "error", X: figure.Axis{Label: "percentile", Min: 0, Max: 100, Every: 10},
			Y: figure.Axis{Label: "log2(estimate / truth)", Format: percent}, Series: gaps, Legend: figure.BottomLeft},
	}}
}
