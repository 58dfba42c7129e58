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

// missed is the chance that more than some of n events are false, added up by its definition.
func missed(n, some int, share float64) (chance float64) {
	factorial := func(n int) float64 { log, _ := math.Lgamma(float64(n) + 1); return log }
	for k := some + 1; k <= n; k++ {
		chance += math.Exp(factorial(n) - factorial(k) - factorial(n-k) + float64(k)*math.Log(share) + float64(n-k)*math.Log1p(-share))
	}
	return chance
}

// What is taken off is the least number that is exceeded in at most one of 40 cases; of many events it is that or a few more.
func TestLower(t *testing.T) {
	for _, share := range []float64{.001, .01, .1, .3, .5, .9, .99} {
		for _, n := range []int{0, 1, 2, 5, 17, 99, 100, 101, 150, 1000} {
			least := 0
			for missed(n, least, share) > 1./40 {
				least++
			}
			most := least
			if n > 100 {
				most += 2 + least/20
			}
			if off := float64(n) - Lower(float64(n), share); off < float64(least)-1e-9 || off > float64(min(most, n))+1e-9 {
				t.Errorf("%d events, each false with probability %g: %g are taken off, want %d to %d", n, share, off, least, most)
			}
		}
	}
	for _, c := range []struct{ x, share, want float64 }{{7.5, 0, 7.5}, {7.5, -1, 7.5}, {7.5, 1, 0}, {7.5, 2, 0}, {100, 1, 0}, {2.5, .01, 1.5}, {2.5, .005, 2.5}, {.5, .5, 0}, {0, .5, 0}} {
		if got := Lower(c.x, c.share); got != c.want {
			t.Errorf("%g events, %g of them false: at least %g, want %g", c.x, c.share, got, c.want)
		}
	}
}

// The addition is the mean of a negative binomial number and three of its deviations, compared with geometric trials.
func TestUpper(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, share := range []float64{.01, .2, .5, .9} {
		for _, x := range []int{0, 3, 40} {
			const trials = 4000
			sum, squares := 0.0, 0.0
			for range trials {
				missed := 0.0
				for range x + 1 {
					for rng.Float64() < share {
						missed++
					}
				}
				sum, squares = sum+missed, squares+missed*missed
			}
			mean := sum / trials
			deviation := math.Sqrt(squares/trials - mean*mean)
			want := float64(x) + mean + 3*deviation
			if got := Upper(float64(x), share); math.Abs(got-want) > .25*deviation+.02 {
				t.Errorf("%d events were seen, each is missed with probability %g: at most %g, of trials %g", x, share, got, want)
			}
		}
	}
	if Upper(5, 0) != 5 || Upper(5, 1) != Upper(5, .9) || Upper(5, .95) != Upper(5, .9) {
		t.Errorf("%g, %g and %g", Upper(5, 0), Upper(5, .9), Upper(5, 1))
	}
}

// Squares that are added up in steps are those that are added up one by one.
func TestSquaresAfter(t *testing.T) {
	want := 0.0
	for r := 100; r < 370_000; r++ {
		want += Skewed(float64(r)) * Skewed(float64(r))
	}
	if got := squaresFrom(100, 370_000, Skewed); math.Abs(got/want-1) > 0.01 {
		t.Errorf("%g, want %g", got, want)
	}
}
