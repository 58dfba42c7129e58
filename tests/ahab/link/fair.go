package link

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Rising are users of 10, 20, 30 ... Mbit/s (figure 6.11).
func Rising(n int) []User {
	users := make([]User, n)
	for i := range users {
		users[i] = User{Until: time.Hour, Rate: float64(i+1) * 10e6}
	}
	return users
}

// MaxMin is what each user gets of a capacity when it is shared fairly, in bits a second.
func MaxMin(users []User, capacity float64) []float64 {
	rates := make([]float64, len(users))
	for i, u := range users {
		rates[i] = u.Rate
	}
	sorted := slices.Sorted(slices.Values(rates))
	limit, left := capacity, capacity
	for i, r := range sorted {
		limit = left / float64(len(sorted)-i)
		if r > limit {
			break
		}
		left -= r
	}
	for i := range rates {
		rates[i] = min(rates[i], limit)
	}
	return rates
}

// End ends a window at a time.
func (l *Link) End(at time.Duration) (algo.Result, error) {
	bank, err := l.inst.Control().Flip()
	if err != nil {
		return algo.Result{}, fmt.Errorf("end window: %w", err)
	}
	return algo.Window(l.Algorithm, report.Window{Start: traffic.Start, End: traffic.Start + int64(at)}, bank)
}
