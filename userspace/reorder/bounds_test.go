package reorder

import (
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Unobserved packets may all have been out of order, or none of them; if all were observed the bounds are the share.
func TestHardBounds(t *testing.T) {
	for _, c := range []struct {
		out, seen, unseen uint64
		low, high         float64
	}{{5, 100, 0, 0.05, 0.05}, {5, 100, 100, 0.025, 0.525}, {0, 0, 10, 0, 1}} {
		if low, high := hard(c.out, c.seen, c.unseen); low != c.low || high != c.high {
			t.Errorf("%d of %d, %d not seen: %g to %g, want %g to %g", c.out, c.seen, c.unseen, low, high, c.low, c.high)
		}
	}
}

// What is assumed of unobserved packets never widens a bound, and says nothing where all were observed, or none. Where many were, a few unobserved ones
// count for eight times their share, and not for all of them.
func TestBoundsAreInside(t *testing.T) {
	c := &config{all: true}
	for _, seen := range []uint64{0, 1, 30, 1000, 1e6} {
		for _, out := range []uint64{0, seen / 100, seen / 2, seen} {
			for _, unseen := range []uint64{0, 1, 500, 1e6} {
				least, most := hard(out, seen, unseen)
				low, high := bounds(out, seen, unseen)
				if seen+unseen > 0 && !(low == least && high <= most && low <= high) {
					t.Errorf("%d of %d, %d not seen: %g to %g, hard %g to %g", out, seen, unseen, low, high, least, most)
				}
				low, high = c.rowBounds(out, seen, unseen, float64(unseen)/1e6)
				if seen+unseen > 0 && !(low >= least && high <= most && low <= high) {
					t.Errorf("row of %d of %d, %d not seen: %g to %g, hard %g to %g", out, seen, unseen, low, high, least, most)
				}
			}
		}
	}
	if _, high := bounds(1000, 100_000, 10_000); high < 0.0169 || high > 0.0171 { // (1000 + 8 x 1092 / 10) / 110000
		t.Errorf("of 100,000 packets 1,000 are out of order, 10,000 were not seen: %g at most", high)
	}
}

// Rows of report=all have bounds of the prefix's own share; those of reports with reordering only are too large for their prefix, and nothing is
// assumed.
func TestRowBounds(t *testing.T) {
	c := &config{all: true}
	if low, high := c.rowBounds(100, 1000, 1e6, 0.1); low < 0.053 || low > 0.055 || high < 0.263 || high > 0.265 {
		t.Errorf("100 of 1,000 packets of a prefix: %g to %g", low, high)
	}
	c.all = false
	low, high := c.rowBounds(100, 1000, 1e6, 0.1)
	if least, most := hard(100, 1000, 1e6); low != least || high != most {
		t.Errorf("without report=all: %g to %g, want %g to %g", low, high, least, most)
	}
}

// A prefix that has just the share that is asked for is not above it.
func TestHeavyIsAboveEpsilon(t *testing.T) {
	o := &oracle{instance: &instance{config: &config{epsilon: .01}}, byName: map[uint64]*sum{1: {n: 100, o: 1}, 2: {n: 100, o: 2}, 3: {n: 99, o: 9}}}
	if heavy := o.heavy(100); len(heavy) != 1 || heavy[2] == nil {
		t.Errorf("heavy are %v", heavy)
	}
}

// What was not watched may all have been of the prefix: the rows' bounds know of it, and are narrower where all records are reported.
func TestRowsIncludeWhatWasNotObserved(t *testing.T) {
	for reports, want := range map[string][2]float64{"reorder": {5. / 200, 105. / 200}, "all": {5. / 200, 0.32267}} {
		v, err := algo.NewValues("reorder", descriptor().Params, map[string]string{"report": reports})
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
		if low, high := row[4].(float64), row[5].(float64); low != want[0] || math.Abs(high-want[1]) > 1e-4 {
			t.Errorf("report=%s: bounds %g and %g, want %v", reports, low, high, want)
		}
	}
}
