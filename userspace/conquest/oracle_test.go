package conquest

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// TestFigure52: the queue of figure 5.2. Packets leave one a unit of time from 0 on; the packet of flow C that arrived at 2 and leaves at 8 has
// three of its own among those that left in [2, 8).
func TestFigure52(t *testing.T) {
	q := NewContents()
	flow := func(name byte) heavy.Key { return heavy.Key{uint64(name)} }
	for at, name := range []byte("ACCBACBC") {
		q.Depart(flow(name), int64(at), 1)
	}
	if size, total := q.Share(flow('C'), 2, 8); size != 3 || total != 6 {
		t.Errorf("%d of %d, want 3 of 6", size, total)
	}
	if size, total := q.Share(flow('X'), 0, 8); size != 0 || total != 8 {
		t.Errorf("a stranger has %d of %d", size, total)
	}
}

// What is forgotten is not asked for any more, and the rest stays as it was.
func TestForget(t *testing.T) {
	q := NewContents()
	q.Depart(heavy.Key{9}, 0, 1) // long ago
	for i := range int64(5000) {
		q.Depart(heavy.Key{uint64(i % 3)}, i, 2)
	}
	before, all := q.Share(heavy.Key{1}, 4000, 5000)
	q.Forget(3500)
	if size, total := q.Share(heavy.Key{1}, 4000, 5000); size != before || total != all || total != 2000 {
		t.Errorf("%d of %d, were %d of %d", size, total, before, all)
	}
	if len(q.flows) != 3 || len(q.all.times) > 2000 {
		t.Errorf("%d flows, %d departures are stored", len(q.flows), len(q.all.times))
	}
}

// The model's queue is first in, first out, and drops what it has no room for.
func TestModel(t *testing.T) {
	m := NewModel(8e9, 3000) // a byte a ns
	for i, c := range []struct {
		at     int64
		length uint32
		want   Passage
	}{
		{100, 1000, Passage{Arrival: 100, Departure: 100}},
		{100, 1000, Passage{Arrival: 100, Departure: 1100}},
		{600, 1000, Passage{Arrival: 600, Departure: 2100}},
		{600, 1000, Passage{Arrival: 600, Dropped: true}},
		{600, 500, Passage{Arrival: 600, Departure: 3100}},
		{9000, 1, Passage{Arrival: 9000, Departure: 9000}},
	} {
		if got := m.Pass(c.at, c.length); got != c.want {
			t.Errorf("packet %d: %+v, want %+v", i, got, c.want)
		}
	}
}
