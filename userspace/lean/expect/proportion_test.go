package expect

import (
	"math"
	"testing"
)

// The bounds are those at which a binomial variable reaches the number with 2.5 %.
func TestProportion(t *testing.T) {
	tail := func(p float64, from, to, n int) (sum float64) {
		for k := from; k <= to; k++ {
			a, _ := math.Lgamma(float64(n + 1))
			b, _ := math.Lgamma(float64(k + 1))
			c, _ := math.Lgamma(float64(n - k + 1))
			sum += math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		}
		return sum
	}
	for _, c := range [][2]int{{1, 1}, {1, 3}, {2, 100}, {50, 100}, {99, 100}, {13, 5000}, {4000, 5000}, {3, 40_000}} {
		k, n := c[0], c[1]
		low, high := Proportion(float64(k), float64(n))
		if got := tail(low, k, n, n); math.Abs(got-.025) > 1e-6 {
			t.Errorf("%d of %d: at least %g, where so many have %g", k, n, low, got)
		}
		if k < n {
			if got := tail(high, 0, k, n); math.Abs(got-.025) > 1e-6 {
				t.Errorf("%d of %d: at most %g, where so few have %g", k, n, high, got)
			}
		}
	}
	if low, high := Proportion(0, 100); low != 0 || math.Abs(high-(1-math.Pow(.025, .01))) > 1e-9 {
		t.Errorf("none of 100: %g to %g", low, high)
	}
	if low, high := Proportion(100, 100); high != 1 || math.Abs(low-math.Pow(.025, .01)) > 1e-9 {
		t.Errorf("all of 100: %g to %g", low, high)
	}
	if _, high := Proportion(0, 0); high != 1 {
		t.Errorf("no trial: at most %g", high)
	}
}

// Student's points, from a table.
func TestStudent(t *testing.T) {
	for n, want := range map[float64]float64{4: 3.182, 6: 2.571, 11: 2.228, 31: 2.042} {
		if got := Student(n); math.Abs(got/want-1) > .03 {
			t.Errorf("%g samples: %g, want %g", n, got, want)
		}
	}
}
