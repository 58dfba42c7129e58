package precision

import (
	"context"
	"fmt"
	"sync"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// unseenCell is traffic and a table that is listed as a whole, so that a row that is missing is a flow without an entry.
type unseenCell struct {
	name  string
	sizes precision.Sizes
	set   map[string]string
}

func unseenCells() (list []unseenCell) {
	for _, m := range []struct {
		name  string
		sizes precision.Sizes
	}{
		{"heavy-tailed", precision.Sizes{Flows: 20000, Packets: 40000, Offset: 5, Skew: .9, Drawn: true}},
		{"flat", precision.Sizes{Flows: 4000, Packets: 40000, Offset: 5, Skew: .5, Drawn: true}},
		{"quiet", precision.Sizes{Flows: 1500, Packets: 9000, Offset: 5, Skew: .9, Drawn: true}},
	} {
		for _, entries := range []string{"128", "512"} {
			for _, initial := range []string{"auto", "100"} {
				list = append(list, unseenCell{fmt.Sprintf("%s, %s entries, initial %s", m.name, entries, initial), m.sizes,
					map[string]string{"top": "1000", "entries": entries, "initial": initial}})
			}
		}
	}
	return list
}

// found counts flows at the bound (up to half above it) and above it.
type found struct{ edge, edgeIn, above, aboveIn int }

// unseen asks how many of the flows that have as many packets as unseen_below have an entry: 95 of 100 are promised.
func unseen(ctx context.Context, p *eval.Page) error {
	seeds := eval.Pick(p, 30, 2)
	if p.Seeds > 0 {
		seeds = p.Seeds
	}
	list := unseenCells()
	all := make([]found, len(list))
	var lock sync.Mutex
	err := bytecode.Parallel(ctx, len(list)*seeds, func(ctx context.Context, task int) error {
		c, seed := list[task%len(list)], task/len(list)
		c.sizes.Seed = uint64(seed) + 1
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(c.sizes.New().Model()), session.Config{Seed: c.sizes.Seed, Truth: true, Proven: seed > 0},
			[]bytecode.Config{{Algorithm: "precision", Set: c.set}})
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		all[task%len(list)].add(lines[0])
		return nil
	})
	if err != nil {
		return err
	}
	t := &figure.Table{Columns: []string{"cell", "flows up to half above it", "with an entry", "all flows above it", "with an entry"}}
	var sum found
	for i, c := range list {
		f := all[i]
		t.Add(c.name, fmt.Sprint(f.edge), percentOf(f.edgeIn, f.edge), fmt.Sprint(f.above), percentOf(f.aboveIn, f.above))
		sum.edge, sum.edgeIn = sum.edge+f.edge, sum.edgeIn+f.edgeIn
	}
	p.Text("%d seeds a cell, traffic and hashes. The promise is for a flow of just so many packets; larger ones have an entry more often.", seeds)
	p.Table(t)
	p.Bar("flows from unseen_below to half above it that have an entry", "95 % or more", percentOf(sum.edgeIn, sum.edge),
		float64(sum.edgeIn) >= .95*float64(sum.edge))
	return nil
}

func percentOf(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return figure.Percent(float64(part) / float64(whole))
}

func (f *found) add(l report.Line) {
	bound := 0.0
	for _, v := range l.Report.Values {
		if v.Name == "unseen_below" {
			bound, _ = report.Number(v.Value)
		}
	}
	est, truth := l.Report.Tables[0], l.Truth.Tables[0]
	keys := 0
	for _, c := range est.Columns {
		if c.Label {
			keys++
		}
	}
	listed := map[string]bool{}
	for _, r := range est.Rows {
		listed[fmt.Sprint(r[:keys])] = true
	}
	for _, r := range truth.Rows {
		n, _ := report.Number(r[keys])
		if n < bound {
			continue
		}
		in := 0
		if listed[fmt.Sprint(r[:keys])] {
			in = 1
		}
		f.above, f.aboveIn = f.above+1, f.aboveIn+in
		if n <= 1.5*bound {
			f.edge, f.edgeIn = f.edge+1, f.edgeIn+in
		}
	}
}
