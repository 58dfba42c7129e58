package beaucoup

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// grown are keys of a query with a number of attributes each, in one window.
type grown struct {
	name      string
	threshold int
	budget    string // the query's, of one alone
	most      int    // thresholds
}

var grownKeys = []grown{{"port scans, alone (25 of 31 coupons and the like)", 100, "1/3", 100},
	{"port scans, as among 26 queries", 100, "1/16", 100}, {"T = 1000, as among 26 queries", 1000, "1/77", 30}}

// timesThreshold are the sizes of the keys.
var timesThreshold = []int{1, 2, 3, 10, 30, 100}

// counted are totals of alerts against the truth.
type counted struct {
	alerts, unknown, held, widths float64
	logs, squares                 float64
}

// totals compares what alerts report of the number of attributes with the truth, from one to hundred thresholds.
func totals(ctx context.Context, p *eval.Page) error {
	seeds, keys := eval.Pick(p, 25, 3), 8
	p.Text("Keys with a number of distinct attributes each, of their own, in one window of the query; every packet is new to it. *Total* is what the alert reports at the end of the window, from the "+
		"coupons and the tail; the threshold is what was reported before. %d sets of hashes with %d keys each.", seeds, keys)
	t := &figure.Table{Columns: []string{"query", "attributes, in thresholds", "alerts", "total over the truth, median", "deviation of the logarithm", "95 % interval holds", "width, high over low", "no upper end"}}
	held, all, worst := 0.0, 0.0, 1.0
	for _, g := range grownKeys {
		for _, times := range timesThreshold {
			if times > g.most {
				continue
			}
			c, err := g.count(ctx, times, seeds, keys)
			if err != nil {
				return err
			}
			share := c.held / c.alerts
			held, all, worst = held+c.held, all+c.alerts, min(worst, share)
			mean := c.logs / (c.alerts - c.unknown)
			t.Add(g.name, fmt.Sprint(times), fmt.Sprintf("%g", c.alerts), fmt.Sprintf("%.2f", math.Exp(mean)), fmt.Sprintf("%.2f", math.Sqrt(c.squares/(c.alerts-c.unknown)-mean*mean)), figure.Percent(share),
				fmt.Sprintf("%.1f", math.Exp(c.widths/(c.alerts-c.unknown))), fmt.Sprintf("%g", c.unknown))
		}
	}
	p.Table(t)
	p.Bar("totals: intervals that hold the truth, all cells", "93 to 98 %", figure.Percent(held/all), held/all >= .93 && held/all <= .98)
	p.Bar("totals: the worst cell", "90 % or more", figure.Percent(worst), worst >= .90)
	return nil
}

// count replays keys with so many thresholds of attributes.
func (g grown) count(ctx context.Context, times, seeds, keys int) (c counted, err error) {
	var mu sync.Mutex
	each := times * g.threshold
	return c, bytecode.Parallel(ctx, seeds, func(ctx context.Context, n int) error {
		m := newFresh(uint64(n)+uint64(1000*times), keys, each, 1)
		window := time.Duration(m.window()) + time.Second
		query := fmt.Sprintf("q: count distinct src+dst by vlan > %d in %v", g.threshold, window)
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(m), session.Config{Seed: seed(n)}, []bytecode.Config{{Algorithm: beaucoup.Name,
			Set: map[string]string{"queries": query, "budget": g.budget, "entries": "4096"}}})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range lines {
			if err := c.add(&lines[i].Report, float64(each)); err != nil {
				return err
			}
		}
		return nil
	})
}

// add the alerts of a report.
func (c *counted) add(b *report.Body, truth float64) error {
	t, err := table(b, "alerts")
	if err != nil {
		return err
	}
	var at [3]int
	for n, name := range []string{"total", "total_low", "total_high"} {
		if at[n], err = column(t, name); err != nil {
			return err
		}
	}
	for _, row := range t.Rows {
		var x [3]float64
		for n := range x {
			x[n], _ = report.Number(row[at[n]])
		}
		c.alerts++
		if math.IsNaN(x[0]) {
			c.unknown++
			if x[1] <= truth {
				c.held++
			}
			continue
		}
		if x[1] <= truth && truth <= x[2] {
			c.held++
		}
		c.widths += math.Log(x[2] / x[1])
		off := math.Log(x[0] / truth)
		c.logs, c.squares = c.logs+off, c.squares+off*off
	}
	return nil
}
