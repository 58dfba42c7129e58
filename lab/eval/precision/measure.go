package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

var sizes = []int{256, 512, 1024, 2048, 4096}

const top = 128

// setup states what is measured.
type setup struct {
	model    model
	list     []contender
	sizes    []int
	seeds    int
	arrivals bool
	stream   *precision.Stream // of all seeds, instead of the model's
}

// result of a contender at a size, a number a seed.
type result struct {
	recall, recall32, mse, share []float64
}

// measure runs contenders over seeds: [contender][size].
func (s setup) measure(ctx context.Context, p *eval.Page) ([][]result, error) {
	results := make([][]result, len(s.list))
	for c := range results {
		results[c] = make([]result, len(s.sizes))
		for i := range results[c] {
			results[c][i] = result{make([]float64, s.seeds), make([]float64, s.seeds), make([]float64, s.seeds), make([]float64, s.seeds)}
		}
	}
	streams := s.streams(p)
	err := precision.Parallel(s.seeds, func(seed int) error {
		shared := newSeeded(uint64(seed) + 1)
		defer shared.close()
		p.Log("%s, seed %d of %d", s.model.name, seed+1, s.seeds)
		for c, who := range s.list {
			for i, entries := range s.sizes {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := s.one(&results[c][i], who, entries, seed, streams[seed], shared); err != nil {
					return fmt.Errorf("%s, %d entries: %w", who.name, entries, err)
				}
			}
		}
		return nil
	})
	return results, err
}

func (s setup) streams(p *eval.Page) []*precision.Stream {
	streams := make([]*precision.Stream, s.seeds)
	for seed := range streams {
		if s.stream != nil {
			streams[seed] = s.stream
			continue
		}
		shape := s.model.seeded(uint64(seed) + 1)
		shape.Packets = eval.Pick(p, shape.Packets, 20000)
		streams[seed] = shape.New()
	}
	return streams
}

func (s setup) one(r *result, who contender, entries, seed int, stream *precision.Stream, shared *seeded) error {
	out, err := who.run(entries, stream, shared, s.arrivals)
	if err != nil {
		return err
	}
	r.recall[seed] = heavy.Recall(stream.Truth(), heavy.Top(out.Counts, top), top)
	r.recall32[seed] = heavy.Recall(stream.Truth(), heavy.Top(out.Counts, 32), 32)
	r.mse[seed] = out.MSE
	r.share[seed] = float64(out.Recirculated.Granted) / float64(len(stream.Order))
	return nil
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// deviation over the seeds.
func deviation(list []float64) (d float64) {
	m := mean(list)
	for _, x := range list {
		d += (x - m) * (x - m) / float64(max(len(list)-1, 1))
	}
	return math.Sqrt(d)
}

func standardError(list []float64) float64 { return deviation(list) / math.Sqrt(float64(len(list))) }

func meanRecall(r result) float64   { return mean(r.recall) }
func meanRecall32(r result) float64 { return mean(r.recall32) }
func meanMSE(r result) float64      { return mean(r.mse) }

func recallCell(r result) string { return fmt.Sprintf("%.3f", mean(r.recall)) }
func mseCell(r result) string    { return fmt.Sprintf("%.0f", mean(r.mse)) }

// table of one number by contender and size.
func (s setup) table(results [][]result, cell func(result) string) *figure.Table {
	t := &figure.Table{Columns: []string{"entries"}}
	for _, entries := range s.sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for c, who := range s.list {
		row := []string{who.name}
		for i := range s.sizes {
			row = append(row, cell(results[c][i]))
		}
		t.Add(row...)
	}
	return t
}

// panel of one number over the entries.
func (s setup) panel(title, axis string, legend figure.Corner, results [][]result, y func(result) float64) figure.Panel {
	panel := figure.Panel{Title: title, X: figure.Axis{Label: "entries", Base: 2}, Y: figure.Axis{Label: axis}, Legend: legend}
	for c, who := range s.list {
		series := figure.Series{Name: who.name}
		for i, entries := range s.sizes {
			series.Points = append(series.Points, figure.Point{X: float64(entries), Y: y(results[c][i])})
		}
		panel.Series = append(panel.Series, series)
	}
	return panel
}

// both halves of a figure: error on arrival and recall.
func (s setup) both(p *eval.Page, name string, results [][]result, recall func(result) float64, k int) error {
	p.Text("Mean square error on arrival, packets squared:")
	p.Table(s.table(results, mseCell))
	p.Text("Recall of the %d largest flows:", k)
	p.Table(s.table(results, func(r result) string { return fmt.Sprintf("%.3f", recall(r)) }))
	mse := s.panel(s.model.name+": mean square error on arrival", "packets squared", figure.NoLegend, results, meanMSE)
	mse.Y.Base = 10
	found := s.panel(fmt.Sprintf("%s: recall of the %d largest", s.model.name, k), "recall", figure.BottomRight, results, recall)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{mse, found}}, name, s.model.name+": error on arrival and recall")
}
