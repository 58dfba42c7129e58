package reorder

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
)

// workload states what the traffic is like: section 4.1, figures 3 and 4.
func workload(ctx context.Context, p *eval.Page) error {
	traces := make([]*trace, seeds(p))
	err := bytecode.Parallel(ctx, len(traces), func(_ context.Context, i int) (err error) {
		traces[i], err = model(p, uint64(i)+1)
		return err
	})
	if err != nil {
		return err
	}
	t := traces[0].truth
	p.Text("%.0f packets of %d flows and %d prefixes with seed 1; the others are alike. *Correlation* is Pearson's, of a flow's share of "+
		"out-of-order packets and that of the rest of its prefix (section 4.1.2): mean and variance over draws of 5,000 flows.",
		t.total.n, len(t.flows), len(t.prefixes))
	p.Table(correlations(p, traces))
	p.Table(percentiles(t))
	if err := p.Figure(&figure.Figure{Panels: []figure.Panel{sizesPanel(t), sharesPanel(t), gapsPanel(t)}}, "workload",
		"sizes of flows and prefixes, shares of out-of-order packets, inter-arrival times"); err != nil {
		return err
	}
	p.Text("Figure 4, definition 2: flows of the prefixes in trouble with at least 128 packets. A bar reaches from the smallest flow of a " +
		"prefix to its largest, with a mark at the median; a prefix with one size of flows is a point.")
	p.Table(flowSizes(t))
	return p.Figure(&figure.Figure{Panels: []figure.Panel{violins(t)}}, "flows", "flow sizes of prefixes in trouble against the prefix's rank by size")
}

func correlations(p *eval.Page, traces []*trace) *figure.Table {
	table := &figure.Table{Columns: []string{"definition", "seed", "out of order", "prefixes in trouble (beta)", "... (alpha)", "correlation",
		"variance", "the paper's"}}
	for d := 1; d <= 2; d++ {
		for n, tr := range traces {
			t := tr.truth
			mean, variance := t.correlation(d, eval.Pick(p, 100, 5))
			table.Add(fmt.Sprint(d), fmt.Sprint(n+1), figure.Percent(t.total.out[d]/t.total.n), fmt.Sprint(len(t.heavy(d, beta))),
				fmt.Sprint(len(t.heavy(d, alpha+1))), fmt.Sprintf("%.3f", mean), fmt.Sprintf("%.4f", variance),
				[]string{"0.235", "0.403"}[d-1])
		}
	}
	return table
}

// percentiles of the three panels of figure 3, as numbers.
func percentiles(t *truth) *figure.Table {
	table := &figure.Table{Columns: []string{"figure 3", "median", "90 %", "99 %", "largest"}}
	row := func(name, format string, scale float64, list []float64) {
		slices.Sort(list)
		cells := []string{name}
		for _, share := range []float64{0.5, 0.9, 0.99, 1} {
			cells = append(cells, fmt.Sprintf(format, scale*list[min(int(share*float64(len(list))), len(list)-1)]))
		}
		table.Add(cells...)
	}
	row("packets of a flow", "%.0f", 1, packetsOf(t.flows))
	row("packets of a prefix", "%.0f", 1, prefixSizes(t))
	for d := 1; d <= 2; d++ {
		row(fmt.Sprintf("out of order in a prefix of 128 packets or more, definition %d, %%", d), "%.2f", 100, sharesOf(t, d))
	}
	for n, name := range []string{"in order", "out of order, definition 1", "out of order, definition 2"} {
		cells := []string{"ms after the predecessor: " + name}
		for _, share := range []float64{0.5, 0.9, 0.99, 1} {
			cells = append(cells, fmt.Sprintf("%.3g", 1e3*t.gaps[n].at(share)))
		}
		table.Add(cells...)
	}
	return table
}

func packetsOf(flows []*tallied) []float64 {
	list := make([]float64, len(flows))
	for i, f := range flows {
		list[i] = f.n
	}
	return list
}

func prefixSizes(t *truth) (list []float64) {
	for _, g := range t.prefixes {
		list = append(list, g.n)
	}
	return list
}

// sharesOf is the share of out-of-order packets of every prefix with at least beta packets.
func sharesOf(t *truth, definition int) (list []float64) {
	for _, g := range t.prefixes {
		if g.n >= beta {
			list = append(list, g.out[definition]/g.n)
		}
	}
	return list
}

// steps are places of a list of n, about eight a power of two.
func steps(n int) (list []int) {
	for x := 1.0; int(x) <= n; x *= 1.09 {
		if len(list) == 0 || int(x) > list[len(list)-1] {
			list = append(list, int(x))
		}
	}
	return list
}

func sizesPanel(t *truth) figure.Panel {
	panel := figure.Panel{Title: "(a) sizes", X: figure.Axis{Label: "share of the flows or prefixes, largest first", Base: 10},
		Y: figure.Axis{Label: "share of the packets", Min: 0, Max: 1}, Legend: figure.TopLeft}
	for n, list := range [][]float64{largest(packetsOf(t.flows)), largest(prefixSizes(t))} {
		s := figure.Series{Name: []string{"flows", "prefixes"}[n]}
		sum, sums := 0.0, make([]float64, len(list)+1)
		for i, x := range list {
			sum += x
			sums[i+1] = sum
		}
		for _, i := range steps(len(list)) {
			s.Points = append(s.Points, figure.Point{X: float64(i) / float64(len(list)), Y: sums[i] / sum})
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

func sharesPanel(t *truth) figure.Panel {
	panel := figure.Panel{Title: "(b) prefixes of 128 packets or more", X: figure.Axis{Label: "share out of order", Base: 10},
		Y: figure.Axis{Label: "share of the prefixes with more", Min: 0, Max: 1}, Legend: figure.TopRight}
	for d := 1; d <= 2; d++ {
		list := largest(sharesOf(t, d))
		s := figure.Series{Name: fmt.Sprintf("definition %d", d)}
		for _, i := range steps(len(list)) {
			s.Points = append(s.Points, figure.Point{X: list[i-1], Y: float64(i) / float64(len(list))})
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

func gapsPanel(t *truth) figure.Panel {
	panel := figure.Panel{Title: "(c) time since the predecessor", X: figure.Axis{Label: "ms", Base: 10, Min: 1e-3, Max: 1e3, Every: 2},
		Y: figure.Axis{Label: "share of the packets", Min: 0, Max: 1}, Legend: figure.TopLeft}
	for n, name := range []string{"in order", "definition 1", "definition 2"} {
		s := figure.Series{Name: name}
		for _, p := range t.gaps[n].curve() {
			if p.X *= 1e3; p.X >= 1e-3 {
				s.Points = append(s.Points, p)
			}
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// violin is the distribution of flow sizes of one prefix.
type violin struct {
	rank  int       // of the prefix, by packets
	sizes []float64 // ascending
}

func (v violin) at(share float64) float64 {
	return v.sizes[min(int(share*float64(len(v.sizes))), len(v.sizes)-1)]
}

// violinsOf are the prefixes in trouble by definition 2.
func violinsOf(t *truth) (list []violin) {
	ranks := largest(prefixSizes(t))
	for name, g := range t.prefixes {
		if g.n < beta || !g.heavy(2) {
			continue
		}
		v := violin{rank: 1}
		for v.rank < len(ranks) && ranks[v.rank-1] > g.n {
			v.rank++
		}
		for _, id := range t.members[name] {
			v.sizes = append(v.sizes, t.flows[id].n)
		}
		slices.Sort(v.sizes)
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b violin) int { return cmp.Or(a.rank-b.rank, slices.Compare(a.sizes, b.sizes)) })
	return list
}

func violins(t *truth) figure.Panel {
	panel := figure.Panel{Title: "flows of prefixes in trouble", X: figure.Axis{Label: "rank of the prefix by packets", Base: 10},
		Y: figure.Axis{Label: "packets of a flow", Base: 10}}
	for _, v := range violinsOf(t) {
		x := float64(v.rank)
		panel.Series = append(panel.Series, figure.Series{Style: figure.Style{Place: 1}, Points: []figure.Point{{X: x, Y: v.at(0)}, {X: x, Y: v.at(1)}}})
		panel.Series = append(panel.Series, figure.Series{Style: figure.Style{Marks: true, Place: 2}, Points: []figure.Point{{X: x, Y: v.at(0.5)}}})
	}
	return panel
}

// flowSizes is figure 4 as a table: prefixes in trouble by the size of their largest flow.
func flowSizes(t *truth) *figure.Table {
	table := &figure.Table{Columns: []string{"largest flow, packets", "prefixes in trouble", "their median rank", "flows of one, median"}}
	by := map[int][]violin{}
	for _, v := range violinsOf(t) {
		by[int(math.Log2(v.at(1)))/2] = append(by[int(math.Log2(v.at(1)))/2], v)
	}
	for class := range 12 {
		list := by[class]
		if len(list) == 0 {
			continue
		}
		flows := make([]int, len(list))
		for i, v := range list {
			flows[i] = len(v.sizes)
		}
		slices.Sort(flows)
		table.Add(fmt.Sprintf("%d to %d", 1<<(2*class), 1<<(2*class+2)-1), fmt.Sprint(len(list)),
			fmt.Sprint(list[len(list)/2].rank), fmt.Sprint(flows[len(flows)/2]))
	}
	return table
}
