package reorder

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// widths of the bounds of one quantity in one cell and configuration.
type widths struct {
	printed, hard []float64 // over the truth, where that is not 0
	held, all     int
	ratios        []float64 // the estimate over the truth
}

func (w *widths) add(o outcome.Outcome, seen, unseen float64) {
	if !o.Judged || !o.Enclosed {
		return
	}
	w.all++
	if o.Holds() {
		w.held++
	}
	if o.Truth == 0 {
		return
	}
	w.printed, w.hard = append(w.printed, (o.High-o.Low)/o.Truth), append(w.hard, unseen/(seen+unseen)/o.Truth)
	w.ratios = append(w.ratios, o.Value/o.Truth)
}

func at(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	list = slices.Sorted(slices.Values(list))
	return list[int(q*float64(len(list)-1)+.5)]
}

func times(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// bounds measures how wide the bounds are, beside those that assume nothing of packets that nobody watched.
func bounds(ctx context.Context, p *eval.Page) error {
	n := eval.Pick(p, 20, 2)
	if p.Seeds > 0 {
		n = p.Seeds
	}
	list := cells(p)
	all := make([]map[string]*widths, len(list))
	var lock sync.Mutex
	err := bytecode.Parallel(ctx, len(list), func(ctx context.Context, i int) error {
		got, err := widthsOf(ctx, list[i], n)
		lock.Lock()
		defer lock.Unlock()
		all[i] = got
		p.Log("%s is done", list[i].Name)
		return err
	})
	if err != nil {
		return err
	}
	p.Text("%d seeds a cell. *Assuming nothing*: packets that nobody watched were all out of order, or none. *Width*: upper less lower end, over the truth, median. *Estimate*: the watched share over the truth, "+
		"the middle 90 %% of the runs and rows.", n)
	t := &figure.Table{Columns: []string{"cell, configuration, quantity", "bounds", "held", "width", "assuming nothing", "estimate over truth"}}
	worst := 1.
	sharper := map[string][]float64{}
	for i, c := range list {
		for _, name := range slices.Sorted(maps.Keys(all[i])) {
			w := all[i][name]
			if w.all == 0 {
				continue
			}
			held := float64(w.held) / float64(w.all)
			t.Add(c.Name+", "+name, fmt.Sprint(w.all), figure.Percent(held), times(at(w.printed, .5)), times(at(w.hard, .5)), times(at(w.ratios, .05))+" to "+times(at(w.ratios, .95)))
			worst = min(worst, held)
			if len(w.printed) > 0 {
				_, quantity, _ := strings.Cut(name, ", ")
				sharper[quantity] = append(sharper[quantity], at(w.hard, .5)/at(w.printed, .5))
			}
		}
	}
	p.Table(t)
	p.Bar("bounds that hold, the worst cell", "95 % or more", figure.Percent(worst), worst >= .95)
	for _, quantity := range slices.Sorted(maps.Keys(sharper)) {
		p.Shown("bounds of "+quantity+" are narrower than those that assume nothing, median of the cells", times(at(sharper[quantity], .5))+" times")
	}
	return nil
}

// widthsOf a cell, by configuration and quantity.
func widthsOf(ctx context.Context, c coverage.Cell, n int) (map[string]*widths, error) {
	got := map[string]*widths{}
	configs := make([]bytecode.Config, len(c.Configs))
	for i, one := range c.Configs {
		configs[i] = one.Config
	}
	r, err := bytecode.NewRepeated(ctx, session.Config{Window: c.Window, Truth: true, Proven: true}, configs)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for seed := range uint64(n) {
		source, err := c.Open(seed + 1)
		if err != nil {
			return nil, err
		}
		lines, err := r.Replay(ctx, seed+1, source)
		source.Close()
		if err != nil {
			return nil, err
		}
		for i, l := range lines {
			for _, o := range outcome.Of(l.Report, *l.Truth) {
				name := c.Configs[i%len(configs)].Name + ", " + o.Quantity
				if got[name] == nil {
					got[name] = &widths{}
				}
				got[name].add(seenOf(l, o))
			}
		}
	}
	return got, nil
}

// seenOf is an estimate, how many packets it is made from, and how many there may be besides.
func seenOf(l report.Line, o outcome.Outcome) (_ outcome.Outcome, seen, unseen float64) {
	if o.Quantity != "prefixes.share" {
		return o, number(l, "watched"), number(l, "packets") - number(l, "watched")
	}
	for _, row := range l.Report.Tables[0].Rows {
		if fmt.Sprintf("prefix=%v ", row[0]) == o.Row {
			seen, _ = report.Number(row[1])
		}
	}
	return o, seen, number(l, "packets") - number(l, "reported")
}
