package beaucoup

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// A collector called hopeless does not alert: attributes are a Poisson stream at all rates, and a collector is judged at many
// ages. The rule is three standard deviations away on both sides, so that at most one in a thousand of those that alert
// may have been called hopeless (both at once: below 1/2000 for a normal; sums of exponential times have longer tails, hence
// the factor two). And it is of use where three deviations are less than half of what an alert takes (24 coupons or more):
// keys with a tenth of that are seen through before their window ends, since what they lack takes several times the window.
func TestHopelessDoNotAlert(t *testing.T) {
	random := rand.New(rand.NewPCG(testutil.Seed(t), 3))
	for _, c := range []compile.Collector{{M: 32, N: 24, P: 1.0 / 32}, {M: 32, N: 24, P: 1.0 / 1024}, {M: 26, N: 14, P: 1.0 / 128}, {M: 64, N: 48, P: 1.0 / 64}, {M: 4, N: 3, P: 1.0 / 64}} {
		alerts, wrong := 0, 0
		for alerts < 2000 {
			if alerted, hopeless := live(c, random, c.Draws()*math.Exp(2.5*random.Float64()-2)); alerted {
				alerts++
				if hopeless {
					wrong++
				}
			}
		}
		const small = 2000
		freed := 0
		for range small {
			if _, hopeless := live(c, random, c.Draws()/10); hopeless {
				freed++
			}
		}
		t.Logf("%+v: of %d that alert %d were called hopeless; of %d small ones, %d", c, alerts, wrong, small, freed)
		if wrong*1000 > alerts {
			t.Errorf("%+v: %d of %d that alert were called hopeless", c, wrong, alerts)
		}
		if c.N >= 24 && freed*10 < 9*small {
			t.Errorf("%+v: only %d of %d small ones were evicted", c, freed, small)
		}
	}
}

// live is a collector's window with so many attributes on average: did it alert, and was it called hopeless before?
func live(c compile.Collector, random *rand.Rand, attributes float64) (alerted, hopeless bool) {
	at := 0.0 // share of the window, which begins with the first coupon
	k := 1
	if k == c.N {
		return true, false
	}
	judged := 0.05
	for {
		at += random.ExpFloat64() / (attributes * c.P * float64(c.M-k)) // to the next new coupon
		for ; judged < min(at, 1); judged += 0.05 {
			hopeless = hopeless || c.Hopeless(k, (1-judged)/judged)
		}
		if at >= 1 {
			return false, hopeless
		}
		if k++; k == c.N {
			return true, hopeless
		}
	}
}

// One that has alerted stays, and one that lacks a single coupon does for most of its window.
func TestHopelessBounds(t *testing.T) {
	c := compile.Collector{M: 32, N: 24, P: 1.0 / 32}
	for k := c.N; k <= c.M; k++ {
		if c.Hopeless(k, 0) {
			t.Errorf("%d coupons of %d: it has alerted", k, c.N)
		}
	}
	if c.Hopeless(23, 0.1) {
		t.Error("23 coupons of 24 and a tenth of the time: hopeless")
	}
	if !c.Hopeless(1, 0.5) {
		t.Error("1 coupon of 24 and half of the time has passed: not hopeless")
	}
	if (compile.Collector{M: 1, N: 1, P: 0.5}).Hopeless(1, 0) {
		t.Error("a collector of one coupon has alerted with it")
	}
}
