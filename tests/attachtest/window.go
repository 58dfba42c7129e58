package attachtest

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Window is one window of an algorithm: what `xdpmon attach` prints as one JSON line. Its methods find what has a name, and end the test where the report has
// no such name; the names are those of the JSON (docs/output.md).
type Window struct {
	report.Line
	tb testing.TB
}

// Estimate is a number of a report with its 95 % interval. Without an interval, as that of an exact number, Low and High are NaN.
type Estimate struct{ Value, Low, High float64 }

// Holds reports whether x is in the interval, or is the number.
func (e Estimate) Holds(x float64) bool { return x == e.Value || e.Low <= x && x <= e.High }

// Value is a number of the report by its name: "lost", "sla.over".
func (w Window) Value(name string) Estimate {
	w.tb.Helper()
	v, ok := report.Find(w.Report.Values, name)
	if !ok {
		w.missing("value", name, names(w.Report.Values, func(v report.Value) string { return v.Name }))
	}
	number, ok := report.Number(v.Value)
	if !ok {
		w.tb.Fatalf("%s of %s is no number but %v: read it in Report.Values", name, w.Algorithm, v.Value)
	}
	return Estimate{number, bound(v.Low), bound(v.High)}
}

func bound(end any) float64 {
	if f, ok := report.Number(end); ok {
		return f
	}
	return math.NaN()
}

// Quantile is a percentile of a distribution by their names: "delay_ns", "p50". The test ends if there were too few samples for it.
func (w Window) Quantile(distribution, name string) Estimate {
	w.tb.Helper()
	d, ok := report.Find(w.Report.Distributions, distribution)
	if !ok {
		w.missing("distribution", distribution, names(w.Report.Distributions, func(d report.Distribution) string { return d.Name }))
	}
	for _, q := range d.Quantiles {
		switch {
		case q.Name != name:
		case !q.Defined:
			w.tb.Fatalf("%s.%s of %s: too few samples (%.0f values): send more traffic, or wait longer", distribution, name, w.Algorithm, d.Count)
		case !q.Bounded():
			return Estimate{q.Value, math.NaN(), math.NaN()}
		default:
			return Estimate{q.Value, q.Low, q.High}
		}
	}
	w.missing("percentile of "+distribution, name, names(d.Quantiles, func(q report.Quantile) string { return q.Name }))
	return Estimate{}
}

// Rows are the rows of a table by its name, the first row first, each with its cells by the names of the columns.
func (w Window) Rows(table string) (rows []map[string]any) {
	w.tb.Helper()
	t, ok := report.Find(w.Report.Tables, table)
	if !ok {
		w.missing("table", table, names(w.Report.Tables, func(t report.Table) string { return t.Name }))
	}
	for _, cells := range t.Rows {
		row := map[string]any{}
		for n, column := range t.Columns {
			row[column.Name] = cells[n]
		}
		rows = append(rows, row)
	}
	return rows
}

// missing ends the test.
func (w Window) missing(what, name string, there []string) {
	w.tb.Helper()
	w.tb.Fatalf("%s reports no %s %q: there are %s", w.Algorithm, what, name, cmp.Or(strings.Join(there, ", "), "none"))
}

func names[T any](list []T, name func(T) string) (all []string) {
	for _, x := range list {
		all = append(all, name(x))
	}
	return all
}
