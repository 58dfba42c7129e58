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

// logUniform is the trace of section 5.2: 1.25 million requests at one a microsecond, delays up to longest.
func logUniform(requests int, longest time.Duration) trace {
	return func() (model, error) {
		return traffic.NewLogUniform(traffic.LogUniformOptions{Requests: requests, Max: longest, Seed: 3})
	}
}

// sweep of entry probabilities, 2^0 to 2^-13.
const sweepSteps = 14

func sweep(entries int) []bytecode.Config {
	var list []bytecode.Config
	for k := range sweepSteps {
		list = append(list, fridges(fmt.Sprintf("%d@1/%d", entries, 1<<k), "tcp-handshake"))
	}
	return list
}

// probability is figure 3: error against p for two ranges of delays, 4096 entries.
func probability(ctx context.Context, p *eval.Page) error {
	ranges := []time.Duration{4096 * time.Millisecond, 64 * time.Millisecond}
	requests := eval.Pick(p, 1_250_000, 100_000)
	var panels []figure.Panel
	for i, longest := range ranges {
		m, err := measure(ctx, logUniform(requests, longest), seeds(eval.Pick(p, 10, 2), 3), sweep(4096))
		if err != nil {
			return err
		}
		panel := m.sweepPanel(fmt.Sprintf("delays up to %d ms", longest.Milliseconds()))
		if i == 0 {
			panel.Legend = figure.BottomLeft
		}
		panels = append(panels, panel)
		m.sweepText(p, longest)
	}
	if err := p.Figure(&figure.Figure{Panels: panels}, "probability", "error against entry probability for two ranges of delays"); err != nil {
		return err
	}
	p.Text(`The valley of figure 3 is there, wide and flat: half or twice the best p hardly matters. It lies at somewhat larger p than in
the paper (1/512 and 1/16) and than the rule of section 3.3 (M/p = requests within the longest delay: 1/1024 and 1/16). For delays
up to 4096 ms that is because the trace, which is the paper's, has requests for 1.25 s only: no record ever sees more than 1.25
million insertions, and the best lifetime is about that. For delays up to 64 ms the best lifetime is a quarter to a half of the
longest delay: few delays of a log-uniform distribution are that long, and a larger p pays for all the others.

The valley is not symmetric. A p that is too small costs samples, and the error grows with their root. A p that is too large is fatal:
the few slow requests that survive carry weights of e^(delay/lifetime), or there are none, and since shares are taken of the
sum, that spoils every percentile and not only the last ones. When in doubt, take the smaller p.`)
	return nil
}

func (m *measured) sweepPanel(title string) figure.Panel {
	panel := figure.Panel{Title: title, X: figure.Axis{Label: "entry probability", Base: 2, Min: math.Exp2(1 - sweepSteps), Max: 1, Every: 3},
		Y: errorAxis("error of one run")}
	panel.Y.Min, panel.Y.Max = 0.1, 2000
	for kind := range errorNames {
		s := figure.Series{Name: errorNames[kind], Style: figure.Style{Marks: true}}
		for k, o := range m.outcomes {
			s.Points = append(s.Points, figure.Point{X: math.Exp2(float64(-k)), Y: 100 * o.single(m.truth)[kind]})
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// sweepText states which p was best and what its neighbours cost.
func (m *measured) sweepText(p *eval.Page, longest time.Duration) {
	t := &figure.Table{Columns: append(append([]string{"p"}, errorNames[:]...), "maximum, combined", "samples")}
	best := 0
	for k, o := range m.outcomes {
		if m.score(k) < m.score(best) {
			best = k
		}
		cells := append([]string{figure.Power(math.Exp2(float64(-k)))}, o.single(m.truth).percents()...)
		t.Add(append(cells, figure.Percent(m.truth.errors(o.combined())[atMost]), fmt.Sprintf("%.0f", o.samples()))...)
	}
	p.Text("Delays up to %d ms, 4096 entries, one request a microsecond, errors of one run. Best: p = %s, a lifetime of %d requests (%d go by within the longest delay).",
		longest.Milliseconds(), figure.Power(math.Exp2(float64(-best))), 4096<<best, longest.Microseconds())
	p.Table(t)
}

// score of a configuration: the geometric mean of what one run errs by at the 50th, 95th and 99th percentile.
func (m *measured) score(i int) float64 {
	e := m.outcomes[i].single(m.truth)
	return math.Cbrt(e[at50] * e[at95] * e[at99])
}
