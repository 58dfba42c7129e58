package report

import "math"

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

// LargestGap returns the largest horizontal gap between two CDFs from the 5th to the 95th percentile, in steps of one
// per cent: as estimate/truth - 1, and as |log2(estimate/truth)|. Both are NaN when one of them is empty.
func LargestGap(est, truth Distribution) (ratio, log2 float64) {
	ratio, log2 = math.NaN(), math.NaN()
	for percent := 5; percent <= 95; percent++ {
		got, want := est.At(float64(percent)/100), truth.At(float64(percent)/100)
		if gap := Distance(got, want); !(gap <= log2) { // also while log2 is NaN
			ratio, log2 = Relative(got, want), gap
		}
	}
	return ratio, log2
}

// Distance is |log2(estimate/truth)|: 0 when both are 0.
func Distance(estimate, truth float64) float64 {
	if estimate == truth {
		return 0
	}
	return math.Abs(math.Log2(estimate / truth))
}

// named is a value, a distribution or a table.
type named interface{ called() string }

func (v Value) called() string        { return v.Name }
func (d Distribution) called() string { return d.Name }
func (t Table) called() string        { return t.Name }

// Find returns the first of a name.
func Find[T named](list []T, name string) (found T, ok bool) {
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
