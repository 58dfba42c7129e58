package loader

import "testing"

// A packet that waited in a queue meets a program in a window to which none came.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		counts Counts
		idle   bool
	}{
		{Counts{}, true},
		{Counts{Seen: 1}, false},
		{Counts{Queue: &QueueCounts{Queued: 1}}, true},
		{Counts{Queue: &QueueCounts{Sent: 1}}, false},
		{Counts{Queue: &QueueCounts{Dropped: 1}}, false},
		{Counts{Queue: &QueueCounts{Stale: 1}}, false},
	} {
		if got := c.counts.Idle(); got != c.idle {
			t.Errorf("%+v: idle %t, should be %t", c.counts, got, c.idle)
		}
	}
}
