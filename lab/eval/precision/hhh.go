package precision

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/eval/precision/references"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// threshold from which on a prefix is heavy, as a share.
const threshold = 1. / 200

// method of finding prefixes: it returns estimates of all that have an entry.
type method struct {
	name string
	run  func(entries int, stream *precision.Stream, seed *seeded) (map[heavy.Prefix]float64, error)
}

// counted is hhh itself.
func counted(name string, set map[string]string) method {
	return method{name, func(entries int, stream *precision.Stream, seed *seeded) (map[heavy.Prefix]float64, error) {
		with := map[string]string{"method": name, "entries": fmt.Sprint(entries), "family": "4"}
		for k, v := range set {
			with[k] = v
		}
		delay, err := strconv.Atoi(cmp.Or(set["delay"], "0"))
		if err != nil {
			return nil, err
		}
		b, err := seed.bench(delay)
		if err != nil {
			return nil, err
		}
		return b.Hierarchy(with, stream)
	}}
}

// referred are MST and RHHH in plain Go.
func referred(name string, random bool) method {
	return method{name, func(entries int, stream *precision.Stream, seed *seeded) (map[heavy.Prefix]float64, error) {
		m := references.NewMST(entries)
		if rng := rand.New(rand.NewPCG(seed.seed, 5)); random {
			m = references.NewRHHH(entries, func() int { return rng.IntN(4) })
		}
		for _, rank := range stream.Order {
			m.Add(stream.Packet(rank, 1).Src)
		}
		return m.Counts(), nil
	}}
}

// survey runs methods over the seeds of a model and hands every outcome to judge, one at a time for each method and size.
func survey(ctx context.Context, p *eval.Page, m model, list []method, sizes []int, seeds int, judge func(method, size int, stream *precision.Stream, found, exact map[heavy.Prefix]float64)) error {
	streams := setup{model: m, seeds: seeds}.streams(p)
	exact := make([]map[heavy.Prefix]float64, seeds)
	for seed, stream := range streams {
		exact[seed] = stream.Networks()
	}
	var one sync.Mutex
	return precision.Parallel(seeds, func(n int) error {
		shared := newSeeded(uint64(n) + 1)
		defer shared.close()
		for i, m := range list {
			for size, entries := range sizes {
				if err := ctx.Err(); err != nil {
					return err
				}
				found, err := m.run(entries, streams[n], shared)
				if err != nil {
					return fmt.Errorf("%s, %d entries: %w", m.name, entries, err)
				}
				one.Lock()
				judge(i, size, streams[n], found, exact[n])
				one.Unlock()
			}
		}
		return nil
	})
}

// verdict sums up over seeds: prefixes above twice the threshold, how many were found, and their relative errors.
type verdict struct{ heavy, found, off, worst, theory float64 }

// hierarchy compares what is found of the prefixes above twice the threshold.
func hierarchy(ctx context.Context, p *eval.Page) error {
	fair := map[string]string{"initial": "10", "ways": "2"}
	list := []method{counted("random-prefix", fair), counted("stacking", fair), referred("RHHH", true), referred("MST", false)}
	seeds := eval.Pick(p, 5, 1)
	all := make([][]verdict, len(list))
	for n := range all {
		all[n] = make([]verdict, len(sizes))
	}
	err := survey(ctx, p, issueModel, list, sizes, seeds, func(n, size int, stream *precision.Stream, found, exact map[heavy.Prefix]float64) {
		all[n][size].judge(found, exact, threshold*float64(len(stream.Order)))
	})
	if err != nil {
		return err
	}
	p.Text("The issue's model, bytes of the IPv4 source, threshold %.1f %%, initial value 10, d = 2, %d seeds. Of the prefixes of 8 bits or more whose conditioned count is "+
		"above twice the threshold: share that was found, mean and largest relative error of their counts.", 100*threshold, seeds)
	t := &figure.Table{Columns: []string{"entries"}}
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for n, m := range list {
		row := []string{m.name}
		for _, v := range all[n] {
			row = append(row, fmt.Sprintf("%.3f; %.4f; %.2f", v.found/v.heavy, v.off/max(v.found, 1), v.worst))
		}
		t.Add(row...)
	}
	row := []string{"drawing alone, in theory"}
	for _, v := range all[0] {
		row = append(row, fmt.Sprintf("%.4f", v.theory/max(v.found, 1)))
	}
	t.Add(row...)
	p.Table(t)
	verdictBars(p, all[0], all[1])
	p.Text("A level is drawn for every packet, so that of n packets of a prefix a binomial number is counted at its level, and four times that has the " +
		"standard deviation sqrt(3 n) whatever the memory: the last row is the mean of sqrt(2/pi) sqrt(3/n) over these prefixes. Stacking counts every packet of a " +
		"heavy prefix from its admission on, so its error falls to nothing with memory and the ratio has no bound: it is no defect, and nothing that is done to the counts " +
		"afterwards can undo it, because a level knows nothing of packets that were drawn for others. Where memory is what is short, the two are alike: see the next section.")
	return nil
}

// verdictBars compares random-prefix with stacking.
func verdictBars(p *eval.Page, random, stacked []verdict) {
	least, most, worst := math.Inf(1), 0.0, 0.0
	for size, entries := range sizes {
		r, s := random[size], stacked[size]
		p.Bar(fmt.Sprintf("random prefix, %d entries: prefixes above twice the threshold", entries), "all found",
			fmt.Sprintf("%.0f of %.0f (stacking: %.0f)", r.found, r.heavy, s.found), r.found == r.heavy)
		ratio := r.off / r.found / (s.off / s.found)
		least, most = min(least, ratio), max(most, ratio)
		worst = max(worst, r.theory/r.found/(s.off/s.found))
	}
	p.Bar("random prefix against stacking: error of the counts of these", "within 2 times",
		fmt.Sprintf("%.1f to %.1f times; drawing alone makes %.1f", least, most, worst), most <= 2)
}

func (v *verdict) judge(found, exact map[heavy.Prefix]float64, least float64) {
	reported := map[heavy.Prefix]float64{}
	for _, h := range heavy.Hierarchical(found, least) {
		reported[h.Prefix] = h.Count
	}
	for _, h := range heavy.Hierarchical(exact, least) {
		if h.Conditioned < 2*least || h.Prefix.Bits() == 0 {
			continue
		}
		v.heavy++
		n, ok := reported[h.Prefix]
		if !ok {
			continue
		}
		v.found++
		off := math.Abs(n/h.Count - 1)
		v.off += off
		v.worst = max(v.worst, off)
		v.theory += math.Sqrt(2/math.Pi) * math.Sqrt(3/h.Count)
	}
}

// levels is figure 3.8: errors by prefix length, with its parameters (initial value 100, 9/8, second passes 10 packets late).
func levels(ctx context.Context, p *eval.Page) error {
	m, memory := caida, []int{64, 128, 256, 512, 1024, 2048, 4096}
	m.sizes.Scattered = true
	usual := map[string]string{"delay": "10"}
	even := counted("random-prefix", map[string]string{"delay": "10", "initial": "33"})
	even.name = "random-prefix, initial 33"
	list := []method{even, counted("stacking", usual), counted("random-prefix", usual), referred("RHHH", true)}
	seeds := eval.Pick(p, 4, 1)
	var sums [4][7][4]float64 // method, size, bits/8 - 1
	err := survey(ctx, p, m, list, memory, seeds, func(n, size int, _ *precision.Stream, found, exact map[heavy.Prefix]float64) {
		for level, e := range weighted(found, exact) {
			sums[n][size][level] += e / float64(seeds)
		}
	})
	if err != nil {
		return err
	}
	p.Text("%s: %s, sources from a tree in which low bytes are popular; initial value 100, 9/8, delay 10, %d seeds. Stacking has three instances "+
		"that ask for second passes; random-prefix asks for as many with initial value 33, so that is what is compared at the same memory *and* the same share of second passes. Root of the mean over the *packets* of the squared error of the count of "+
		"the packet's prefix, in packets: prefixes without an entry, estimated as 0, are in it. Stacking counts 8 bits exactly.", m.name, m.what, seeds)
	fig := &figure.Figure{}
	for level := 1; level < 4; level++ {
		bits := 8*level + 8
		t := &figure.Table{Columns: []string{fmt.Sprintf("%d bits; entries", bits)}}
		panel := figure.Panel{Title: fmt.Sprintf("%d bits", bits), X: figure.Axis{Label: "entries", Base: 2}, Y: figure.Axis{Label: "root mean square error, packets", Base: 10}, Legend: figure.BottomLeft}
		for _, entries := range memory {
			t.Columns = append(t.Columns, fmt.Sprint(entries))
		}
		for n, who := range list {
			row, series := []string{who.name}, figure.Series{Name: who.name}
			for size, entries := range memory {
				e := math.Sqrt(sums[n][size][level])
				row = append(row, fmt.Sprintf("%.0f", e))
				series.Points = append(series.Points, figure.Point{X: float64(entries), Y: e})
			}
			t.Add(row...)
			panel.Series = append(panel.Series, series)
		}
		row, least, most := []string{"the first over stacking"}, math.Inf(1), 0.0
		for size := range memory {
			ratio := math.Sqrt(sums[0][size][level] / sums[1][size][level])
			row, least, most = append(row, fmt.Sprintf("%.2f", ratio)), min(least, ratio), max(most, ratio)
		}
		t.Add(row...)
		p.Bar(fmt.Sprintf("random prefix against stacking, 64 to 4,096 entries: same share of second passes, error over all prefixes of %d bits (figure 3.8)", bits), "within 2 times",
			fmt.Sprintf("%.2f to %.2f times", least, most), most <= 2)
		p.Table(t)
		fig.Panels = append(fig.Panels, panel)
	}
	return p.Figure(fig, "levels", "errors of prefixes by length")
}

// weighted is the mean squared error over packets, by length in bytes - 1.
func weighted(found, exact map[heavy.Prefix]float64) (sums [4]float64) {
	total := 0.0
	for prefix, n := range exact {
		if bits := prefix.Bits(); bits > 0 {
			off := found[prefix] - n
			sums[bits/8-1] += n * off * off
		} else {
			total = n
		}
	}
	for level := range sums {
		sums[level] /= total
	}
	return sums
}
