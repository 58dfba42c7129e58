package expect

import "testing"

// What could not be compared widens the bounds of a share.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		events, compared, examined uint64
		share, low, high           float64
	}{{5, 80, 100, 5. / 80, .05, .25}, {0, 1, 4, 0, 0, .75}, {90, 80, 80, 1, 1, 1}, {1, 4, 2, .25, .25, .25}} {
		if share, low, high := Share(c.events, c.compared, c.examined); share != c.share || low != c.low || high != c.high {
			t.Errorf("%d of %d, of %d: %v (%v .. %v)", c.events, c.compared, c.examined, share, low, high)
		}
	}
}
