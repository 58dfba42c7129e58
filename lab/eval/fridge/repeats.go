package fridge

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
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// insistence is a fridge and how its requests are sent again: pauses in units of the longest delay, which is one lifetime of
// as many requests that are sent once.
type insistence struct {
	inverse int // 1/p
	share   float64
	times   int
	pause   float64
	early   bool
}

const insistentEntries = 1024

func (i insistence) fridge() string { return trial{insistentEntries, i.inverse}.String() }

func (i insistence) options(requests int, seed uint64) traffic.InsistentOptions {
	const gap = 10 * time.Microsecond
	life := time.Duration(insistentEntries*i.inverse) * gap
	return traffic.InsistentOptions{Requests: requests, Gap: gap, Share: i.share, Times: i.times,
		Pause: time.Duration(i.pause * float64(life)), Delay: life, Early: i.early, Seed: seed}
}

func insistences(short bool) []insistence {
	var list []insistence
	for _, inverse := range []int{1, 4, 32} {
		for _, share := range []float64{0, 0.1, 0.5, 1} {
			list = append(list, insistence{inverse: inverse, share: share, times: 3, pause: 0.3})
		}
		list = append(list, insistence{inverse: inverse, share: 1, times: 2, pause: 1}, insistence{inverse: inverse, share: 1, times: 3, pause: 3},
			insistence{inverse: inverse, share: 1, times: 3, pause: 0.01}, insistence{inverse: inverse, share: 1, times: 3, pause: 0.3, early: true})
	}
	if short {
		return list[1:3]
	}
	return list
}

// repeats compares sums of weights with the number of requests, which are all answered once.
func repeats(ctx context.Context, p *eval.Page) error {
	requests, n := eval.Pick(p, 120_000, 20_000), eval.Pick(p, 30, 2)
	list := insistences(requests < 100_000)
	if p.Seeds > 0 {
		n = p.Seeds
	}
	ratios, err := insist(ctx, list, requests, n)
	if err != nil {
		return err
	}
	p.Text("Sum of weights over answered requests, mean of %d seeds (traffic and hashes), with 95 %% confidence. %d handshakes a seed, of which a "+
		"share sends its SYN more than once, with pauses around a multiple of the longest delay (one lifetime of requests that "+
		"are sent once); the answer comes after the last SYN, or *early*, after the first. Delays count from the last SYN, or with keep the first.", n, requests)
	t := &figure.Table{Columns: []string{"fridge", "sent again", "times", "pause", "restart", "keep", "restart, table"}}
	furthest, at, surest := 0.0, 0.0, 0.0
	byP := map[int][]float64{}
	for i, c := range list {
		cells := []string{c.fridge(), figure.Percent(c.share), fmt.Sprint(c.times), fmt.Sprintf("%g%s", c.pause, map[bool]string{true: ", early"}[c.early])}
		for k, kind := range insistent {
			m, se := mean(ratios[i][k])
			cells = append(cells, fmt.Sprintf("%.4f +- %.4f", m, student95(n)*se))
			if kind.bar {
				if off := math.Abs(m - 1); off > furthest {
					furthest, at = off, se
				}
				if se > 0 {
					surest = max(surest, math.Abs(m-1)/se)
				}
				byP[c.inverse] = append(byP[c.inverse], ratios[i][k]...)
			}
		}
		t.Add(cells...)
	}
	p.Table(t)
	pooled := &figure.Table{Columns: []string{"p", "mean of all cells under the bar", "standard error"}}
	for _, inverse := range []int{1, 4, 32} {
		if all := byP[inverse]; len(all) > 1 {
			m, se := mean(all)
			pooled.Add(fmt.Sprintf("1/%d", inverse), fmt.Sprintf("%.4f", m), fmt.Sprintf("%.4f", se))
		}
	}
	p.Text("What is bias and what is noise: all cells of a p together (configurations of a cell see the same packets, so that the error is somewhat "+
		"larger than it says), and the furthest single cell, in standard errors of its mean: %.1f.", surest)
	p.Table(pooled)
	p.Bar("sum of weights, 0 to 100 % of the requests sent up to three times, p = 1, 1/4, 1/32", "mean within 1 %",
		fmt.Sprintf("at most %.2f %% off, standard error %.2f %%", 100*furthest, 100*at), furthest <= 0.01)
	return nil
}

// insistent are the configurations that see the same packets.
var insistent = []struct {
	more []string
	bar  bool
}{{nil, true}, {[]string{"retransmit", "keep"}, true}, {[]string{"correction", "table"}, true}}

func insist(ctx context.Context, list []insistence, requests, n int) (ratios, error) {
	all := make(ratios, len(list))
	for i := range all {
		for range insistent {
			all[i] = append(all[i], make([]float64, n))
		}
	}
	hashes := seeds(n, 10)
	var lock sync.Mutex
	err := bytecode.Parallel(ctx, len(list)*n, func(ctx context.Context, task int) error {
		i, n := task%len(list), task/len(list)
		var configs []bytecode.Config
		for _, k := range insistent {
			configs = append(configs, fridges(list[i].fridge(), delay.TCPHandshake.String(), k.more...))
		}
		cfg := session.Config{Seed: hashes[n], Proven: n > 0} // the first seed's programs are the others', too
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(traffic.NewInsistent(list[i].options(requests, uint64(n)+1))), cfg, configs)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		for k, l := range lines {
			d, err := bytecode.Distribution(l, "delay_ns")
			if err != nil {
				return err
			}
			all[i][k][n] = d.Count / float64(requests)
		}
		return nil
	})
	return all, err
}
