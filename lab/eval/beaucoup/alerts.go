package beaucoup

import (
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// alert is a row of the table of alerts.
type alert struct {
	query, key string
	time       int64 // ns
	low        float64
}

// table of a body, by name.
func table(b *report.Body, name string) (*report.Table, error) {
	i := slices.IndexFunc(b.Tables, func(t report.Table) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("read report: no table %s", name)
	}
	return &b.Tables[i], nil
}

// column of a table, by name.
func column(t *report.Table, name string) (int, error) {
	i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("read table %s: no column %s", t.Name, name)
	}
	return i, nil
}

// alertsOf a line; losing one is a fault of the evaluation.
func alertsOf(l *report.Line) ([]alert, error) {
	t, err := table(&l.Report, "alerts")
	if err != nil {
		return nil, err
	}
	at, err := column(t, "time")
	if err != nil {
		return nil, err
	}
	low, err := column(t, "count_low")
	if err != nil {
		return nil, err
	}
	if raised := value(&l.Report, "alerts_raised"); raised < float64(len(t.Rows)) || l.Lost["alerts"] > 0 {
		return nil, fmt.Errorf("read alerts: %g raised, %d listed, %d lost", raised, len(t.Rows), l.Lost["alerts"])
	}
	list := make([]alert, 0, len(t.Rows))
	for _, row := range t.Rows {
		bound, _ := report.Number(row[low])
		list = append(list, alert{row[0].(string), row[1].(string), row[at].(int64), bound})
	}
	return list, nil
}

// value of a body, by name; NaN when it is not there.
func value(b *report.Body, name string) float64 {
	i := slices.IndexFunc(b.Values, func(v report.Value) bool { return v.Name == name })
	if i < 0 {
		return math.NaN()
	}
	f, _ := report.Number(b.Values[i].Value)
	return f
}

// number of a row of a table, by the row's first column; NaN when it is not there.
func number(b *report.Body, name, row, col string) float64 {
	t, err := table(b, name)
	if err != nil {
		return math.NaN()
	}
	c, err := column(t, col)
	if err != nil {
		return math.NaN()
	}
	for _, r := range t.Rows {
		if f, ok := report.Number(r[c]); ok && r[0] == row {
			return f
		}
	}
	return math.NaN()
}

// tally adds up errors of alerts.
type tally struct {
	n, abs, signed, square float64
}

func (t *tally) add(count, threshold float64) {
	off := count/threshold - 1
	t.n++
	t.abs += math.Abs(off)
	t.signed += off
	t.square += off * off
}

func (t *tally) join(o tally) {
	t.n += o.n
	t.abs += o.abs
	t.signed += o.signed
	t.square += o.square
}

func (t *tally) err() float64  { return t.abs / t.n }
func (t *tally) bias() float64 { return t.signed / t.n }

// sure is the standard error of err.
func (t *tally) sure() float64 { return math.Sqrt(max(0, t.square/t.n-t.err()*t.err()) / t.n) }

// biasSure is the standard error of bias.
func (t *tally) biasSure() float64 { return math.Sqrt(max(0, t.square/t.n-t.bias()*t.bias()) / t.n) }
