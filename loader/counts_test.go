package loader

import "testing"

// A packet that leaves a queue in a window without arrivals makes the window not idle.
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

// Packets that were neither sent nor dropped are missed, except for the queue's backlog when it is read: packets that left between the end of
// a window and that moment were queued at the end.
func TestSettle(t *testing.T) {
	counts := func(carried, sent, dropped uint64) QueueCounts {
		return QueueCounts{Carried: carried, CarriedBytes: 100 * carried, Sent: sent, SentBytes: 100 * sent, Dropped: dropped, DroppedBytes: 100 * dropped}
	}
	for _, c := range []struct {
		name           string
		all, later     QueueCounts
		backlog        uint64
		queued, missed uint64
	}{
		{"nothing is under way", counts(10, 9, 1), counts(0, 0, 0), 0, 0, 0},
		{"all are queued", counts(10, 4, 1), counts(0, 0, 0), 500, 5, 0},
		{"all are missed", counts(10, 4, 1), counts(0, 0, 0), 0, 0, 5},
		{"some of either", counts(10, 4, 1), counts(0, 0, 0), 300, 3, 2},
		{"they left since", counts(10, 4, 1), counts(0, 5, 0), 0, 5, 0},
		{"some left since, others arrived", counts(10, 4, 1), counts(7, 5, 1), 600, 5, 0},
		{"two were missed, others arrived and left", counts(10, 4, 1), counts(7, 4, 0), 600, 3, 2},
		{"missed since, which is not this window's", counts(10, 8, 1), counts(9, 5, 0), 0, 0, 1},
		{"more left than arrived", counts(10, 11, 0), counts(0, 0, 0), 0, 0, 0},
	} {
		q := QueueCounts{}
		q.settle(c.all, c.later, c.backlog)
		if q.Queued != c.queued || q.Missed != c.missed {
			t.Errorf("%s: %d queued and %d missed, want %d and %d", c.name, q.Queued, q.Missed, c.queued, c.missed)
		}
	}
}
