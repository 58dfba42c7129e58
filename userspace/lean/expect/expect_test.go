package expect

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The calculation agrees with draws: the recall of one draw has a binomial deviation of at most 5 points at k = 100, its mean
// over 40 of 0.8.
func TestExpectedRecall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const k, n, trials = 100, 20000, 40
	for _, share := range []float64{0.02, 0.2, 1, 5} { // of the last value that counts
		deviation := share * Skewed(k)
		want := Recall(k, n, Skewed, func(float64) float64 { return deviation })
		found := 0
		for range trials {
			type flow struct {
				rank     int
				estimate float64
			}
			flows := make([]flow, n)
			for r := range flows {
				flows[r] = flow{r, Skewed(float64(r)) + deviation*rng.NormFloat64()}
			}
			slices.SortFunc(flows, func(a, b flow) int { return int(math.Copysign(1, b.estimate-a.estimate)) })
			for _, f := range flows[:k] {
				if f.rank < k {
					found++
				}
			}
		}
		if got := float64(found) / k / trials; math.Abs(got-want) > 0.025 {
			t.Errorf("deviation %g of the last value: recall %.3f, calculated %.3f", share, got, want)
		}
	}
	if got := Recall(10, 5, Skewed, func(float64) float64 { return 1 }); got != 1 {
		t.Errorf("%g of 5 flows in a list of 10", got)
	}
}

// Squares that are added up in steps are those that are added up one by one.
func TestSquaresBehind(t *testing.T) {
	want := 0.0
	for r := 100; r < 370_000; r++ {
		want += Skewed(float64(r)) * Skewed(float64(r))
	}
	if got := squaresBehind(100, 370_000, Skewed); math.Abs(got/want-1) > 0.01 {
		t.Errorf("%g, want %g", got, want)
	}
}
