// Package outcome sets every number of a report that has an enclosure beside its truth. What is read is what an operator reads: the
// report's own model, so that an enclosure that is printed cannot be left out.
package outcome

import (
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Outcome is one estimate of a report beside the truth.
type Outcome struct {
	Quantity         string // values.NAME, delay_ns.p99, flows.packets
	Row              string // of a table: its labels
	Value, Low, High float64
	Enclosed         bool // Low and High were printed
	Promise          report.Promise
	Truth            float64
	Judged           bool // the truth is known
	Samples          float64
}

// Exact reports whether there was nothing to enclose: the estimate is the truth.
func (o Outcome) Exact() bool { return o.Judged && o.Value == o.Truth }

// Holds reports whether the truth is inside. Values that are printed as integers have the error of their rounding.
func (o Outcome) Holds() bool { return o.Low <= o.Truth && o.Truth <= o.High }

// Of lists every number of an estimate whose name the truth has, too, and every row of its tables.
func Of(est, truth report.Body) []Outcome {
	var list []Outcome
	for _, v := range est.Values {
		if o, ok := value(v, truth.Values); ok {
			list = append(list, o)
		}
	}
	for _, d := range est.Distributions {
		for _, t := range truth.Distributions {
			if t.Name == d.Name {
				list = append(list, distribution(d, t)...)
			}
		}
	}
	for _, e := range est.Tables {
		for _, t := range truth.Tables {
			if t.Name == e.Name {
				list = append(list, table(e, t)...)
			}
		}
	}
	return list
}

func value(v report.Value, truth []report.Value) (Outcome, bool) {
	f, ok := report.Number(v.Value)
	at := slices.IndexFunc(truth, func(t report.Value) bool { return t.Name == v.Name })
	if !ok || at < 0 || v.Kind == report.Info {
		return Outcome{}, false
	}
	t, ok := report.Number(truth[at].Value)
	o := Outcome{Quantity: v.Name, Value: f, Truth: t, Judged: ok && !math.IsNaN(t), Promise: v.Promise, Samples: math.NaN()}
	o.enclose(v.Low, v.High)
	// A counter without an enclosure is the data plane's own count, not an estimate.
	return o, o.Enclosed || v.Kind != report.Counter
}

// enclose reads the printed ends; what is not a number is not printed.
func (o *Outcome) enclose(low, high any) {
	l, okLow := report.Number(low)
	h, okHigh := report.Number(high)
	if okLow && okHigh && !math.IsNaN(l+h) {
		o.Low, o.High, o.Enclosed = l, h, true
	}
}

func distribution(d, t report.Distribution) []Outcome {
	count := Outcome{Quantity: d.Name + ".count", Value: d.Count, Truth: t.Count, Judged: true, Samples: d.Count, Promise: d.CountPromise}
	if low, high, ok := d.CountInterval(); ok {
		count.enclose(low, high)
	}
	list := []Outcome{count}
	for _, q := range d.Quantiles {
		at := slices.IndexFunc(t.Quantiles, func(o report.Quantile) bool { return o.Name == q.Name })
		if at < 0 || !q.Defined {
			continue
		}
		o := Outcome{Quantity: d.Name + "." + q.Name, Value: q.Value, Truth: t.Quantiles[at].Value,
			Judged: t.Quantiles[at].Defined, Promise: q.Promise, Samples: d.Count}
		if q.Bounded() {
			o.enclose(q.Low, q.High)
		}
		list = append(list, o)
	}
	return list
}

// table matches rows by their labels. A row that the truth does not list is not judged.
func table(e, t report.Table) []Outcome {
	truth := map[string][]any{}
	for _, row := range t.Rows {
		truth[labels(t, row)] = row
	}
	var list []Outcome
	for i, c := range e.Columns {
		if c.Label || (c.Low == "" && c.Err == "" && !c.Metric) {
			continue
		}
		for _, row := range e.Rows {
			list = append(list, cellOf(e, t, row, truth[labels(e, row)], i))
		}
	}
	return list
}

func cellOf(e, t report.Table, row, truth []any, i int) Outcome {
	c := e.Columns[i]
	f, _ := report.Number(row[i])
	o := Outcome{Quantity: e.Name + "." + c.Name, Row: labels(e, row), Value: f, Promise: c.Promise, Samples: math.NaN()}
	if want, ok := report.Number(at(t, truth, c.Name)); ok {
		o.Truth, o.Judged = want, !math.IsNaN(want)
	}
	if c.Low != "" {
		o.enclose(at(e, row, c.Low), at(e, row, c.High))
		if !o.Enclosed && c.Least != "" {
			o.Promise = report.Bound
			o.enclose(at(e, row, c.Least), at(e, row, c.Most))
		}
	} else if se, ok := report.Number(at(e, row, c.Err)); ok && !math.IsNaN(se) {
		o.enclose(f-report.Normal95*se, f+report.Normal95*se)
	}
	return o
}

func at(t report.Table, row []any, column string) any {
	i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == column })
	if i < 0 || i >= len(row) {
		return nil
	}
	return row[i]
}

func labels(t report.Table, row []any) string {
	key := ""
	for i, c := range t.Columns {
		if c.Label && i < len(row) {
			key += fmt.Sprintf("%s=%v ", c.Name, row[i])
		}
	}
	return key
}
