package reorder

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/eval/figure"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// model says what the traffic is like.
func model(_ context.Context, p *eval.Page) error {
	t, err := measure(options(p))
	if err != nil {
		return err
	}
	table := &figure.Table{Columns: []string{"definition", "out of order", "prefixes in trouble (beta)", "... (alpha)", "correlation", "the paper's"}}
	for d := 1; d <= 2; d++ {
		r := t.correlation(d, eval.Pick(p, 100, 5))
		table.Add(strconv.Itoa(d), figure.Percent(t.total.out[d]/t.total.n), strconv.Itoa(len(t.heavy(d, beta))),
			strconv.Itoa(len(t.heavy(d, alpha+1))), fmt.Sprintf("%.2f", r), []string{"0.23", "0.40"}[d-1])
	}
	p.Text("%.0f packets of %d flows and %d prefixes. *Correlation* is Pearson's, of a flow's share of out-of-order packets and "+
		"that of the rest of its prefix (section 4.1.2).", t.total.n, len(t.flows), len(t.prefixes))
	p.Table(table)
	return nil
}

// setting is one curve or column.
type setting struct {
	name string
	set  map[string]string
}

// run replays the model through configurations of one definition, one at a time: in one chain they would take each
// other's second passes, of which a packet has one.
func run(ctx context.Context, o traffic.ReorderOptions, t *truth, definition int, settings []setting) ([]score, error) {
	var scores []score
	for _, s := range settings {
		set := map[string]string{"definition": strconv.Itoa(definition), "epsilon": fmt.Sprint(epsilon[definition]),
			"Rshare": fmt.Sprint(epsilon[definition]), "top": "10000"}
		maps.Copy(set, s.set)
		m, err := traffic.NewReorder(o)
		if err != nil {
			return nil, err
		}
		lines, err := eval.Replay(ctx, traffic.Frames(m), 1, []eval.Config{{Algorithm: "reorder", Set: set}})
		if err != nil {
			return nil, err
		}
		scores = append(scores, t.judge(lines[0], definition))
	}
	return scores, nil
}

// curves of figures 5 and 6.
var curves = []setting{
	{"sampling, report reorder", nil},
	{"sampling, report all, c = 0.5", map[string]string{"report": "all"}},
	{"precision", map[string]string{"method": "precision"}},
	{"hybrid, x = 0.2", map[string]string{"method": "hybrid"}},
}

func memory(ctx context.Context, p *eval.Page) error {
	o := options(p)
	t, err := measure(o)
	if err != nil {
		return err
	}
	sizes := eval.Pick(p, []int{32, 128, 512, 1024}, []int{32, 256})
	for d := 1; d <= 2; d++ {
		p.Log("definition %d", d)
		var settings []setting
		for _, c := range curves {
			for _, n := range sizes {
				set := map[string]string{"buckets": strconv.Itoa(n)}
				maps.Copy(set, c.set)
				settings = append(settings, setting{c.name, set})
			}
		}
		scores, err := run(ctx, o, t, d, settings)
		if err != nil {
			return err
		}
		if err := drawMemory(p, d, sizes, settings, scores); err != nil {
			return err
		}
	}
	return nil
}

func drawMemory(p *eval.Page, d int, sizes []int, settings []setting, scores []score) error {
	table := &figure.Table{Columns: []string{"method", "buckets", "accuracy", "false positives", "reports a packet", "second passes"}}
	axis := figure.Axis{Label: "buckets", Base: 2}
	panels := []figure.Panel{
		{Title: "accuracy", X: axis, Y: figure.Axis{Label: "per cent", Min: 0, Max: 100}, Legend: figure.BottomRight},
		{Title: "false positives", X: axis, Y: figure.Axis{Label: "per cent"}},
		{Title: "communication", X: axis, Y: figure.Axis{Label: "reports in 100 packets"}},
	}
	for n, s := range settings {
		r := scores[n]
		table.Add(s.name, s.set["buckets"], figure.Percent(r.accuracy), figure.Percent(r.wrong), figure.Percent(r.sent), figure.Percent(r.twice))
		if n%len(sizes) == 0 {
			for i := range panels {
				panels[i].Series = append(panels[i].Series, figure.Series{Name: s.name})
			}
		}
		for i, y := range []float64{r.accuracy, r.wrong, r.sent} {
			last := &panels[i].Series[len(panels[i].Series)-1]
			last.Points = append(last.Points, figure.Point{X: float64(sizes[n%len(sizes)]), Y: 100 * y})
		}
	}
	p.Text("Definition %d:", d)
	p.Table(table)
	return p.Figure(&figure.Figure{Panels: panels}, fmt.Sprintf("definition-%d", d), "accuracy, false positives and communication against buckets")
}

func parameters(ctx context.Context, p *eval.Page) error {
	o := options(p)
	t, err := measure(o)
	if err != nil {
		return err
	}
	var settings []setting
	for _, v := range []string{"0s", "30518ns", "1ms", "31250us", "1s", "32s"} {
		settings = append(settings, setting{"T = " + v + ", no limit C", map[string]string{"buckets": "256", "T": v, "C": "16777214"}})
	}
	for _, v := range []string{"1", "4", "16", "64", "256", "4096"} {
		settings = append(settings, setting{"C = " + v + ", T = 31250us", map[string]string{"buckets": "256", "T": "31250us", "C": v}})
	}
	for d := 2; d <= 5; d++ {
		settings = append(settings, setting{fmt.Sprintf("precision, d = %d", d), map[string]string{"buckets": "1024", "method": "precision", "ways": strconv.Itoa(d)}})
	}
	scores, err := run(ctx, o, t, 1, settings)
	if err != nil {
		return err
	}
	table := &figure.Table{Columns: []string{"setting", "buckets", "accuracy", "false positives", "reports a packet", "second passes"}}
	for n, s := range settings {
		r := scores[n]
		table.Add(s.name, s.set["buckets"], figure.Percent(r.accuracy), figure.Percent(r.wrong), figure.Percent(r.sent), figure.Percent(r.twice))
	}
	p.Text("Definition 1. As in section 4.4.1, T is varied without a limit on packets, and C with a long T. (The text has " +
		"T = 2^5 s there; with that a flow of a single packet holds its bucket for as long as the trace lasts, so this is 2^-5 s.)")
	p.Table(table)
	return nil
}
