package lean

import (
	"math"
	"testing"
)

// p is the largest power of two that leaves half of the fridge in a typical delay, and never above 1.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		slots int
		want  float64
	}{{0, 2048, 1}, {10_240, 2048, 1}, {10_241, 2048, 0.5}, {58_000, 2048, 0.125}, {1e9, 2048, leastP}, {58_000, 8192, 0.5}} {
		if got := share(c.rate, c.slots); got != c.want {
			t.Errorf("%g requests a second, %d records: p = %g, want %g", c.rate, c.slots, got, c.want)
		}
	}
}

// p^-1 (1 - 1/M)^-x with x the insertions during the delay.
func TestWeight(t *testing.T) {
	c := &chance{p: 0.25, rate: 10_000, slots: 1000}
	for delay, want := range map[float64]float64{0: 4, 0.1: 4 * math.Pow(1-1.0/1000, -1000), 4: 4 * heaviest} {
		if got := c.weight(delay); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%g s: %g, want %g", delay, got, want)
		}
	}
}

// Ticks of a replay: at double distances in the first window, then every 32nd of a window and no more than one a second, always
// behind now, also long after the window's length.
func TestNextTick(t *testing.T) {
	const second = 1_000_000_000
	i := &instance{config: &config{windowNS: 64 * second}}
	for _, c := range [][2]float64{{0, 1. / 16}, {1. / 16, 1. / 8}, {0.3, 0.5}, {0.5, 1}, {1, 2}, {1.9, 2}, {2, 4}, {63, 64}, {64, 66}, {301, 302}} {
		if got := float64(i.NextTick(100, 100+int64(c[0]*second))-100) / second; got != c[1] {
			t.Errorf("after %g s: %g s, want %g s", c[0], got, c[1])
		}
	}
	i.later, i.windowNS = true, 10*second
	if got := i.NextTick(0, 0); got != second {
		t.Errorf("in a later window of 10 s: %d, want a second", got)
	}
}
