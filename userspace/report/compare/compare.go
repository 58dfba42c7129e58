// Package compare measures how far an estimate is from the truth.
package compare

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Bodies returns the relative errors of est against truth wherever both have the same name: 0.02 is 2 % too much, -0.02 is 2 %
// too little.
//
//   - a number NAME: NAME;
//   - a distribution NAME: NAME.count, NAME.mean, and for each percentile NAME.p50 and NAME.p50_log2, the fridge
//     paper's |log2(estimate / truth)| (section 5.1). NAME.p5_p95_max and NAME.p5_p95_max_log2 are the largest
//     horizontal gap between the two CDFs from the 5th to the 95th percentile, in steps of one per cent;
//   - a table NAME, rows being the same when their label columns are: NAME.recall (share of the true rows that
//     were found), NAME.precision (share of the found rows that are true), and for each metric column NAME.COLUMN,
//     the mean of the absolute relative errors over the rows that both have.
//
// What cannot be computed (a truth of 0, no samples) is NaN: null in JSON, "-" in a table.
func Bodies(est, truth report.Body) report.Body {
	var out errors
	out.compareValues(est.Values, truth.Values)
	for _, t := range truth.Distributions {
		if e, ok := report.Find(est.Distributions, t.Name); ok {
			out.compareDistribution(e, t)
		}
	}
	for _, t := range truth.Tables {
		if e, ok := report.Find(est.Tables, t.Name); ok {
			out.compareTable(e, t)
		}
	}
	return report.Body(out)
}

// errors are relative, as numbers of a report.
type errors report.Body

func (b *errors) ratio(name string, value float64, help string) {
	b.Values = append(b.Values, report.Value{Name: name, Value: value, Unit: report.Ratio, Help: help})
}

func (b *errors) log2(name string, value float64) {
	b.Values = append(b.Values, report.Value{
		Name: name, Value: value, Unit: report.None,
		Help: "|log2(estimate / truth)|, the distance of the two on a logarithmic axis",
	})
}

func (b *errors) compareValues(est, truth []report.Value) {
	for _, t := range truth {
		want, ok := report.Number(t.Value)
		if !ok || t.Kind == report.Info {
			continue
		}
		for _, e := range est {
			if got, ok := report.Number(e.Value); ok && e.Name == t.Name {
				b.ratio(t.Name, report.Relative(got, want), "estimate / truth - 1")
				break
			}
		}
	}
}

func (b *errors) compareDistribution(est, truth report.Distribution) {
	b.ratio(truth.Name+".count", report.Relative(est.Count, truth.Count), "estimate / truth - 1")
	b.ratio(truth.Name+".mean", report.Relative(est.Mean, truth.Mean), "estimate / truth - 1")
	for _, t := range truth.Quantiles {
		for _, e := range est.Quantiles {
			if e.Name != t.Name {
				continue
			}
			got, want := orNaN(e.Value, e.Defined), orNaN(t.Value, t.Defined)
			b.ratio(truth.Name+"."+t.Name, report.Relative(got, want), "estimate / truth - 1")
			b.log2(truth.Name+"."+t.Name+"_log2", report.Distance(got, want))
		}
	}
	b.compareCDF(est, truth)
}

// compareCDF reports the largest horizontal gap between the curves.
func (b *errors) compareCDF(est, truth report.Distribution) {
	if !(est.Total() > 0) || !(truth.Total() > 0) {
		return
	}
	ratio, log2 := report.LargestGap(est, truth)
	b.ratio(truth.Name+".p5_p95_max", ratio, "largest gap between the curves, 5th to 95th percentile")
	b.log2(truth.Name+".p5_p95_max_log2", log2)
}

func (b *errors) compareTable(est, truth report.Table) {
	found := map[string][]any{}
	for _, row := range est.Rows {
		found[key(est, row)] = row
	}
	both := 0
	sums := make([]float64, len(truth.Columns))
	for _, row := range truth.Rows {
		e, ok := found[key(truth, row)]
		if !ok {
			continue
		}
		both++
		for i, c := range truth.Columns {
			sums[i] += math.Abs(report.Relative(numberAt(est, e, c.Name), numberAt(truth, row, c.Name)))
		}
	}
	b.ratio(truth.Name+".recall", share(both, len(truth.Rows)), "share of the true rows that were found")
	b.ratio(truth.Name+".precision", share(both, len(est.Rows)), "share of the found rows that are true")
	for i, c := range truth.Columns {
		if c.Metric && !c.Label {
			b.ratio(truth.Name+"."+c.Name, sums[i]/float64(both), "mean of |estimate / truth - 1| over the rows found")
		}
	}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

// key names a row by its label columns.
func key(t report.Table, row []any) string {
	key := ""
	for i, c := range t.Columns {
		if c.Label {
			key += fmt.Sprintf("%s=%v\x00", c.Name, cell(row, i))
		}
	}
	return key
}

func numberAt(t report.Table, row []any, column string) float64 {
	for i, c := range t.Columns {
		if c.Name == column {
			if f, ok := report.Number(cell(row, i)); ok {
				return f
			}
		}
	}
	return math.NaN()
}

// cell is nil where a row is too short.
func cell(row []any, i int) any {
	if i >= len(row) {
		return nil
	}
	return row[i]
}

func orNaN(x float64, ok bool) float64 {
	if ok {
		return x
	}
	return math.NaN()
}
