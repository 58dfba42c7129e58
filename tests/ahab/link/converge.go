package link

import (
	"math"
	"time"
)

// Departures is figure 6.8: four users of 100 Mbit/s each share 100 Mbit/s; they appear one by one and leave in the opposite order.
type Departures struct {
	Users  []User
	Events []Event
	End    time.Duration
}

// Event is a moment at which the fair share changes: a user appears or leaves.
type Event struct {
	At     time.Duration
	Users  int // from then on
	Leaves bool
	Until  time.Duration // of the next event
}

const (
	// Capacity of the slice, and rate of each user, in bits a second.
	Capacity = 100e6
	phase    = 100 * time.Millisecond
)

// NewDepartures makes one; departures are offset later, so that they fall on all parts of an epoch.
func NewDepartures(offset time.Duration) Departures {
	d := Departures{End: 7 * phase}
	for n := range 4 {
		from, until := time.Duration(n)*phase, time.Duration(7-n)*phase+offset
		if n == 0 {
			until = d.End
		}
		d.Users = append(d.Users, User{From: from, Until: until, Rate: Capacity})
		if n == 0 {
			continue
		}
		d.Events = append(d.Events, Event{At: from, Users: n + 1, Until: from + phase},
			Event{At: until, Users: n, Leaves: true, Until: time.Duration(8-n)*phase - phase/10})
	}
	return d
}

// Settled is the time from an event until the limit of the first slice is first within a tenth of the fair share; +Inf when it never is
// before the next event. A limit above the capacity is none. full is the limit of a user with all of the capacity.
func (e Event) Settled(r *Result, full float64) float64 {
	for at := e.At; at < e.Until; at += Glance {
		if math.Abs(e.deviation(r, at, full)) < 0.1 {
			return (at - e.At).Seconds()
		}
	}
	return math.Inf(1)
}

func (e Event) deviation(r *Result, at time.Duration, full float64) float64 {
	return min(1, float64(r.LimitAt(1, at))/full)*float64(e.Users) - 1
}

// Jitter is the root of the mean square of the limit's relative deviation from the fair share, in the second half of the time
// until the next event.
func (e Event) Jitter(r *Result, full float64) float64 {
	sum, n := 0.0, 0
	for at := (e.At + e.Until) / 2; at < e.Until; at += Step {
		d := e.deviation(r, at, full)
		sum, n = sum+d*d, n+1
	}
	return math.Sqrt(sum / float64(n))
}
