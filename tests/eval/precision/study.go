// Package precision evaluates the heavy-hitter algorithms (dissertation, chapter 3) against the truth, the baselines that
// run as bytecode too, and plain Go references.
package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/eval/figure"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

func init() {
	eval.Register(&eval.Study{Name: "precision", Title: "PRECISION: how exact it is", Intro: intro, Sections: []eval.Section{
		{Name: "recall", Title: "Recall of the 128 largest flows, beside HashPipe (figure 3.7)", Run: recall},
		{Name: "heavytail", Title: "The same on a heavier tail", Run: heavyTail},
		{Name: "arrival", Title: "Mean square error on arrival (figure 3.7)", Run: arrival},
		{Name: "ways", Title: "Figure 3.3: associativity", Run: variants("ways", "1", "2", "3", "4")},
		{Name: "delay", Title: "Figure 3.4: delay of the second pass", Run: variants("delay", "0", "10", "100")},
		{Name: "initial", Title: "Figure 3.5: initial value", Run: variants("initial", "0", "10", "100", "1000")},
		{Name: "admission", Title: "Figures 3.6 and 3.9: admission", Run: variants("admission", heavy.AdmissionNames...)},
		{Name: "hhh", Title: "Figure 3.8: hierarchical heavy hitters", Run: hierarchy},
	}})
}

const intro = `
Figures of chapter 3 of Chen's dissertation, through the bytecode that ` + "`xdpmon attach`" + ` loads: packets of a model run through
parser, chain and program in the kernel, and Go reads the registers as it does live. HashPipe and CocoSketch are programs too
(bpf/hashpipe breaks the memory rules and is loaded for this only); RHHH and MST are plain Go.

The model has 54,334 flows with sizes proportional to 1/(rank + 5)^0.9, 400,000 packets in random order. *Entries* are all ways
together: a key and a counter. *Recall* is equation 3.2 for k = 128. A flow without an entry is estimated as 0, by every
algorithm; HashPipe's several entries of a flow are added up, as its control plane would.`

var sizes = []int{256, 512, 1024, 2048, 4096}

// contender is a column of a table.
type contender struct {
	name string
	make func(entries int) (*precision.Contender, error)
}

func own(name string, set map[string]string) contender {
	return contender{name, func(entries int) (*precision.Contender, error) {
		with := map[string]string{"entries": fmt.Sprint(entries)}
		for k, v := range set {
			with[k] = v
		}
		return precision.Precision(with)
	}}
}

func hashpipe(ways int) contender {
	return contender{fmt.Sprintf("HashPipe, d = %d", ways), func(entries int) (*precision.Contender, error) {
		return precision.HashPipe(ways, entries, ways)
	}}
}

func cocosketch() contender {
	return contender{"CocoSketch, d = 2", func(entries int) (*precision.Contender, error) { return precision.CocoSketch(2, entries) }}
}

func reference() contender {
	return own("exact, initial 1", map[string]string{"admission": "exact", "initial": "1", "recirculation": "1"})
}

// result of a contender at a size: means over the seeds.
type result struct {
	recall, mse, share float64
	spread             float64 // standard deviation of the recall over seeds
}

// measure runs contenders over seeds: [contender][size].
func measure(ctx context.Context, p *eval.Page, list []contender, model func(seed uint64) precision.Sizes, seeds int, arrivals bool) ([][]result, error) {
	results := make([][]result, len(list))
	for c := range results {
		results[c] = make([]result, len(sizes))
	}
	for seed := range uint64(seeds) {
		shape := model(seed + 1)
		shape.Packets = eval.Pick(p, shape.Packets, 20000)
		stream := shape.New()
		truth := stream.Truth()
		for c, who := range list {
			for s, entries := range sizes {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if err := add(&results[c][s], who, entries, stream, truth, seed+1, arrivals); err != nil {
					return nil, fmt.Errorf("%s, %d entries: %w", who.name, entries, err)
				}
			}
		}
		p.Log("seed %d of %d", seed+1, seeds)
	}
	for c := range results {
		for s := range results[c] {
			results[c][s].mean(float64(seeds))
		}
	}
	return results, nil
}

func add(r *result, who contender, entries int, stream *precision.Stream, truth map[heavy.Key]float64, seed uint64, arrivals bool) error {
	x, err := who.make(entries)
	if err != nil {
		return err
	}
	out, err := precision.Run(x, stream, seed, arrivals)
	if err != nil {
		return err
	}
	found := heavy.Recall(truth, heavy.Top(out.Counts, top), top)
	r.recall += found
	r.spread += found * found
	r.mse += out.MSE
	r.share += float64(out.Recirculated.Granted) / float64(len(stream.Order))
	return nil
}

const top = 128

func (r *result) mean(n float64) {
	r.recall /= n
	r.mse /= n
	r.share /= n
	r.spread = math.Sqrt(max(0, r.spread/n-r.recall*r.recall))
}

// table of one number by contender and size.
func table(list []contender, results [][]result, cell func(result) string) *figure.Table {
	t := &figure.Table{Columns: []string{"entries"}}
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for c, who := range list {
		row := []string{who.name}
		for s := range sizes {
			row = append(row, cell(results[c][s]))
		}
		t.Add(row...)
	}
	return t
}

func recallCell(r result) string { return fmt.Sprintf("%.3f", r.recall) }

func draw(p *eval.Page, name, title, axis string, logarithmic bool, list []contender, results [][]result, y func(result) float64) error {
	panel := figure.Panel{Title: title, X: figure.Axis{Label: "entries", Base: 2}, Y: figure.Axis{Label: axis}, Legend: figure.BottomRight}
	if logarithmic {
		panel.Y.Base, panel.Legend = 10, figure.TopRight
	}
	for c, who := range list {
		series := figure.Series{Name: who.name}
		for s, entries := range sizes {
			series.Points = append(series.Points, figure.Point{X: float64(entries), Y: y(results[c][s])})
		}
		panel.Series = append(panel.Series, series)
	}
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, name, title)
}
