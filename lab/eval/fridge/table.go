package fridge

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// tableLayouts are the fridges whose two corrections are compared; they are in pairs: exact, table.
var tableLayouts = []string{"4096@1/32", "4096@1/4", "16384@1/4", "65536@1/2", "65536@1", "2048@1/16,2048@1/256"}

func tableConfigs(layouts []string) []bytecode.Config {
	var configs []bytecode.Config
	for _, layout := range layouts {
		configs = append(configs, fridges(layout, "tcp-data"), fridges(layout, "tcp-data", "correction", "table"))
	}
	return configs
}

// usefulError is the largest error, in octaves, of a fridge whose corrections are worth comparing.
const usefulError = 0.25

// table compares the correction from a table in the data plane with the exact one: same packets, same hashes, same samples.
func table(ctx context.Context, p *eval.Page) error {
	m, err := measure(ctx, isp(eval.Pick(p, 5_000_000, 300_000)), seeds(eval.Pick(p, 3, 1), 6), tableConfigs(tableLayouts))
	if err != nil {
		return err
	}
	p.Text("ISP model, %d answered requests, %d hash seeds. Exact and table see the same samples. Shown is how far they are apart: the most "+
		"that a run had / of the combined CDFs.", len(m.truth), len(m.outcomes[0].runs))
	t := &figure.Table{Columns: []string{"fridge", "p50", "p95", "p99", "maximum, p5 to p95", "sum of weights", "exact against truth, maximum"}}
	most, useful := 0.0, 0
	for i, layout := range tableLayouts {
		exact, table := m.outcomes[2*i], m.outcomes[2*i+1]
		e, count := tableGap(exact, table)
		combined := apart(table.combined(), exact.combined())
		cells := []string{layout}
		for kind := range e {
			cells = append(cells, figure.Percent(e[kind])+" / "+figure.Percent(combined[kind]))
		}
		own := exact.single(m.truth)[atMost]
		t.Add(append(cells, figure.Percent(count), figure.Percent(own))...)
		if own <= usefulError {
			most = max(most, count, e[atMost])
			useful++
		}
	}
	p.Table(t)
	p.Bar("table correction against exact correction, p5 to p95 and sum of weights", "within 1 %",
		fmt.Sprintf("%s at most, in %d fridges that err by less than a quarter themselves", figure.Percent(most), useful), most <= 0.01)
	p.Text(`The paper finds 0.2 %% to 0.9 %%, about a tenth of what the fridge errs by itself, with factors in steps of 1.1, rounded to integers. The
table here has steps of 1.02 where the prefixes of x allow it, and 8 binary places; beyond one lifetime a rule is a 32nd of an
octave of x, and its factor spans %s at four lifetimes. The sums of weights agree much better than the percentiles. A horizontal
distance is large where samples are few: beyond the 95th percentile, and everywhere in 4096@1/4, which is so over-subscribed (a
lifetime of 31 ms against a p95 of 251 ms) that its tail rests on a handful of heavy samples. There a per mille more or less of
weight makes a percentile jump from one sample to the next; the average of runs shows that it has no direction.`, figure.Percent(math.Exp(4.0/32)-1))
	return nil
}

// tableGap is the largest difference of two outcomes in any run, as errs and of the counts.
func tableGap(exact, table *outcome) (e errs, count float64) {
	for n, want := range exact.runs {
		got := table.runs[n]
		count = max(count, math.Abs(report.Relative(got.Count, want.Count)))
		for kind, x := range apart(got, want) {
			e[kind] = max(e[kind], x)
		}
	}
	return e, count
}

// apart is how far two estimates are from each other.
func apart(a, b report.Distribution) (e errs) {
	gap := func(q float64) float64 { return math.Abs(math.Log2(a.At(q) / b.At(q))) }
	for i, q := range quantiles {
		e[i] = gap(q)
	}
	for percent := 5; percent <= 95; percent++ {
		e[atMost] = max(e[atMost], gap(float64(percent)/100))
	}
	return e
}
