package beaucoup

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

func percent(x float64) string { return fmt.Sprintf("%g %%", x) }

// errorOf a collector whose threshold is its mean.
func errorOf(m, n int, p float64) float64 {
	l := newLaw(compile.Collector{M: m, N: n, P: p}, 1e-7)
	return l.err(l.mean)
}

// bestOf is the n of the smallest error among those from a share of m to another.
func bestOf(m int, p, from, to float64) (n int, smallest float64) {
	smallest = math.Inf(1)
	for k := max(1, int(from*float64(m))); k <= min(m, int(math.Ceil(to*float64(m)))); k++ {
		if e := errorOf(m, k, p); e < smallest {
			smallest, n = e, k
		}
	}
	return n, smallest
}

// configurations is figure 4.5 as curves of n for some m.
func configurations(_ context.Context, p *eval.Page) error {
	p.Text("Error of collecting n of m coupons when the threshold is CC(m, p, n), by the exact distribution; m*p = 1/16. The smallest is " +
		"near three quarters of the coupons, as in the paper, and rather more when p is small.")
	panel := figure.Panel{Title: "mean relative error", X: figure.Axis{Label: "share of the coupons that is collected, n / m"},
		Y: figure.Axis{Label: "error", Min: 0, Max: 60, Format: percent}, Legend: figure.TopRight}
	t := &figure.Table{Columns: []string{"m", "best n, m*p = 1", "error", "best n, m*p = 1/2", "error", "best n, m*p = 1/16", "error", "n = 0.75 m, m*p = 1/16"}}
	for _, m := range []int{8, 16, 32, 64} {
		series := figure.Series{Name: fmt.Sprintf("m = %d", m)}
		for n := 1; n <= m; n++ {
			series.Points = append(series.Points, figure.Point{X: float64(n) / float64(m), Y: 100 * errorOf(m, n, 1./16/float64(m))})
		}
		panel.Series = append(panel.Series, series)
		row := []string{fmt.Sprint(m)}
		for _, all := range []float64{1, 1. / 2, 1. / 16} {
			n, e := bestOf(m, all/float64(m), .3, 1)
			row = append(row, fmt.Sprint(n), points(e))
		}
		t.Add(append(row, points(errorOf(m, 3*m/4, 1./16/float64(m))))...)
	}
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, "configurations", "error against n for m = 8, 16, 32 and 64")
}

// paperCoupons are the errors that the paper's figure 4.6 and its text give.
var paperCoupons = map[int]string{32: "13.7 %", 64: "9.8 %", 128: "6.9 %", 256: "5.0 %", 1024: "3.1 %"}

// coupons is figure 4.6.
func coupons(_ context.Context, p *eval.Page) error {
	p.Text("Smallest error that m coupons can have, over n, by the exact distribution. It depends on m*p, the coupons a packet, which the " +
		"paper does not name: at 1 no packet is without a coupon, and fewer draws are left to chance. The paper's figures up to 256 are between " +
		"m*p = 1 and m*p = 1/2. (At m*p = 1 the smallest error is that of few coupons: the first draw always brings one.)")
	t := &figure.Table{Columns: []string{"m", "m*p = 1", "m*p = 1/2", "m*p = 1/16", "the paper's"}}
	panel := figure.Panel{Title: "smallest mean relative error", X: figure.Axis{Label: "coupons, m", Base: 2},
		Y: figure.Axis{Label: "error", Base: 2, Format: percent}, Legend: figure.TopRight}
	totals := []float64{1, 1. / 2, 1. / 16}
	for _, all := range totals {
		panel.Series = append(panel.Series, figure.Series{Name: "m*p = " + figure.Power(all)})
	}
	for m := 2; m <= eval.Pick(p, 1024, 64); m *= 2 {
		row := []string{fmt.Sprint(m)}
		for i, all := range totals {
			from, to := .5, 1.
			if m > 128 { // the best is known to be near
				from, to = []float64{.58, .7, .78}[i], []float64{.61, .73, .81}[i]
			}
			_, e := bestOf(m, all/float64(m), from, to)
			row = append(row, points(e))
			panel.Series[i].Points = append(panel.Series[i].Points, figure.Point{X: float64(m), Y: 100 * e})
		}
		t.Add(append(row, paperCoupons[m])...)
	}
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, "coupons", "smallest error against the number of coupons")
}

// compiled is the collector that the compiler chooses for one query.
func compiled(threshold int, budget float64, word int) (compile.Collector, error) {
	queries, err := compile.ParseQueries(fmt.Sprintf("q: count distinct dst by src > %d in %v", threshold, time.Second))
	if err != nil {
		return compile.Collector{}, err
	}
	program, err := compile.Compile(queries, compile.CompileOptions{Budget: budget, Word: word, Ties: true})
	if err != nil {
		return compile.Collector{}, err
	}
	return program.Queries[0].Collector, nil
}

// limits is figure 4.12.
func limits(_ context.Context, p *eval.Page) error {
	p.Text("What the compiler chooses for one query under a limit of coupons a packet (gamma of the paper): m, n, 1/p; coupons a packet it " +
		"draws; error by the exact distribution. A small threshold takes all that it is given, a large one what it needs.")
	t := &figure.Table{Columns: []string{"limit"}}
	thresholds := []int{100, 500, 1000, 5000, 10000}
	axis := figure.Axis{Label: "limit, coupons a packet", Base: 2, Every: 2}
	panels := []figure.Panel{
		{Title: "coupons a packet that are drawn", X: axis, Y: figure.Axis{Label: "m*p", Base: 2, Every: 2}, Legend: figure.TopLeft},
		{Title: "mean relative error", X: axis, Y: figure.Axis{Label: "error", Min: 0, Max: 80, Format: percent}},
	}
	for _, threshold := range thresholds {
		t.Columns = append(t.Columns, fmt.Sprintf("T = %d", threshold))
		for i := range panels {
			panels[i].Series = append(panels[i].Series, figure.Series{Name: fmt.Sprintf("T = %d", threshold)})
		}
	}
	for e := -10; e <= 0; e++ {
		limit := math.Ldexp(1, e)
		row := []string{figure.Power(limit)}
		for i, threshold := range thresholds {
			c, err := compiled(threshold, limit, 32)
			if err != nil {
				return err
			}
			off := newLaw(c, 1e-6).err(float64(threshold))
			row = append(row, fmt.Sprintf("%d, %d, %g; %.4f; %s", c.M, c.N, 1/c.P, float64(c.M)*c.P, figure.Percent(off)))
			panels[0].Series[i].Points = append(panels[0].Series[i].Points, figure.Point{X: limit, Y: float64(c.M) * c.P})
			panels[1].Series[i].Points = append(panels[1].Series[i].Points, figure.Point{X: limit, Y: 100 * off})
		}
		t.Add(row...)
	}
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: panels}, "limit", "coupons drawn and error against the limit")
}
