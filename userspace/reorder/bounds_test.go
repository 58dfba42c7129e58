package reorder

import "testing"

// What nobody watched may all have been out of order, or none of it; where everything was watched the bounds are the share.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		out, seen, unseen uint64
		low, high         float64
	}{{5, 100, 0, 0.05, 0.05}, {5, 100, 100, 0.025, 0.525}, {0, 0, 10, 0, 1}} {
		if low, high := bounds(c.out, c.seen, c.unseen); low != c.low || high != c.high {
			t.Errorf("%d of %d, %d not seen: %g to %g, want %g to %g", c.out, c.seen, c.unseen, low, high, c.low, c.high)
		}
	}
}
