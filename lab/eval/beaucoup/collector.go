package beaucoup

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// trial is a collector that is measured: the threshold and the limits that make the compiler choose it.
type trial struct {
	threshold float64
	budget    string
	coupons   string
	bar       float64 // mean relative error at most; 0: what theory gives, within half a point
}

// batches of collectors that take about as many packets: one chain each.
var trials = [][]trial{
	{{43, "1", "32", 0}, {86, "1/2", "32", 0}, {57, "1", "64", .125}, {160, "1/2", "64", .125}},
	{{686, "1/16", "32", 0}, {1600, "1/16", "64", .125}},
	{{2745, "1/64", "32", 0}, {4397, "1/40", "64", 0}, {6405, "1/64", "64", .125}},
}

// outcome of a trial.
type outcome struct {
	collector compile.Collector
	law       *law
	errors    tally
	draws     tally // against CC
	missing   int
	between   tally // means of seeds, against the threshold
}

// windows of a seed, each with hashes of its own (beaucoup.rotate).
const windows = 50

// collectors compares what the collectors of a batch do with theory, over many hashes.
func collectors(batch []trial) func(context.Context, *eval.Page) error {
	return func(ctx context.Context, p *eval.Page) error {
		seeds, keys := eval.Pick(p, 20, 2), eval.Pick(p, keysFor(batch), 5)
		p.Text("%d seeds, each with packets and a loaded program of its own, and %d windows of each with new hashes: %d sets of hashes. For each "+
			"of them %d keys begin anew, every one with attributes that no other key has. *Between sets* is the variance of the "+
			"sets' means times the keys of a set, over the variance of single collectors: 1 when keys are as good as seeds.", seeds, windows, seeds*windows, keys)
		t := &figure.Table{Columns: []string{"threshold, budget", "m, n, 1/p", "m*p", "collectors", "error, theory", "measured", "+-", "draws against CC(m, p, n)",
			"+-", "between sets", "no alert"}}
		out, err := tryAll(ctx, batch, seeds, keys)
		if err != nil {
			return err
		}
		for i, trial := range batch {
			out[i].show(p, t, trial, keys)
		}
		p.Table(t)
		return nil
	}
}

// keysFor spends about 10,000 draws a set of hashes and batch: 8 to 16 keys.
func keysFor(batch []trial) int {
	most := 0.0
	for _, t := range batch {
		most = max(most, t.threshold)
	}
	return min(16, max(8, int(10000/most)))
}

func (o *outcome) show(p *eval.Page, t *figure.Table, trial trial, keys int) {
	c := o.collector
	want, got, draws := o.law.err(trial.threshold), o.errors.err(), (1 + o.draws.bias())
	one := o.law.deviation() / trial.threshold
	between := (o.between.square/o.between.n - o.between.bias()*o.between.bias()) * float64(keys) / (one * one)
	t.Add(fmt.Sprintf("%g, %s", trial.threshold, trial.budget), fmt.Sprintf("%d, %d, %g", c.M, c.N, 1/c.P), figure.Power(float64(c.M)*c.P), fmt.Sprint(o.errors.n),
		points(want), points(got), points(o.errors.sure()), fmt.Sprintf("%.4f", draws), fmt.Sprintf("%.4f", o.draws.biasSure()), fmt.Sprintf("%.2f", between),
		strconv.Itoa(o.missing))
	name := fmt.Sprintf("m = %d, n = %d, m*p = %s", c.M, c.N, figure.Power(float64(c.M)*c.P))
	if trial.bar > 0 {
		p.Bar("error of one collector, "+name, points(trial.bar)+" or less", points(got), got <= trial.bar)
	} else {
		p.Bar("error of one collector, "+name, points(want)+", within half a point", points(got), math.Abs(got-want) <= .005)
	}
	p.Bar("draws, "+name, "CC(m, p, n) within 2 %", fmt.Sprintf("%+.2f %%", 100*(draws-1)), math.Abs(draws-1) <= .02)
}

func points(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// query of a trial, over keys that are VLANs.
func (t trial) query(window int64) string {
	return fmt.Sprintf("q: count distinct dst by vlan > %g in %v", t.threshold, time.Duration(window))
}

func (t trial) config(window int64) bytecode.Config {
	return bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"queries": t.query(window), "budget": t.budget, "coupons": t.coupons,
		"top": "100000", "rotate": "true", "entries": "2048"}}
}

// tryAll measures a batch in one chain, over all seeds.
func tryAll(ctx context.Context, batch []trial, seeds, keys int) ([]outcome, error) {
	out := make([]outcome, len(batch))
	each := 0
	for i, t := range batch {
		c, err := t.compile()
		if err != nil {
			return nil, err
		}
		out[i].collector, out[i].law = c, newLaw(c, 1e-7)
		each = max(each, out[i].law.most(1e-5))
	}
	var mu sync.Mutex
	err := bytecode.Parallel(ctx, seeds, func(ctx context.Context, n int) error {
		m := newFresh(uint64(n)+1, keys, each, windows)
		lines, err := m.replay(ctx, batch, seed(n))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range lines {
			if err := out[i%len(batch)].add(batch[i%len(batch)], m, &lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// replay runs the model through the collectors of a batch.
func (f *fresh) replay(ctx context.Context, batch []trial, seed uint64) ([]report.Line, error) {
	configs := make([]bytecode.Config, len(batch))
	for i, t := range batch {
		configs[i] = t.config(f.window())
	}
	return bytecode.ReplayWith(ctx, traffic.Frames(f), session.Config{Seed: seed, Window: time.Duration(f.window())}, configs)
}

// seed number n of hashes.
func seed(n int) uint64 { return (uint64(n) + 1) * 0x9e3779b97f4a7c15 }

// compile returns the collector that the trial's limits lead to.
func (t trial) compile() (compile.Collector, error) {
	queries, err := compile.ParseQueries(t.query(int64(time.Second)))
	if err != nil {
		return compile.Collector{}, err
	}
	program, err := compile.Compile(queries, compile.CompileOptions{Budget: fraction(t.budget), Word: int(fraction(t.coupons)), Ties: true})
	if err != nil {
		return compile.Collector{}, err
	}
	return program.Queries[0].Collector, nil
}

// fraction reads a number like 1/3.
func fraction(s string) float64 {
	var a, b float64
	if n, _ := fmt.Sscanf(s, "%g/%g", &a, &b); n == 2 {
		return a / b
	}
	return a
}

// add the alerts of a window.
func (o *outcome) add(t trial, m *fresh, l *report.Line) error {
	if mm, n, p := number(&l.Report, "queries", "q", "m"), number(&l.Report, "queries", "q", "n"), number(&l.Report, "queries", "q", "p"); mm != float64(o.collector.M) ||
		n != float64(o.collector.N) || p != o.collector.P {
		return fmt.Errorf("the program runs %g, %g, %g and not %+v", mm, n, p, o.collector)
	}
	list, err := alertsOf(l)
	if err != nil {
		return err
	}
	var set tally
	for _, a := range list {
		count := m.count(a.time)
		set.add(count, t.threshold)
		o.draws.add(count, cc(o.collector))
	}
	o.errors.join(set)
	o.missing += m.keys - len(list)
	if len(list) > 0 {
		o.between.add((1+set.bias())*t.threshold, t.threshold)
	}
	return nil
}
