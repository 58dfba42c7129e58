package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// behind is how far the recall of the defaults may be below that of the exact form.
const behind = .02

var (
	everySize = []int{128, 256, 512, 1024, 2048, 4096}

	// Cut models: many seeds of a part show more of a difference of .02 than a few of the whole.
	ordinary = []model{
		{"CAIDA-like", "60,000 flows, 1/(rank + 5)^1.0, 200,000 packets", precision.Sizes{Flows: 60000, Packets: 200000, Offset: 5, Skew: 1}},
		{"heavy-tailed", "20,000 flows, 1/(rank + 5)^0.9, 100,000 packets", precision.Sizes{Flows: 20000, Packets: 100000, Offset: 5, Skew: .9}},
		{"flat", "20,000 flows, 1/(rank + 5)^0.5, 200,000 packets", precision.Sizes{Flows: 20000, Packets: 200000, Offset: 5, Skew: .5}},
		{"quiet", "1,500 flows, 1/(rank + 5)^0.9, 9,000 packets", precision.Sizes{Flows: 1500, Packets: 9000, Offset: 5, Skew: .9}},
	}
)

// defaults compares what `xdpmon attach --algo precision` finds with the exact form, seed by seed, and looks at its rows.
func defaults(ctx context.Context, p *eval.Page) error {
	seeds := eval.Pick(p, 20, 2)
	p.Text("Recall of the 128 largest flows by default parameters (9/8, initial value 1 in the first window) less that of exact admission, "+
		"initial value 1, without a limit on second passes, on the same packets: mean of %d seeds and its standard error; in brackets the recall of the exact form. "+
		"A difference counts as below -%.2f where it is so by more than 1.64 standard errors.", seeds, behind)
	t := &figure.Table{Columns: []string{"model; entries"}}
	for _, entries := range everySize {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	least, below := math.Inf(1), 0
	for _, m := range ordinary {
		s := setup{model: m, list: []contender{shipped(), demanded()}, sizes: everySize, seeds: seeds}
		results, err := s.measure(ctx, p)
		if err != nil {
			return err
		}
		row := []string{m.name + ": " + m.what}
		for i := range everySize {
			off := make([]float64, seeds)
			for n := range off {
				off[n] = results[0][i].recall[n] - results[1][i].recall[n]
			}
			d, se := mean(off), deviation(off)/math.Sqrt(float64(seeds))
			row = append(row, fmt.Sprintf("%+.3f ± %.3f (%.3f)", d, se, mean(results[1][i].recall)))
			least = min(least, d)
			if d+1.64*se < -behind {
				below++
			}
		}
		t.Add(row...)
	}
	p.Table(t)
	p.Bar("recall of the top 128 by defaults against the exact form, CAIDA-like, flatter, quiet, 128 to 4,096 entries",
		"not below it by more than .02", fmt.Sprintf("%+.3f at least, %d of %d below", least, below, len(ordinary)*len(everySize)), below == 0)
	return rowsOfDefaults(ctx, p)
}

// rowsOfDefaults counts rows of the report that stand for less than half of what they report.
func rowsOfDefaults(ctx context.Context, p *eval.Page) error {
	t := &figure.Table{Columns: []string{"model; entries: rows, of more than twice their truth, of those without a remark"}}
	sizes, silent := []int{128, 512, 4096}, 0
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for _, m := range ordinary {
		row := []string{m.name}
		for _, entries := range sizes {
			var all doubled
			for seed := range eval.Pick(p, uint64(5), 1) {
				shape := m.seeded(seed + 1)
				shape.Packets = eval.Pick(p, shape.Packets, 20000)
				set := map[string]string{"top": fmt.Sprint(top), "entries": fmt.Sprint(entries)}
				lines, err := bytecode.ReplayWith(ctx, traffic.Frames(shape.New().Model()), session.Config{Seed: seed + 1, Truth: true},
					[]bytecode.Config{{Algorithm: "precision", Set: set}})
				if err != nil {
					return err
				}
				all.add(lines[0])
			}
			silent += all.silent
			row = append(row, fmt.Sprintf("%d, %d, %d", all.rows, all.twice, all.silent))
		}
		t.Add(row...)
	}
	p.Text("Rows of the report, 128 a window, five seeds:")
	p.Table(t)
	p.Bar("rows of more than twice their truth that do not say so", "none", fmt.Sprint(silent), silent == 0)
	return nil
}

type doubled struct{ rows, twice, silent int }

// add the rows of a window. Key columns are first, the amount after them.
func (d *doubled) add(l report.Line) {
	est, truth := l.Report.Tables[0], l.Truth.Tables[0]
	keys, remark := 0, 0
	for i, c := range est.Columns {
		if c.Label {
			keys++
		}
		if c.Name == "remark" {
			remark = i
		}
	}
	known := map[string]float64{}
	for _, r := range truth.Rows {
		known[fmt.Sprint(r[:keys])], _ = report.Number(r[keys])
	}
	for _, r := range est.Rows {
		d.rows++
		if n, _ := report.Number(r[keys]); n > 2*known[fmt.Sprint(r[:keys])] {
			d.twice++
			if r[remark] == "" {
				d.silent++
			}
		}
	}
}
