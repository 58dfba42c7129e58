package ahab

import (
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
)

// TestSlow: with the times that small capacities have live, users who appear and leave have their shares, and leave them, within two seconds.
func TestSlow(t *testing.T) {
	l := newLink(t, 5, map[string]string{"capacity": "10Mbit", "tau": "800ms", "epoch": "400ms"})
	const second, end = time.Second, 11 * time.Second
	r, err := l.Run([]link.User{{Rate: 7.5e6, Until: end}, {Rate: 7.5e6, Until: end}, {Rate: 7.5e6, From: 3 * second, Until: 7 * second}}, end, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to time.Duration
		users    int
	}{{2 * second, 3 * second, 2}, {5 * second, 7 * second, 3}, {9 * second, end, 2}} {
		for n, u := range r.Users[:c.users] {
			// a coin a packet: a second of 3.3 Mbit/s are 275 packets, so the deviation is 5 %
			if got, fair := u.Rate(c.from, c.to), 10e6/float64(c.users); math.Abs(got/fair-1) > .2 {
				t.Errorf("from %v to %v user %d got %.2f Mbit/s, fair are %.2f", c.from, c.to, n, got/1e6, fair/1e6)
			}
		}
	}
}
