package beaucoup

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
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

// accessLimits are Gamma of figures 4.8 to 4.10: accesses a packet, of which a coupon takes three.
var accessLimits = []float64{.1, .2, .4, .6, .8, 1}

const accessesOfCoupon = 3

// standing is how a query does under a limit.
type standing struct {
	collector compile.Collector
	alone     float64 // error by theory with the same coupons
	own       float64 // chance that a field of the key draws for another query
	errors    tally
	missing   int
	late      int // found at more than three times the threshold
}

// budgets are figures 4.8 to 4.10.
func budgets(ctx context.Context, p *eval.Page) error {
	seeds, rounds := eval.Pick(p, 12, 2), eval.Pick(p, 15, 2)
	programs := make([]*compile.Program, len(accessLimits))
	for i, limit := range accessLimits {
		var err error
		if programs[i], err = compileMany(compile.Ready("many"), limit/accessesOfCoupon, 1); err != nil {
			return err
		}
	}
	standings := stand(programs)
	configs := make([]bytecode.Config, len(accessLimits))
	for i, limit := range accessLimits {
		configs[i] = attacked(limit/accessesOfCoupon, nil)
	}
	if err := attackAll(ctx, programs, configs, standings, seeds, rounds); err != nil {
		return err
	}
	p.Text("The 26 shipped queries as they are. Each is attacked %d times: packets of one key of its, whose other fields are all new; 1 ms apart, "+
		"31 s between two attacks; 3 T + 1000 packets, and an attack that is not found by then counts as not found. Unlike in the section before, the "+
		"fields of the key are the same in all packets of an attack, and if one of them draws a coupon for another query (superspreader's source one "+
		"for ddos-victim), then in every packet of the attack: half of the key's coupons are lost and it is found at twice the threshold, or with "+
		"two such fields not at all. *Own fields* is the chance of one. That is what a coin for every packet and hashes of attributes come to, and no "+
		"choice of m, p and n changes it; the budget does: with it, own fields become rare. In the mean over keys the correction for ties "+
		"holds all the same (bias).", seeds*rounds)
	if err := averages(p, programs, standings); err != nil {
		return err
	}
	for _, i := range []int{len(accessLimits) - 1, 0} {
		perQuery(p, programs[i], standings[i], accessLimits[i])
	}
	return perThreshold(p, programs, standings)
}

// stand prepares [limit][query].
func stand(programs []*compile.Program) [][]standing {
	all := make([][]standing, len(programs))
	for i, program := range programs {
		all[i] = make([]standing, len(program.Queries))
		for q := range all[i] {
			c := &program.Queries[q]
			alone, err := compiled(c.Threshold, budgetOf(c), 32)
			if err == nil {
				all[i][q].alone = newLaw(alone, 1e-5).err(float64(c.Threshold))
			}
			all[i][q].collector, all[i][q].own = c.Collector, ownFields(program, c)
		}
	}
	return all
}

// ownFields is the chance that a key's own fields draw a coupon of another query.
func ownFields(program *compile.Program, c *compile.Compiled) float64 {
	key, draws := fieldsOf(keyFields, c.Text()), map[string]float64{}
	for i := range program.Queries {
		other := &program.Queries[i]
		inside := other.Filter.Text == ""
		for field := range fieldsOf(attrField, other.Text()) {
			inside = inside && key[field]
		}
		if inside {
			draws[other.Attribute.Text] += budgetOf(other)
		}
	}
	none := 1.0
	for _, x := range draws {
		none *= 1 - x
	}
	return 1 - none
}

// attacked is a configuration with the 26 queries.
func attacked(budget float64, set map[string]string) bytecode.Config {
	c := bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"set": "many", "budget": fmt.Sprint(budget), "top": "100000", "rotate": "true"}}
	maps.Copy(c.Set, set)
	return c
}

// attackAll replays attacks on every query through a chain of programs.
func attackAll(ctx context.Context, programs []*compile.Program, configs []bytecode.Config, standings [][]standing, seeds, rounds int) error {
	var list []attack
	for q := range programs[0].Queries {
		c := &programs[0].Queries[q]
		list = append(list, newAttack(q, c, 3*c.Threshold+1000))
	}
	var mu sync.Mutex
	return bytecode.Parallel(ctx, seeds, func(ctx context.Context, n int) error {
		m := newAttacks(uint64(n)+1, list, rounds)
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(m), session.Config{Seed: seed(n), Window: time.Duration(m.window())}, configs)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range lines {
			round := i / len(programs)
			if err := judgeAttacks(programs[i%len(programs)], standings[i%len(programs)], m, round, &lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// judgeAttacks takes the first alert of the attacked query in each attack of a round.
func judgeAttacks(program *compile.Program, standing []standing, m *attacks, round int, l *report.Line) error {
	alerts, err := alertsOf(l)
	if err != nil {
		return err
	}
	slices.SortFunc(alerts, func(a, b alert) int { return int(a.time - b.time) })
	for n := round * len(m.list); n < (round+1)*len(m.list); n++ {
		q := m.one(n).query
		first, _ := slices.BinarySearchFunc(alerts, m.began[n], func(a alert, t int64) int { return int(a.time - t) })
		standing[q].missing++
		for _, a := range alerts[first:] {
			count := m.count(n, a.time)
			if count == 0 {
				break
			}
			if a.query == program.Queries[q].Name {
				standing[q].errors.add(count, float64(program.Queries[q].Threshold))
				standing[q].missing--
				if count > 3*float64(program.Queries[q].Threshold) {
					standing[q].late++
				}
				break
			}
		}
	}
	return nil
}

// averages is figure 4.8.
func averages(p *eval.Page, programs []*compile.Program, standings [][]standing) error {
	t := &figure.Table{Columns: []string{"accesses a packet", "mean error of 26 queries", "alone, theory", "smallest", "largest", "mean bias", "attacks not found",
		"error over that alone, mean", "largest"}}
	series := []figure.Series{{Name: "26 queries, attacked"}, {Name: "each alone with the same coupons, theory", Style: figure.Style{Dashed: true}}}
	for i, limit := range accessLimits {
		sum, alone, bias, low, high, missing, n := 0.0, 0.0, 0.0, math.Inf(1), 0.0, 0, 0.0
		ratio, most := 0.0, 0.0
		for _, s := range standings[i] {
			sum, alone, bias = sum+s.errors.err(), alone+s.alone, bias+s.errors.bias()
			low, high = min(low, s.errors.err()), max(high, s.errors.err())
			missing, n = missing+s.missing, n+s.errors.n+float64(s.missing)
			ratio, most = ratio+s.errors.err()/s.alone, max(most, s.errors.err()/s.alone)
		}
		count := float64(len(standings[i]))
		t.Add(fmt.Sprint(limit), figure.Percent(sum/count), figure.Percent(alone/count), figure.Percent(low), figure.Percent(high), figure.Percent(bias/count),
			figure.Percent(float64(missing)/n), fmt.Sprintf("%.2f", ratio/count), fmt.Sprintf("%.2f", most))
		p.Bar(fmt.Sprintf("26 shipped queries together, key's fields constant, %g accesses a packet: error over that alone", limit), "1.15 or less",
			fmt.Sprintf("%.2f in the mean, %.2f at most", ratio/count, most), most <= 1.15)
		series[0].Points = append(series[0].Points, figure.Point{X: limit, Y: 100 * sum / count})
		series[1].Points = append(series[1].Points, figure.Point{X: limit, Y: 100 * alone / count})
	}
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{{Title: "figure 4.8: mean error of 26 queries", X: limitAxis, Y: errorAxis, Series: series, Legend: figure.TopRight}}},
		"budget", "mean error of 26 queries against accesses a packet")
}

var (
	limitAxis = figure.Axis{Label: "accesses a packet, all queries together", Min: 0, Max: 1}
	errorAxis = figure.Axis{Label: "error", Base: 2, Format: percent}
)

// perQuery lists the result of one limit.
func perQuery(p *eval.Page, program *compile.Program, standing []standing, limit float64) {
	t := &figure.Table{Columns: []string{fmt.Sprintf("query, %g accesses a packet", limit), "threshold", "m, n, 1/p", "error", "+-", "alone, theory", "ratio", "bias", "+-", "own fields", "not found"}}
	for q, s := range standing {
		c := &program.Queries[q]
		t.Add(c.Name, fmt.Sprint(c.Threshold), fmt.Sprintf("%d, %d, %g", s.collector.M, s.collector.N, 1/s.collector.P), figure.Percent(s.errors.err()),
			figure.Percent(s.errors.sure()), figure.Percent(s.alone), fmt.Sprintf("%.2f", s.errors.err()/s.alone), figure.Percent(s.errors.bias()), figure.Percent(s.errors.biasSure()),
			figure.Percent(s.own), fmt.Sprintf("%d of %g", s.missing, s.errors.n+float64(s.missing)))
	}
	p.Table(t)
}

// perThreshold is figures 4.9 and 4.10.
func perThreshold(p *eval.Page, programs []*compile.Program, standings [][]standing) error {
	panel := func(title string, names ...string) figure.Panel {
		out := figure.Panel{Title: title, X: limitAxis, Y: errorAxis, Legend: figure.TopRight}
		for _, name := range names {
			q := slices.IndexFunc(programs[0].Queries, func(c compile.Compiled) bool { return c.Name == name })
			s := figure.Series{Name: fmt.Sprintf("%s, T = %d", name, programs[0].Queries[q].Threshold)}
			for i, limit := range accessLimits {
				s.Points = append(s.Points, figure.Point{X: limit, Y: 100 * standings[i][q].errors.err()})
			}
			out.Series = append(out.Series, s)
		}
		return out
	}
	return p.Figure(&figure.Figure{Panels: []figure.Panel{
		panel("figure 4.9: thresholds", "port-scan", "scanner", "popular-port", "pairs-of-protocol"),
		panel("figure 4.10: T = 1000", "superspreader", "ddos-victim", "spread-pairs", "scanned"),
	}}, "queries", "errors of single queries against accesses a packet")
}
