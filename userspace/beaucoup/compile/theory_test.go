package compile

import (
	"math"
	"testing"
)

// What theory gives for 24 of 32 coupons: 12.4 % at m*p = 1, 15.2 % at 1/2, 17.3 % as p falls to 0.
func TestErrorOfCollectors(t *testing.T) {
	for _, c := range []struct{ p, want float64 }{{1.0 / 32, 0.124}, {1.0 / 64, 0.152}, {1.0 / 65536, 0.173}} {
		collector := Collector{M: 32, N: 24, P: c.p}
		if got := collector.Error(collector.Draws()); math.Abs(got-c.want) > 0.002 {
			t.Errorf("m*p = %g: mean relative error %.4f, want %.3f", 32*c.p, got, c.want)
		}
	}
	for _, j := range []int{6, 16} {
		c := Collector{M: 64, N: 48, P: math.Ldexp(1, -j)}
		if got := c.Error(c.Draws()); got > 0.125 {
			t.Errorf("64 coupons, p = 2^-%d: mean relative error %.4f, want 0.125 or less", j, got)
		}
	}
}

// 129.9 draws collect 32 of 32 (section 4.1).
func TestDraws(t *testing.T) {
	if got := (Collector{M: 32, N: 32, P: 1.0 / 32}).Draws(); math.Abs(got-129.9) > 0.05 {
		t.Errorf("32 of 32 coupons take %.2f draws, want 129.9", got)
	}
}

// The compiler's choice is within 5 % of the threshold, within the limit, and not worse than collecting three quarters.
func TestBest(t *testing.T) {
	for _, threshold := range []float64{100, 500, 1000, 5000, 10000} {
		for _, limit := range []float64{1, 1.0 / 3, 1.0 / 26, 1.0 / 78} {
			c, j := best(threshold, limit, 1, 32)
			if float64(c.M)*c.P > limit+1e-9 || c.P != math.Ldexp(1, -j) {
				t.Errorf("T = %g: %+v draws more than %g coupons a packet", threshold, c, limit)
			}
			if bias := c.Draws()/threshold - 1; math.Abs(bias) > 0.05 && c.N > 2 {
				t.Errorf("T = %g, limit %g: %+v takes %.1f draws", threshold, limit, c, c.Draws())
			}
			if c.M >= 30 && c.N >= 20 && c.Error(threshold) > 0.183 {
				t.Errorf("T = %g, limit %g: %+v errs by %.3f", threshold, limit, c, c.Error(threshold))
			}
		}
	}
}

// Two words err by 12.5 % or less whatever the threshold, where the limit leaves them their coupons.
func TestTwoWords(t *testing.T) {
	for threshold := 100.0; threshold < 1e6; threshold = math.Floor(1.01*threshold) + 1 {
		c, _ := best(threshold, 1, 1, 64, oddMultiples...)
		if got := c.Error(threshold); got > 0.125 {
			t.Errorf("T = %g: %+v errs by %.4f, want 0.125 or less", threshold, c, got)
		}
	}
}

// Of one coupon's draws, which are geometric, quantiles are known; of many, half are below about the mean, and all follow p.
func TestQuantiles(t *testing.T) {
	one := Collector{M: 1, N: 1, P: 1.0 / 64}
	for _, share := range []float64{1e-4, 0.025, 0.5, 0.975} {
		want := math.Max(1, math.Ceil(math.Log(1-share)/math.Log(1-one.P)))
		if got := one.Quantiles(share)[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%g of geometric draws are %g at most, want %g", share, got, want)
		}
	}
	near, far := Collector{M: 32, N: 24, P: 1.0 / 1024}, Collector{M: 32, N: 24, P: 1.0 / 65536}
	a, b := near.Quantiles(1e-4, 0.025, 0.5, 0.975), far.Quantiles(1e-4, 0.025, 0.5, 0.975)
	for i := range a {
		if math.Abs(b[i]/64/a[i]-1) > 0.01 || i > 0 && a[i] <= a[i-1] {
			t.Errorf("quantiles %v with p = 1/1024, %v with 1/65536", a, b)
		}
	}
	if median := a[2] / near.Draws(); median < 0.95 || median > 1 { // draws are skewed to the right
		t.Errorf("half of the collectors take %.3f of the mean at most", median)
	}
}

// With a mean of one coupon a packet and eleven attributes 0.58 of the coupons survive, 0.85 at a third.
func TestSurvival(t *testing.T) {
	for _, c := range []struct{ total, want float64 }{{1, 0.58}, {1.0 / 3, 0.85}} {
		x := make([]float64, 11)
		for i := range x {
			x[i] = c.total / 11
		}
		if got := survivals(x)[0]; math.Abs(got-c.want) > 0.01 {
			t.Errorf("%.2f coupons a packet: %.3f survive, want %.2f", c.total, got, c.want)
		}
	}
}

// A word of one coupon has collectors of one coupon.
func TestBestOfOneCoupon(t *testing.T) {
	if c, j := best(8, .25, 1, 1); c != (Collector{M: 1, N: 1, P: 1. / 8}) || j != 3 {
		t.Errorf("%+v, 2^-%d", c, j)
	}
}
