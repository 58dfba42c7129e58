package lean

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Of the events of a flow each is missed with some probability: the bound holds them all in 95 of 100 cases, whatever their number.
func TestUpper(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0.02, 0.1, 0.5, 0.8} {
		for _, events := range []int{1, 2, 5, 20, 200} {
			held, drawn := 0, 0
			for range 2000 {
				seen := 0
				for range events {
					if rng.Float64() >= share {
						seen++
					}
				}
				if seen == 0 {
					continue // such a flow is not in the list
				}
				drawn++
				if expect.Upper(float64(seen), share) >= float64(events) {
					held++
				}
			}
			if float64(held) < 0.95*float64(drawn) {
				t.Errorf("%d events, %.2f missed: held in %d of %d", events, share, held, drawn)
			}
		}
	}
	if got := expect.Upper(7, 0); got != 7 {
		t.Errorf("nothing is missed, but the bound of 7 is %g", got)
	}
}

// Of the events that were counted some are none: the bound is below what is left in 95 of 100 cases, and is no less than it has to be.
func TestLower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0.01, 0.1, 0.5, 0.9} {
		for _, seen := range []int{1, 2, 5, 20, 200} {
			held, bound := 0, expect.Lower(float64(seen), share)
			for range 2000 {
				events := 0
				for range seen {
					if rng.Float64() >= share {
						events++
					}
				}
				if bound <= float64(events) {
					held++
				}
			}
			if held < 1900 {
				t.Errorf("%d seen, %.2f are none: held in %d of 2000", seen, share, held)
			}
			if least := float64(seen)*(1-share) - 4*math.Sqrt(float64(seen)*share*(1-share)) - 1; bound < least {
				t.Errorf("%d seen, %.2f are none: %g, want %g or more", seen, share, bound, least)
			}
		}
	}
	if got := expect.Lower(7, 0); got != 7 {
		t.Errorf("all are events, but the bound of 7 is %g", got)
	}
}

// What a delay adds to the sketch is taken apart to the delay and its weight.
func TestSplit(t *testing.T) {
	for _, c := range []*chance{{p: 1, slots: 2048}, {p: 1, rate: 5000, slots: 2048}, {p: 1.0 / 8, rate: 20000, slots: 2048}} {
		for _, delay := range []float64{1, 12, 3000, 30000} {
			want := c.weight(delay * latencyTick / 1e9)
			ticks, weight := c.split(delay * want)
			if math.Abs(ticks/delay-1) > 0.02 || math.Abs(weight/want-1) > 0.02 {
				t.Errorf("p %g, %g insertions a second: %g ticks of weight %g, want %g of %g", c.p, c.rate, ticks, weight, delay, want)
			}
		}
	}
}

// TestShareOfAll: what could not be compared widens the bounds of a share, and nothing is claimed of nothing.
func TestShareOfAll(t *testing.T) {
	v := affected("x", 5, 80, 100, "help")
	if v.Value != 5./80 || v.Low != .05 || v.High != .25 || v.Promise != report.Bound {
		t.Errorf("5 of 80, of 100: %v (%v .. %v)", v.Value, v.Low, v.High)
	}
	if v := affected("x", 90, 80, 80, "help"); v.Value != 1. || v.Low != 1. || v.High != 1. {
		t.Errorf("more events than packets: %v (%v .. %v)", v.Value, v.Low, v.High)
	}
	if v := affected("x", 0, 0, 100, "help"); !math.IsNaN(v.Value.(float64)) || v.Low != nil || v.High != nil {
		t.Errorf("nothing compared: %v (%v .. %v)", v.Value, v.Low, v.High)
	}
}
