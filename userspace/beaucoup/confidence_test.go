package beaucoup

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// population are the attributes of keys: Pareto with an exponent, from 1.
func population(random *rand.Rand, exponent float64) int {
	return int(min(1e6, math.Pow(1-random.Float64(), -1/exponent)))
}

// Of keys whose attributes fall as a power, and of keys that all grow beyond the threshold, the interval of an alert holds the
// count in 93 to 99 % of all cases, and alerts are of more than half the threshold as often as their confidence.
func TestConfidenceOfAlerts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []compile.Collector{{M: 32, N: 24, P: 1. / 256}, {M: 31, N: 5, P: 1. / 512}} {
		threshold := c.Draws()
		for name, keys := range map[string]func() int{
			"all above": func() int { return 1 << 20 },
			"a = 1":     func() int { return population(random, 1) },
			"a = 2":     func() int { return population(random, 2) },
		} {
			var have [65]int
			var counts []float64
			for n := 0; len(counts) < 400 && n < 10_000_000; n++ {
				limit := keys()
				coupons, drawn := collectedBy(random, c, limit)
				have[coupons]++
				if coupons == c.N {
					counts = append(counts, float64(drawn))
				}
			}
			if len(counts) < 100 {
				continue // never reached
			}
			v := verdictOf(&compile.Compiled{Query: compile.Query{Threshold: int(threshold)}}, c, have)
			held, above := 0.0, 0.0
			for _, n := range counts {
				if v.low <= n && n <= v.high {
					held += 1 / float64(len(counts))
				}
				if n > threshold/2 {
					above += 1 / float64(len(counts))
				}
			}
			t.Logf("%d of %d, %s: [%.0f, %.0f] holds %.3f, confidence %.3f, so many above half %.3f", c.N, c.M, name, v.low, v.high, held, v.confidence, above)
			if held < .92 || math.Abs(v.confidence-above) > .12 {
				t.Errorf("%d of %d, %s: [%.0f, %.0f] holds %.3f; confidence %.3f, above half %.3f", c.N, c.M, name, v.low, v.high, held, v.confidence, above)
			}
		}
	}
}

// collectedBy is how many coupons a key with so many attributes has, c.N at most, and at which attribute that was.
func collectedBy(random *rand.Rand, c compile.Collector, limit int) (coupons, drawn int) {
	for coupons < c.N {
		drawn += 1 + int(math.Log(1-random.Float64())/math.Log1p(-c.P*float64(c.M-coupons)))
		if drawn > limit {
			return coupons, limit
		}
		coupons++
	}
	return coupons, drawn
}
