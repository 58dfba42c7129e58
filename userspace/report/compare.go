package report

import (
	"fmt"
	"math"
)

// Compare returns the relative errors of est against truth wherever both have the same name: 0.02 is 2 % too much, -0.02 is 2 %
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
func Compare(est, truth Body) Body {
	var out Body
	out.compareValues(est.Values, truth.Values)
	for _, t := range truth.Distributions {
		if e, ok := find(est.Distributions, t.Name); ok {
			out.compareDistribution(e, t)
		}
	}
	for _, t := range truth.Tables {
		if e, ok := find(est.Tables, t.Name); ok {
			out.compareTable(e, t)
		}
	}
	return out
}

func (b *Body) ratio(name string, value float64, help string) {
	b.Values = append(b.Values, Value{Name: name, Value: value, Unit: Ratio, Help: help})
}

func (b *Body) log2(name string, value float64) {
	b.Values = append(b.Values, Value{
		Name: name, Value: value, Unit: None,
		Help: "|log2(estimate / truth)|, the distance of the two on a logarithmic axis",
	})
}

// Relative returns estimate/truth - 1: 0 when both are 0, NaN when only the truth is.
func Relative(estimate, truth float64) float64 {
	if estimate == truth {
		return 0
	}
	if truth == 0 {
		return math.NaN()
	}
	return estimate/truth - 1
}

func (b *Body) compareValues(est, truth []Value) {
	for _, t := range truth {
		want, ok := Number(t.Value)
		if !ok || t.Kind == Info {
			continue
		}
		for _, e := range est {
			if got, ok := Number(e.Value); ok && e.Name == t.Name {
				b.ratio(t.Name, Relative(got, want), "estimate / truth - 1")
				break
			}
		}
	}
}

func (b *Body) compareDistribution(est, truth Distribution) {
	b.ratio(truth.Name+".count", Relative(est.Count, truth.Count), "estimate / truth - 1")
	b.ratio(truth.Name+".mean", Relative(est.Mean, truth.Mean), "estimate / truth - 1")
	for _, t := range truth.Quantiles {
		for _, e := range est.Quantiles {
			if e.Name != t.Name {
				continue
			}
			got, want := orNaN(e.Value, e.Defined), orNaN(t.Value, t.Defined)
			b.ratio(truth.Name+"."+t.Name, Relative(got, want), "estimate / truth - 1")
			b.log2(truth.Name+"."+t.Name+"_log2", distance(got, want))
		}
	}
	b.compareCDF(est, truth)
}

// compareCDF reports the largest horizontal gap between the curves.
func (b *Body) compareCDF(est, truth Distribution) {
	if !(est.Total() > 0) || !(truth.Total() > 0) {
		return
	}
	ratio, log2 := LargestGap(est, truth)
	b.ratio(truth.Name+".p5_p95_max", ratio, "largest gap between the curves, 5th to 95th percentile")
	b.log2(truth.Name+".p5_p95_max_log2", log2)
}

// LargestGap returns the largest horizontal gap between two CDFs from the 5th to the 95th percentile, in steps of one
// per cent: as estimate/truth - 1, and as |log2(estimate/truth)|. Both are NaN when one of them is empty.
func LargestGap(est, truth Distribution) (ratio, log2 float64) {
	ratio, log2 = math.NaN(), math.NaN()
	for percent := 5; percent <= 95; percent++ {
		got, want := est.At(float64(percent)/100), truth.At(float64(percent)/100)
		if gap := distance(got, want); !(gap <= log2) { // also while log2 is NaN
			ratio, log2 = Relative(got, want), gap
		}
	}
	return ratio, log2
}

// distance is |log2(estimate/truth)|: 0 when both are 0.
func distance(estimate, truth float64) float64 {
	if estimate == truth {
		return 0
	}
	return math.Abs(math.Log2(estimate / truth))
}

func (b *Body) compareTable(est, truth Table) {
	found := map[string][]any{}
	for _, row := range est.Rows {
		found[est.key(row)] = row
	}
	both := 0
	sums := make([]float64, len(truth.Columns))
	for _, row := range truth.Rows {
		e, ok := found[truth.key(row)]
		if !ok {
			continue
		}
		both++
		for i, c := range truth.Columns {
			sums[i] += math.Abs(Relative(est.numberAt(e, c.Name), truth.numberAt(row, c.Name)))
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
func (t Table) key(row []any) string {
	key := ""
	for i, c := range t.Columns {
		if c.Label {
			key += fmt.Sprintf("%s=%v\x00", c.Name, cell(row, i))
		}
	}
	return key
}

func (t Table) numberAt(row []any, column string) float64 {
	for i, c := range t.Columns {
		if c.Name == column {
			return number(cell(row, i))
		}
	}
	return math.NaN()
}

// named is a value, a distribution or a table.
type named interface{ called() string }

func (v Value) called() string        { return v.Name }
func (d Distribution) called() string { return d.Name }
func (t Table) called() string        { return t.Name }

// find returns the first of a name.
func find[T named](list []T, name string) (found T, ok bool) {
	for _, x := range list {
		if x.called() == name {
			return x, true
		}
	}
	return found, false
}

// Number returns a cell or value as a float64; ok is false for text and truth values.
func Number(value any) (f float64, ok bool) {
	switch n := value.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case uint32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
