package ahab

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
)

// jumped is a clock that is set by so much at a moment, three hours after it began.
func jumped(by, moment time.Duration) func(time.Duration) time.Duration {
	return func(at time.Duration) time.Duration {
		if at >= moment {
			at += by
		}
		return 3*time.Hour + at
	}
}

// stalled is a clock of a machine that stands still for so long from a moment on: what arrived meanwhile is looked at when it runs again.
func stalled(long, moment time.Duration) func(time.Duration) time.Duration {
	return func(at time.Duration) time.Duration {
		if at >= moment && at < moment+long {
			return moment + long
		}
		return at
	}
}

// Whatever the clock does, the capacity is used and held, the users share it, and nothing stays shut: not while a clock that was set back catches up
// (a sketch whose cells do not decay meanwhile reads ever higher rates), nor after epochs that were lost.
func TestClock(t *testing.T) {
	const moment, piece, end = 200 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond
	clocks := map[string]func(time.Duration) time.Duration{
		"8.6 ms lost": stalled(8600*time.Microsecond, moment), "30 ms lost": stalled(30*time.Millisecond, moment),
		"10 s ahead": jumped(10*time.Second, moment), "an hour ahead": jumped(time.Hour, moment), "5 ms back": jumped(-5*time.Millisecond, moment),
		"500 ms back": jumped(-500*time.Millisecond, moment), "10 s back": jumped(-10*time.Second, moment), "an hour back": jumped(-time.Hour, moment),
	}
	for name, clock := range clocks {
		for _, form := range []string{"exact", "table"} {
			t.Run(name+", "+form, func(t *testing.T) {
				l := newLink(t, 1, map[string]string{"capacity": "100Mbit", "form": form})
				l.Clock = clock
				users := make([]link.User, 4)
				for n := range users {
					users[n] = link.User{Until: time.Hour, Rate: 50e6}
				}
				r, err := l.Run(users, end, nil)
				if err != nil {
					t.Fatal(err)
				}
				most := 1.25
				if name == "30 ms lost" { // a silence of 16 epochs: what was not sent meanwhile may arrive, up to twice the capacity
					most = 1.6
				}
				for at := moment; at < end; at += piece {
					sum := 0.
					for n := range users {
						sum += r.Users[n].Rate(at, at+piece)
					}
					if sum < .75*link.Capacity || sum > most*link.Capacity {
						t.Errorf("%.1f Mbit/s pass from %v on, the capacity is 100", sum/1e6, at)
					}
				}
				for n := range users {
					if got := r.Users[n].Rate(end-2*piece, end); got < .6*link.Capacity/4 || got > 1.4*link.Capacity/4 {
						t.Errorf("user %d has %.1f Mbit/s of 25", n, got/1e6)
					}
				}
			})
		}
	}
}

// What arrives all at once after a silence finds the limit of a user with twice the capacity, and not none: bursts of a slice that is silent between
// them, as a host's aggregates are, would pass whole.
func TestBurstsAfterSilence(t *testing.T) {
	l := newLink(t, 1, map[string]string{"capacity": "100Mbit"})
	const every, long, rate, end = 50 * time.Millisecond, time.Millisecond, 8e9, time.Second
	var users []link.User
	for n := range int(end / every) {
		from := time.Duration(n) * every
		users = append(users, link.User{From: from, Until: from + long, Rate: rate})
	}
	r, err := l.Run(users, end, nil)
	if err != nil {
		t.Fatal(err)
	}
	// b bytes within a fraction of tau read as b / tau: all pass until that is the limit T, then T tau / b of them, T tau (1 + ln(b / (T tau))) in all
	const most = 1.3 * 2 * link.Capacity / 8 * .004 * 3.3
	for n, u := range r.Users[1:] {
		if n == 0 { // users who appear one at a time have the slice for themselves, and what its ceiling keeps, until a second one has been seen
			continue
		}
		passed := 0.
		for _, b := range u.Passed {
			passed += b
		}
		if passed > most {
			t.Errorf("%.0f of %.0f bytes of burst %d pass, want %.0f at most", passed, rate/8*long.Seconds(), n+1, float64(most))
		}
	}
}
