package conquest

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/conquest"
)

// queue draws delays over the first 100 ms.
func queue(_ context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	s := list[0]
	const span, slots = 100e6, 1000
	var peak [slots]float64
	start := float64(s.Packets[0].Time)
	for _, t := range s.Truth {
		if n := int((float64(t.Departure) - start) / span * slots); n < slots {
			peak[n] = max(peak[n], float64(t.Delay)/1e6)
		}
	}
	line := figure.Series{Name: "delay"}
	for n, delay := range peak {
		line.Points = append(line.Points, figure.Point{X: float64(n) / slots * span / 1e6, Y: delay})
	}
	packets, waited, flows, contributing := 0, 0, 0.0, 0.0
	for _, s := range list {
		packets, waited = packets+len(s.Packets), waited+len(s.Truth)
		f, c := s.Crowd(usual)
		flows, contributing = flows+f/float64(len(list)), contributing+c/float64(len(list))
	}
	p.Text("%d packets in %d runs, of which %d waited 0.8 ms or more. Then there were %.0f flows in the queue on average, of which %.1f had more than 1 %% of it.", packets, len(list), waited, flows, contributing)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{{X: figure.Axis{Label: "time (ms)"}, Y: figure.Axis{Label: "delay above 0.8 ms (ms)"}, Series: []figure.Series{line}}}},
		"queue", "delays over time: bursts of some ms, and nothing in between")
}

func byAlpha(ctx context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	table := &figure.Table{Columns: []string{"reading", "b x R x C", "bytes", "alpha", "precision", "recall"}}
	var curves, recalls []figure.Series
	for _, s := range []setting{{"overlap", 4, 1024}, {"overlap", 8, 512}, {"nearest", 4, 1024}, {"inner", 4, 1024}, {"outer", 4, 1024}, {"overlap", 4, 8}} {
		scores, err := judge(ctx, p, list, s, alphas)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s, b = %d, C = %d", s.reading, s.snapshots, s.columns)
		curve, recall := figure.Series{Name: name}, figure.Series{Name: name}
		least := conquest.Score{}
		precision, worst := 1.0, 1.0
		for n, alpha := range alphas {
			least = scores[n]
			precision, worst = min(precision, least.Precision()), min(worst, least.Recall())
			curve.Points = append(curve.Points, figure.Point{X: least.Recall(), Y: least.Precision()})
			recall.Points = append(recall.Points, figure.Point{X: alpha, Y: least.Recall()})
			table.Add(s.reading, fmt.Sprintf("%d x 2 x %d", s.snapshots, s.columns), fmt.Sprint(s.bytes()), fmt.Sprintf("%g", alpha), fmt.Sprintf("%.3f", least.Precision()),
				fmt.Sprintf("%.3f", least.Recall()))
		}
		curves, recalls = append(curves, curve), append(recalls, recall)
		bars(p, s, precision, worst, scores[len(scores)-1].Recall())
	}
	p.Table(table)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{
		{Title: "alpha from 0.1 % to 30 %", X: figure.Axis{Label: "recall"}, Y: figure.Axis{Label: "precision"}, Series: curves, Legend: figure.BottomLeft},
		{X: figure.Axis{Label: "alpha", Base: 10}, Y: figure.Axis{Label: "recall"}, Series: recalls},
	}}, "alpha", "precision over recall, and recall over alpha: the paper's readings miss more and more, the others do not")
}

// bars of the readings that have one.
func bars(p *eval.Page, s setting, precision, recall, highest float64) {
	measured := fmt.Sprintf("%.3f / %.3f", precision, recall)
	switch {
	case s.reading == "overlap" && s.snapshots == 4 && s.columns == 1024:
		p.Bar("precision / recall, b = 4, 65,536 bytes, alpha 0.1 % to 30 %, at least", ".94 / .93", measured, precision >= .94 && recall >= .93)
	case s.reading == "overlap" && s.snapshots == 8:
		p.Bar("... b = 8, 65,536 bytes", ".98 / .97", measured, precision >= .98 && recall >= .97)
	case s.reading == "inner" || s.reading == "outer":
		p.Bar("the dissertation's reading ("+s.reading+"), recall at alpha = 30 %", ".45 to .75", fmt.Sprintf("%.3f", highest), highest >= .45 && highest <= .75)
	}
}

// byModel is figure 5.10 on links whose parameters the dissertation has.
func byModel(ctx context.Context, p *eval.Page) error {
	table := &figure.Table{Columns: []string{"utilization", "waited", "reading", "b x R x C", "least precision", "at alpha", "least recall", "at alpha"}}
	for _, utilization := range utilizations {
		var list []*conquest.Stream
		waited := 0
		for seed := range eval.Pick(p, 2, 1) {
			s, err := asDocumented(utilization, eval.Pick(p, 150_000, 20_000), uint64(seed)+11)
			if err != nil {
				return err
			}
			list, waited = append(list, s), waited+len(s.Truth)
		}
		for _, s := range []setting{{"overlap", 4, 1024}, {"overlap", 8, 512}, {"overlap", 8, 1024}, {"inner", 4, 1024}, {"outer", 4, 1024}} {
			scores, err := judge(ctx, p, list, s, alphas)
			if err != nil {
				return err
			}
			precise, found := 0, 0
			for n := range scores {
				if scores[n].Precision() < scores[precise].Precision() {
					precise = n
				}
				if scores[n].Recall() < scores[found].Recall() {
					found = n
				}
			}
			table.Add(figure.Percent(utilization), fmt.Sprint(waited), s.reading, fmt.Sprintf("%d x 2 x %d", s.snapshots, s.columns), fmt.Sprintf("%.3f", scores[precise].Precision()),
				fmt.Sprintf("%g", alphas[precise]), fmt.Sprintf("%.3f", scores[found].Recall()), fmt.Sprintf("%g", alphas[found]))
			if want, ok := map[int][2]float64{4: {.94, .93}, 8: {.98, .97}}[s.snapshots]; ok && s.reading == "overlap" && s.bytes() == 65536 {
				got := [2]float64{scores[precise].Precision(), scores[found].Recall()}
				p.Bar(fmt.Sprintf("link used to %s, b = %d, 65,536 bytes", figure.Percent(utilization), s.snapshots), fmt.Sprintf("%.2f / %.2f", want[0], want[1]),
					fmt.Sprintf("%.3f / %.3f", got[0], got[1]), got[0] >= want[0] && got[1] >= want[1])
			}
		}
	}
	p.Text("The dissertation replays its trace so that the link is used to 3.75 %%, 7.5 %% and 15 %%, with a queue of 6.4 ms at most. Here half of that is background and half bursts of 50 us to 2 ms at 1.5 to 5 times the link's rate; 20,000 flows. These parameters stood before there was a result. *waited*: packets that waited 0.8 ms.")
	p.Table(table)
	return nil
}

func byColumns(ctx context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	var curves []figure.Series
	table := &figure.Table{Columns: []string{"cells of a snapshot", "b = 4", "b = 8", "b = 16"}}
	rows := map[int][]string{}
	sizes := []int{2, 4, 8, 16, 64, 256, 1024}
	for _, b := range []int{4, 8, 16} {
		curve := figure.Series{Name: fmt.Sprintf("b = %d", b)}
		for _, columns := range sizes {
			scores, err := judge(ctx, p, list, setting{"overlap", b, columns}, []float64{usual})
			if err != nil {
				return err
			}
			curve.Points = append(curve.Points, figure.Point{X: float64(2 * columns), Y: scores[0].Precision()})
			rows[columns] = append(rows[columns], fmt.Sprintf("%.3f", scores[0].Precision()))
		}
		curves = append(curves, curve)
	}
	for _, columns := range sizes {
		table.Add(append([]string{fmt.Sprint(2 * columns)}, rows[columns]...)...)
	}
	p.Text("Precision at alpha = 1 %%, R = 2. As in the dissertation it is there when a snapshot has about as many cells as the queue has flows.")
	p.Table(table)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{{X: figure.Axis{Label: "cells of a snapshot (R C)", Base: 10}, Y: figure.Axis{Label: "precision"}, Series: curves, Legend: figure.BottomRight}}},
		"columns", "precision over the size of a snapshot")
}

func bySnapshots(ctx context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	var panels []figure.Panel
	for _, alpha := range []float64{usual, 0.3} {
		table := &figure.Table{Columns: []string{"reading", "b = 2, T = 4.19 ms", "b = 4, 2.10 ms", "b = 8, 1.05 ms", "b = 16, 0.52 ms", "b = 16, exact", "b = 32, 0.26 ms, exact"}}
		panel := figure.Panel{Title: fmt.Sprintf("alpha = %g %%", 100*alpha), X: figure.Axis{Label: "snapshots", Base: 2}, Y: figure.Axis{Label: "recall"}}
		for _, reading := range readings {
			curve, row := figure.Series{Name: reading}, []string{reading}
			for _, b := range []int{2, 4, 8, 16} {
				scores, err := judge(ctx, p, list, setting{reading, b, 1024}, []float64{alpha})
				if err != nil {
					return err
				}
				curve.Points = append(curve.Points, figure.Point{X: float64(b), Y: scores[0].Recall()})
				row = append(row, fmt.Sprintf("%.3f", scores[0].Recall()))
			}
			for _, b := range []int{16, 32} {
				score := exact(list, reading, b, alpha)
				row = append(row, fmt.Sprintf("%.3f", score.Recall()))
				if b == 32 {
					curve.Points = append(curve.Points, figure.Point{X: float64(b), Y: score.Recall()})
				}
			}
			panel.Series = append(panel.Series, curve)
			table.Add(row...)
		}
		if len(panels) > 0 {
			panel.Legend = figure.BottomRight
		}
		panels = append(panels, panel)
		p.Text("Recall at alpha = %g %%, R x C = 2 x 1024; b T is the same.", 100*alpha)
		p.Table(table)
	}
	p.Text("The bytecode has 16 snapshots at most: the kernel lets a program use 64 maps, and these are 62 with two rows and a total each. *Exact* are windows that are calculated in Go, with the bytecode's " +
		"arithmetic and a counter for each flow (`go test -run TestWindows ./tests/conquest` compares both): with 2 x 1,024 cells hardly anything collides, so that b = 16 is nearly the same in both.")
	return p.Figure(&figure.Figure{Panels: panels}, "snapshots", "recall over the number of snapshots, by reading; 32 are exact windows and not the bytecode's")
}

// exact windows, whose number has no bound; b T is 8.39 ms.
func exact(list []*conquest.Stream, reading string, b int, alpha float64) (sum conquest.Score) {
	shift := 24 - bits.Len(uint(b))
	for _, s := range list {
		one := s.Judge(s.Windows(reading, b, shift), alpha, s.Said(map[string]string{"reading": reading}, alpha))
		sum.Right, sum.Said, sum.True = sum.Right+one.Right, sum.Said+one.Said, sum.True+one.True
	}
	return sum
}

// errors of sizes: a snapshot of 16,384 columns has hardly any collisions, so that what is left is rounding.
func errors(ctx context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	table := &figure.Table{Columns: []string{"C", "b = 4", "b = 8", "b = 16"}}
	rows := map[int][]string{}
	sizes := []int{4, 16, 64, 1024, 16384}
	var curves []figure.Series
	for _, b := range []int{4, 8, 16} {
		curve := figure.Series{Name: fmt.Sprintf("b = %d", b)}
		for _, columns := range sizes {
			var sum, count float64
			err := ask(ctx, p, list, setting{"overlap", b, columns}, func(s *conquest.Stream, answers []conquest.Answer) {
				for i, a := range answers {
					sum += math.Abs(float64(a.Size) - float64(s.Truth[i].Size))
					count++
				}
			})
			if err != nil {
				return err
			}
			curve.Points = append(curve.Points, figure.Point{X: float64(columns), Y: sum / count / 1000})
			rows[columns] = append(rows[columns], fmt.Sprintf("%.1f", sum/count/1000))
		}
		curves = append(curves, curve)
	}
	for _, columns := range sizes {
		name := fmt.Sprint(columns)
		if columns == 16384 {
			name += " (rounding alone)"
		}
		table.Add(append([]string{name}, rows[columns]...)...)
	}
	p.Text("Mean absolute error of a flow's size in the queue, kB; R = 2. With 16,384 columns hardly anything collides: that is the error of rounding.")
	p.Table(table)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{{X: figure.Axis{Label: "columns", Base: 10}, Y: figure.Axis{Label: "mean error (kB)", Base: 10}, Series: curves, Legend: figure.TopRight}}},
		"error", "error of sizes over columns, by the number of snapshots")
}

func scatter(ctx context.Context, p *eval.Page) error {
	list, err := streams(p)
	if err != nil {
		return err
	}
	var panels []figure.Panel
	for _, s := range []setting{{"overlap", 4, 16}, {"overlap", 4, 1024}, {"overlap", 16, 1024}, {"inner", 4, 1024}} {
		dots := figure.Series{Name: "packets", Style: figure.Style{Dots: true}}
		err := ask(ctx, p, list[:1], s, func(stream *conquest.Stream, answers []conquest.Answer) {
			for i := 0; i < len(answers); i += max(1, len(answers)/600) {
				dots.Points = append(dots.Points, figure.Point{X: float64(stream.Truth[i].Size) / 1e6, Y: float64(answers[i].Size) / 1e6})
			}
		})
		if err != nil {
			return err
		}
		panels = append(panels, figure.Panel{Title: fmt.Sprintf("%s, b = %d, C = %d", s.reading, s.snapshots, s.columns), X: figure.Axis{Label: "size (MB)"}, Y: figure.Axis{Label: "estimate (MB)"},
			Series: []figure.Series{dots}})
	}
	p.Text("One packet in many of one run. Ladders are rounding, dots above the diagonal at the left are collisions; the dissertation's reading lies below the diagonal, because it does not see what is being written.")
	return p.Figure(&figure.Figure{Panels: panels}, "scatter", "estimated sizes over true ones")
}
