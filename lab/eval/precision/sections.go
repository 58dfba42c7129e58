package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// bars of the recall, by size.
var bars = []float64{.53, .74, .88, .95, .99}

func recall(ctx context.Context, p *eval.Page) error {
	many := setup{model: issueModel, list: []contender{demanded()}, sizes: sizes, seeds: eval.Pick(p, 20, 1), arrivals: false}
	over, err := many.measure(ctx, p)
	if err != nil {
		return err
	}
	for i, bar := range bars {
		all := over[0][i].recall
		p.Bar(fmt.Sprintf("recall of the top 128, exact, initial 1, %d entries, %d seeds", sizes[i], many.seeds), fmt.Sprintf("%.2f", bar),
			fmt.Sprintf("%.4f ± %.4f", mean(all), deviation(all)/math.Sqrt(float64(len(all)))), mean(all) >= bar)
	}
	p.Text("Means of five seeds at a time (1 to 5, 6 to 10, ...), exact admission, initial value 1. With 4,096 entries a run's recall has a standard " +
		"deviation of .007, a mean of five one of .003, and the bar of .99 is that far below what is expected (.993): five seeds miss it one time in six.")
	p.Table(fives(over[0]))
	s := setup{model: issueModel, list: []contender{demanded(),
		shipped(),
		own("9/8, initial 1", map[string]string{"initial": "1", "recirculation": "1"}),
		own("pow2, initial 1", map[string]string{"initial": "1", "recirculation": "1", "admission": "pow2"}),
		own("exact, initial 100", map[string]string{"admission": "exact"}),
		usual(),
		own("pow2, initial 100", map[string]string{"admission": "pow2"}),
		own("deterministic, initial 100", map[string]string{"admission": "deterministic"}),
		hashpipe(2), hashpipe(4), hashpipe(6), cocosketch()}, sizes: sizes, seeds: eval.Pick(p, 5, 1), arrivals: false}
	results, err := s.measure(ctx, p)
	if err != nil {
		return err
	}
	s.shares(p, results)
	p.Text("All contenders, five seeds:")
	p.Table(s.table(results, recallCell))
	p.Text("Standard deviation over the seeds, and share of packets that passed twice:")
	p.Table(s.table(results, func(r result) string { return fmt.Sprintf("%.3f; %.2f %%", deviation(r.recall), 100*mean(r.share)) }))
	return p.Figure(&figure.Figure{Panels: []figure.Panel{s.panel("recall of the 128 largest flows", "recall", figure.BottomRight, results, meanRecall)}},
		"recall", "recall of the 128 largest flows")
}

// fives are the means of five seeds at a time.
func fives(results []result) *figure.Table {
	t := &figure.Table{Columns: []string{"seeds"}}
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for from := 0; from+5 <= len(results[0].recall); from += 5 {
		row := []string{fmt.Sprintf("%d to %d", from+1, from+5)}
		for _, r := range results {
			row = append(row, fmt.Sprintf("%.3f", mean(r.recall[from:from+5])))
		}
		t.Add(row...)
	}
	return t
}

// shares compares what passed twice, and 9/8 with exact admission: rows 4, and 1 against 0.
func (s setup) shares(p *eval.Page, results [][]result) {
	share, far := 0.0, 0.0
	for i := range s.sizes {
		share = max(share, mean(results[4][i].share))
		exact, approximate := results[0][i].recall, results[1][i].recall
		far = max(far, math.Abs(mean(approximate)-mean(exact))-deviation(exact)-deviation(approximate))
	}
	p.Bar("recirculated share, 9/8, initial 100", "1 %", fmt.Sprintf("%.2f %%", 100*share), share <= .01)
	p.Bar("9/8 against exact, initial 1", "within the spread of seeds", fmt.Sprintf("%.3f beyond", max(far, 0)), far <= 0)
}

func arrival(ctx context.Context, p *eval.Page) error {
	if err := against(ctx, p, issueModel, 20, 2); err != nil {
		return err
	}
	return others(ctx, p)
}

func tail(ctx context.Context, p *eval.Page) error { return against(ctx, p, heavyModel, 60, 10) }

// against compares the error on arrival with HashPipe's at every size.
func against(ctx context.Context, p *eval.Page, m model, seeds int, bar float64) error {
	s := setup{model: m, list: []contender{demanded(), hashpipe(2)}, sizes: sizes, seeds: eval.Pick(p, seeds, 1), arrivals: true}
	results, err := s.measure(ctx, p)
	if err != nil {
		return err
	}
	p.Text("%s: %s; %d seeds, with the standard errors of the means: one large flow that finds no entry makes most of a run's error, so that single "+
		"runs of either algorithm differ by a factor of ten.", m.name, m.what, s.seeds)
	p.Table(s.table(results, func(r result) string { return fmt.Sprintf("%.0f ± %.0f", mean(r.mse), standardError(r.mse)) }))
	for i, entries := range s.sizes {
		us, them := results[0][i].mse, results[1][i].mse
		times := mean(them) / mean(us)
		spread := times * math.Hypot(standardError(them)/mean(them), standardError(us)/mean(us))
		p.Bar(fmt.Sprintf("error on arrival against HashPipe d = 2, %s, exact, initial 1, %d entries", m.name, entries),
			fmt.Sprintf("%.0f times lower", bar), fmt.Sprintf("%.1f ± %.1f times", times, spread), times >= bar)
	}
	return nil
}

// others adds what is not in the bars.
func others(ctx context.Context, p *eval.Page) error {
	s := setup{model: issueModel, list: []contender{demanded(), usual(), hashpipe(2), hashpipeSeen(), cocosketch()}, sizes: sizes, seeds: eval.Pick(p, 4, 1), arrivals: true}
	results, err := s.measure(ctx, p)
	if err != nil {
		return err
	}
	p.Text("More contenders, four seeds, the issue's model. *First way alone* is what HashPipe's pipeline itself knows of a packet's flow: " +
		"its other entries stand at places that the packet does not visit.")
	p.Table(s.table(results, mseCell))
	panel := s.panel("mean square error on arrival", "packets squared", figure.TopRight, results, meanMSE)
	panel.Y.Base = 10
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, "arrival", "mean square error on arrival")
}

// variants of one parameter, everything else at its default: both halves of a figure.
func variants(key string, values ...string) func(context.Context, *eval.Page) error {
	return func(ctx context.Context, p *eval.Page) error {
		var list []contender
		for _, v := range values {
			set := map[string]string{key: v}
			if key == "initial" && v == "0" {
				set["recirculation"] = "1"
			}
			list = append(list, own(key+" = "+v, set))
		}
		_, err := varied(ctx, p, key, list)
		return err
	}
}

func varied(ctx context.Context, p *eval.Page, key string, list []contender) ([][]result, error) {
	s := setup{model: caida, list: list, sizes: sizes, seeds: eval.Pick(p, 3, 1), arrivals: true}
	p.Text("%s: %s; three seeds.", s.model.name, s.model.what)
	results, err := s.measure(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.both(p, key, results, meanRecall, top); err != nil {
		return nil, err
	}
	p.Text("Share of packets that passed twice:")
	p.Table(s.table(results, func(r result) string { return fmt.Sprintf("%.2f %%", 100*mean(r.share)) }))
	return results, nil
}

// convergence runs ever longer beginnings of a stream (512 entries, as in the figure).
func convergence(ctx context.Context, p *eval.Page) error {
	model := caida
	longest := eval.Pick(p, 2000000, 64000)
	model.sizes.Packets = longest
	var lengths []int
	for n := longest / 32; n <= longest; n *= 2 {
		lengths = append(lengths, n)
	}
	stream := model.seeded(1).New()
	values := []string{"0", "10", "100", "1000"}
	found := make([]float64, len(values)*len(lengths))
	err := precision.Parallel(len(values), func(i int) error {
		shared := newSeeded(1)
		defer shared.close()
		who := own("", map[string]string{"initial": values[i], "recirculation": "1"})
		for j, n := range lengths {
			part := stream.First(n)
			out, err := who.run(512, part, shared, false)
			if err != nil {
				return err
			}
			found[i*len(lengths)+j] = heavy.Recall(part.Truth(), heavy.Top(out.Counts, top), top)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	p.Text("The beginnings of one stream (%s, but %d packets), 512 entries: recall of the 128 flows that are the largest so far.", model.what, longest)
	t := &figure.Table{Columns: []string{"packets"}}
	panel := figure.Panel{Title: "recall over time, 512 entries", X: figure.Axis{Label: "packets", Base: 10}, Y: figure.Axis{Label: "recall"}, Legend: figure.BottomRight}
	for _, n := range lengths {
		t.Columns = append(t.Columns, fmt.Sprint(n))
	}
	for i, v := range values {
		row, series := []string{"initial = " + v}, figure.Series{Name: "initial = " + v}
		for j, n := range lengths {
			x := found[i*len(lengths)+j]
			row = append(row, fmt.Sprintf("%.3f", x))
			series.Points = append(series.Points, figure.Point{X: float64(n), Y: x})
		}
		t.Add(row...)
		panel.Series = append(panel.Series, series)
	}
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, "convergence", "recall over time")
}

// admission is figure 3.6, whose names the contenders have: the top 32, on a heavy-tailed and on a skewed workload.
func admission(m model) func(context.Context, *eval.Page) error {
	list := []contender{unadapted(), rounded(), own("PRECISION (2-approximate)", map[string]string{"admission": "pow2"}),
		own("9/8-approximate PRECISION", nil), own("PRECISION, exact", map[string]string{"admission": "exact"})}
	return largest(m, "admission", list, "*No adaptation* and *2-approximate* are plain Go with initial value 0.")
}

// skew is figure 3.7 on one workload.
func skew(m model) func(context.Context, *eval.Page) error {
	list := []contender{usual(), hashpipe(2), hashpipe(4), hashpipe(6), cocosketch(), spaceSaving(), rap(), setRAP(2)}
	return largest(m, "skew", list, "The first is PRECISION with d = 2.")
}

// largest compares errors on arrival, and recalls of the 32 largest flows.
func largest(m model, name string, list []contender, remark string) func(context.Context, *eval.Page) error {
	return func(ctx context.Context, p *eval.Page) error {
		s := setup{model: m, list: list, sizes: sizes, seeds: eval.Pick(p, 3, 1), arrivals: true}
		p.Text("%s: %s; three seeds. %s", m.name, m.what, remark)
		results, err := s.measure(ctx, p)
		if err != nil {
			return err
		}
		return s.both(p, name+"-"+m.name, results, meanRecall32, 32)
	}
}

// deterministic is figure 3.9.
func deterministic(ctx context.Context, p *eval.Page) error {
	s := setup{model: caida, list: []contender{own("deterministic", map[string]string{"admission": "deterministic"}), usual(), setRAP(2)}, sizes: sizes, seeds: eval.Pick(p, 3, 1), arrivals: true}
	p.Text("%s: %s; three seeds.", s.model.name, s.model.what)
	results, err := s.measure(ctx, p)
	if err != nil {
		return err
	}
	return s.both(p, "deterministic", results, meanRecall, top)
}
