package beaucoup

import (
	"context"
	"fmt"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// division is a form of the table of collectors.
type division struct {
	name   string
	tables int
	set    map[string]string
}

var divisions = []division{
	{"one table", 1, nil},
	{"two tables", 2, map[string]string{"tables": "2"}},
	{"three tables", 3, map[string]string{"tables": "3"}},
	{"three tables, two places", 3, map[string]string{"tables": "3", "places": "2"}},
}

// The bars of several tables.
const (
	mostError  = .25
	mostMissed = .001
)

// divided attacks the 26 queries with one, two and three coupons a packet at most. Accesses a packet are the same: a coupon's three, and one of the
// tail for one coupon in eight.
func divided(ctx context.Context, p *eval.Page) error {
	seeds, rounds := eval.Pick(p, 12, 2), eval.Pick(p, 15, 2)
	budget := 1 / (accessesOfCoupon + compile.TailShare)
	programs, configs := make([]*compile.Program, len(divisions)), make([]bytecode.Config, len(divisions))
	for i, d := range divisions {
		var err error
		if programs[i], err = compileMany(compile.Ready("many"), budget, d.tables); err != nil {
			return err
		}
		configs[i] = attacked(budget, d.set)
	}
	standings := stand(programs)
	if err := attackAll(ctx, programs, configs, standings, seeds, rounds); err != nil {
		return err
	}
	p.Text("The attacks of the section before, %d on each query, at one access a packet in the mean: %.3f coupons a packet, each of three accesses, and one coupon in "+
		"eight of another one, of the tail. With several tables a packet has as many coupons at most, one a table; attributes that are fields of a query's key are in other tables than "+
		"what it counts. All tables together have 65,536 collectors or fewer. *Missed* are attacks that are not found at three times the threshold.", seeds*rounds, budget)
	t := &figure.Table{Columns: []string{"tables of collectors", "mean error of 26 queries", "alone, theory", "largest", "mean bias", "attacks", "missed at 3 T"}}
	for i, d := range divisions {
		sum, alone, bias, high, missed, attacks := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
		for _, s := range standings[i] {
			sum, alone, bias, high = sum+s.errors.err(), alone+s.alone, bias+s.errors.bias(), max(high, s.errors.err())
			missed, attacks = missed+float64(s.missing+s.late), attacks+s.errors.n+float64(s.missing)
		}
		n := float64(len(standings[i]))
		t.Add(d.name, figure.Percent(sum/n), figure.Percent(alone/n), figure.Percent(high), figure.Percent(bias/n), fmt.Sprintf("%g", attacks), fmt.Sprintf("%g (%.2f in a thousand)", missed, 1000*missed/attacks))
		if d.tables == 3 {
			p.Bar("26 shipped queries, equal accesses, "+d.name+": mean error", "25 % or less", figure.Percent(sum/n), sum/n <= mostError)
			p.Bar("26 shipped queries, equal accesses, "+d.name+": missed at three times the threshold", "1 in a thousand or fewer", fmt.Sprintf("%.2f in a thousand of %g", 1000*missed/attacks, attacks),
				missed/attacks <= mostMissed)
		}
	}
	p.Table(t)
	return nil
}
