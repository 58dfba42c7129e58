package reorder

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// unlimited is a C that no record reaches.
const unlimited = "16777214"

// swept is one panel of figure 7: settings that differ in one parameter.
type swept struct {
	title string
	axis  figure.Axis
	at    []float64
	list  []setting
}

func overT() swept {
	s := swept{title: "T, no limit C, 256 buckets", axis: figure.Axis{Label: "T in s (the first mark is 0)", Base: 2, Every: 5}}
	for _, exponent := range []int{-25, -20, -15, -10, -5, 0, 5} {
		t := time.Duration(float64(time.Second) * exp2(exponent))
		text := t.String()
		if exponent == -25 {
			text = "0s"
		}
		s.at = append(s.at, exp2(exponent))
		s.list = append(s.list, setting{name: "T = " + text, definition: 1,
			set: map[string]string{"buckets": "256", "T": text, "C": unlimited}})
	}
	return s
}

func exp2(n int) float64 {
	if n < 0 {
		return 1 / float64(int64(1)<<-n)
	}
	return float64(int64(1) << n)
}

// patience of figure 7b. The paper has T = 2^5; in seconds a flow of one packet then holds its bucket for as long as the
// trace lasts.
const patience = "31250us"

func overC() swept {
	s := swept{title: "C, T = 2^-5 s, 256 buckets", axis: figure.Axis{Label: "C in packets", Base: 2, Every: 2}}
	for _, c := range []int{1, 4, 16, 64, 256, 4096} {
		s.at = append(s.at, float64(c))
		s.list = append(s.list, setting{name: fmt.Sprintf("C = %d", c), definition: 1,
			set: map[string]string{"buckets": "256", "T": patience, "C": strconv.Itoa(c)}})
	}
	return s
}

func overWays(d int) swept {
	s := swept{title: fmt.Sprintf("precision, d = %d", d), axis: figure.Axis{Label: "buckets", Base: 2}}
	for _, n := range []int{32, 512, 4096, 16384} {
		s.at = append(s.at, float64(n))
		s.list = append(s.list, setting{name: fmt.Sprintf("d = %d, %d buckets", d, n), definition: 1,
			set: map[string]string{"buckets": buckets(n), "method": "precision", "ways": strconv.Itoa(d)}})
	}
	return s
}

// parameters is figure 7.
func parameters(ctx context.Context, p *eval.Page) error {
	all := []swept{overT(), overC()}
	for d := 2; d <= 5; d++ {
		all = append(all, overWays(d))
	}
	var list []setting
	for _, s := range all {
		list = append(list, s.list...)
	}
	got, err := run(ctx, p, alone(list))
	if err != nil {
		return err
	}
	table := &figure.Table{Columns: []string{"setting", "accuracy", "false positives", "reports a packet", "second passes"}}
	panels := []figure.Panel{percentPanel(all[0]), percentPanel(all[1]), percentPanel(all[2])}
	panels[2].Title, panels[2].Legend = "precision, d ways", figure.TopLeft
	i := 0
	for n, s := range all {
		series := figure.Series{Style: figure.Style{Marks: true}}
		for k := range s.list {
			sum := summarize(got[i][0][0])
			table.Add(append([]string{s.list[k].name}, sum.cells()...)...)
			series.Points = append(series.Points, figure.Point{X: s.at[k], Y: 100 * sum.accuracy.mean})
			i++
		}
		if n >= 2 {
			series.Name = s.title
		}
		panel := &panels[min(n, 2)]
		panel.Series = append(panel.Series, series)
	}
	p.Text("Definition 1, 256 buckets for T and C. As in section 4.4.1, T is varied without a limit on packets, and C with a long T. The " +
		"text has T = 2^5 for that; in seconds a flow of a single packet then holds its bucket for as long as the trace lasts (the " +
		"last row of T), so this is 2^-5 s.")
	p.Table(table)
	return p.Figure(&figure.Figure{Panels: panels}, "parameters", "accuracy against T, C and buckets for d ways")
}

func percentPanel(s swept) figure.Panel {
	return figure.Panel{Title: s.title, X: s.axis, Y: figure.Axis{Label: "accuracy, per cent", Min: 0, Max: 100}}
}
