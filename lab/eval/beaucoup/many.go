package beaucoup

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
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

var keyAndWindow = regexp.MustCompile(`by \S+ > (\d+) in \S+`)

// byVLAN is the shipped set with other keys and windows: attributes, filters and thresholds stay.
func byVLAN(window time.Duration) string {
	return keyAndWindow.ReplaceAllString(compile.Ready("many"), fmt.Sprintf("by vlan > $1 in %v", window))
}

// verdict is how a query does together with the others, and alone.
type verdict struct {
	query           compile.Compiled
	theory          *law    // alone
	expected        float64 // draws after ties, by the compiler
	together, alone tally
	missing         int
}

// together compares 26 queries in one program with the same ones alone, each with the coupons that it draws there.
func together(ctx context.Context, p *eval.Page) error {
	seeds, windows, keys := eval.Pick(p, 8, 2), eval.Pick(p, 20, 2), 8
	verdicts, err := manyVerdicts(ctx, seeds, windows, keys)
	if err != nil {
		return err
	}
	p.Text("The 26 shipped queries with their attributes, filters and thresholds at the default budget of a third of a coupon a packet, "+
		"counted by VLAN: every packet is new to all eleven attributes, so each of them draws independently of the others. *Alone* is a "+
		"program with this query only and the coupons a packet that it draws among the others as its budget. %d sets of hashes with %d keys "+
		"each. +- is one standard error. All packets are SYNs. Ties and crowds took away the share of the coupons that the compiler reckons with.", seeds*windows, keys)
	t := &figure.Table{Columns: []string{"query", "threshold", "m, n, 1/p", "error together", "alone", "alone, theory", "ratio", "+-", "bias", "+-", "no alert"}}
	worst, most, all := 0.0, 0.0, 0.0
	for i := range verdicts {
		v := &verdicts[i]
		ratio := v.together.err() / v.alone.err()
		sure := ratio * math.Hypot(v.together.sure()/v.together.err(), v.alone.sure()/v.alone.err())
		c := v.query.Collector
		t.Add(v.query.Name, fmt.Sprint(v.query.Threshold), fmt.Sprintf("%d, %d, %g", c.M, c.N, 1/c.P), points(v.together.err()), points(v.alone.err()),
			points(v.theory.err(float64(v.query.Threshold))), fmt.Sprintf("%.3f", ratio), fmt.Sprintf("%.3f", sure), points(v.together.bias()),
			points(v.together.biasSure()), fmt.Sprint(v.missing))
		worst, most, all = max(worst, ratio), max(most, math.Abs(v.together.bias())), all+ratio/float64(len(verdicts))
	}
	p.Table(t)
	p.Bar("26 queries together, each query's error over that of it alone, fresh fields", "1.15 or less", fmt.Sprintf("%.3f at most, %.3f in the mean", worst, all), worst <= 1.15)
	p.Bar("26 queries together, bias of each behind the correction for ties, fresh fields", "5 % or less", points(most)+" at most", most <= .05)
	return nil
}

func manyVerdicts(ctx context.Context, seeds, windows, keys int) ([]verdict, error) {
	program, err := compileMany(byVLAN(time.Second), 1./3, 1)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(program.Queries))
	each := 0
	for i := range verdicts {
		v := &verdicts[i]
		v.query = program.Queries[i]
		alone, err := compiled(v.query.Threshold, budgetOf(&v.query), 32)
		if err != nil {
			return nil, err
		}
		v.theory, v.expected = newLaw(alone, 1e-7), program.Effective(&v.query).Draws()
		each = max(each, newLaw(program.Effective(&v.query), 1e-6).most(1e-4))
	}
	model := func(n int) *fresh { return newFresh(uint64(n)+1000, keys, each, windows) }
	window := time.Duration(model(0).window())
	if err := runTogether(ctx, verdicts, seeds, window, model); err != nil {
		return nil, err
	}
	return verdicts, runAlone(ctx, verdicts, seeds, window, model)
}

// budgetOf a query alone: what it draws among the others.
func budgetOf(c *compile.Compiled) float64 { return float64(c.Collector.M) * c.Collector.P }

func compileMany(text string, budget float64, tables int) (*compile.Program, error) {
	queries, err := compile.ParseQueries(text)
	if err != nil {
		return nil, err
	}
	return compile.Compile(queries, compile.CompileOptions{Budget: budget, Word: 32, Ties: true, Tables: tables})
}

// oneLine is a set of queries as a parameter.
func oneLine(text string) string {
	return strings.Join(strings.Split(strings.TrimSpace(text), "\n"), "; ")
}

func runTogether(ctx context.Context, verdicts []verdict, seeds int, window time.Duration, model func(int) *fresh) error {
	var mu sync.Mutex
	return bytecode.Parallel(ctx, seeds, func(ctx context.Context, n int) error {
		m := model(n)
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(m), session.Config{Seed: seed(n), Window: window}, []bytecode.Config{{Algorithm: beaucoup.Name,
			Set: map[string]string{"queries": oneLine(byVLAN(window)), "rotate": "true", "top": "100000"}}})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			if err := judge(verdicts, &l, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func judge(verdicts []verdict, l *report.Line, m *fresh) error {
	list, err := alertsOf(l)
	if err != nil {
		return err
	}
	for i := range verdicts {
		verdicts[i].missing += m.keys
	}
	for _, a := range list {
		i := slices.IndexFunc(verdicts, func(v verdict) bool { return v.query.Name == a.query })
		verdicts[i].together.add(m.count(a.time), float64(verdicts[i].query.Threshold))
		verdicts[i].missing--
	}
	return nil
}

// runAlone measures each query in a program of its own, many of them in a chain.
func runAlone(ctx context.Context, verdicts []verdict, seeds int, window time.Duration, model func(int) *fresh) error {
	var mu sync.Mutex
	batches := bytecode.Batches(len(verdicts))
	return bytecode.Parallel(ctx, seeds*len(batches), func(ctx context.Context, n int) error {
		batch := verdicts[batches[n%len(batches)][0]:batches[n%len(batches)][1]]
		m := model(n / len(batches))
		configs := make([]bytecode.Config, len(batch))
		for i := range batch {
			c := &batch[i].query
			configs[i] = bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"rotate": "true", "entries": "4096", "budget": fmt.Sprint(budgetOf(c)),
				"queries": keyAndWindow.ReplaceAllString(c.Text(), fmt.Sprintf("by vlan > $1 in %v", window))}}
		}
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(m), session.Config{Seed: seed(n), Window: window}, configs)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range lines {
			list, err := alertsOf(&lines[i])
			if err != nil {
				return err
			}
			v := &batch[i%len(batch)]
			for _, a := range list {
				v.alone.add(m.count(a.time), float64(v.query.Threshold))
			}
		}
		return nil
	})
}
