package reorder

import (
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Unobserved packets may all have been out of order, or none of them; if all were observed the bounds are the share.
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

// A prefix that has just the share that is asked for is not above it.
func TestHeavyIsAboveEpsilon(t *testing.T) {
	o := &oracle{instance: &instance{config: &config{epsilon: .01}}, byName: map[uint64]*sum{1: {n: 100, o: 1}, 2: {n: 100, o: 2}, 3: {n: 99, o: 9}}}
	if heavy := o.heavy(100); len(heavy) != 1 || heavy[2] == nil {
		t.Errorf("heavy are %v", heavy)
	}
}

// What was not watched may all have been of the prefix: the rows' bounds know of it.
func TestRowsIncludeWhatWasNotObserved(t *testing.T) {
	v, err := algo.NewValues("reorder", descriptor().Params, map[string]string{"report": "all"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	n := make(counts, bpf.ReorderReorderCounterREORDER_COUNTS)
	n[bpf.ReorderReorderCounterREORDER_PACKETS] = 200
	b := c.body(n, &tally{n: 100, o: 5}, map[uint64]*sum{0: {n: 100, o: 5, flows: map[uint32]struct{}{}}})
	row := b.Tables[0].Rows[0]
	if row[4] != 5./200 || row[5] != 105./200 {
		t.Errorf("bounds %v, want 0.025 and 0.525", row[4:6])
	}
}
