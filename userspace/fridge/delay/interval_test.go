package delay

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// What is hidden counts as blind when it is more than the interval allows for, six or more, and more than a fiftieth of the count; not when it is as much.
func TestBlind(t *testing.T) {
	for _, c := range []struct {
		seen, most float64
		blind      bool
	}{{10, 16, false}, {10, 17, true}, {10, 0, true}, {1000, 1020, false}, {1000, 1021, true}, {2, 0, false}} {
		s := NewSpectrum(NewScale(5, 1000, false))
		s.Predicted = make([]float64, len(s.Mass))
		slow := s.Scale.Bin(1e9)
		for bin := range s.Predicted {
			s.Predicted[bin] = 1
			if bin >= slow {
				s.Predicted[bin] = 1000
			}
		}
		s.Mass[slow-1], s.Raw[slow-1], s.Most = c.seen, c.seen, c.most
		if got := s.Blind(); got != c.blind {
			hidden, _ := s.tail()
			t.Errorf("%g values, %g at most: blind %v for %g that are hidden", c.seen, c.most, got, hidden)
		}
		if e := s.CountBounds(); (e.Promise == report.Bound) != c.blind || c.blind && e.High != max(c.most, c.seen) {
			t.Errorf("%g values, %g at most: %+v", c.seen, c.most, e)
		}
		s.Mass[slow-1], s.Raw[slow-1] = 0, 0
		s.Mass[0], s.Raw[0] = c.seen, c.seen
		if s.Blind() {
			t.Errorf("%g quick values: blind, where none are slow", c.seen)
		}
	}
}
