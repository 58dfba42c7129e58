package precision

import (
	"errors"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/precision"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// held is a snapshot of entries that were there from their first packet on: flow n, from 1, with these packets.
func held(t *testing.T, unseen float64, packets ...float64) *snapshot.Snapshot {
	t.Helper()
	s, _ := snapshottest.New(t, Name, map[string]string{"key": "src", "family": "4"})
	c := make(snapshot.Words, bpf.PrecisionPrecisionCounterPRECISION_COUNTS)
	table := &heavy.Table{Counts: map[heavy.Key]float64{}, Unseen: unseen, Minimum: 10, Entries: 16, Initial: 1}
	for n, x := range packets {
		if x > 0 {
			table.Counts[heavy.Key{uint64(0x0a000000+n+1)<<32 | 1}] = x
			table.Records++
			c[bpf.PrecisionPrecisionCounterPRECISION_PACKETS] += uint64(x)
			c[bpf.PrecisionPrecisionCounterPRECISION_UNITS] += uint64(x)
		}
	}
	s.Words[counterWords] = c
	table.Into(s)
	return s
}

// Without a kernel: entries become flows.
func TestReportOfASnapshot(t *testing.T) {
	s := held(t, 30, 100, 0, 400)
	r := snapshottest.Report(t, s)
	rows := r.Body.Tables[0].Rows
	if len(rows) != 2 || rows[0][0] != "10.0.0.3" || rows[0][1] != 400.0 || rows[1][0] != "10.0.0.1" || r.Used != 500 || snapshottest.Value(r.Body, "unseen_below") != 30 {
		t.Errorf("%v, %d used", rows, r.Used)
	}
	snapshottest.Stands(t, s)
}

// Counts of two hosts add up; where one has no entry the interval reaches as far as it may have overlooked.
func TestMerged(t *testing.T) {
	a, b := held(t, 30, 100, 0, 400), held(t, 20, 300, 70)
	b.Hashes++ // keys are whole: seeds do not matter
	merged := snapshottest.Merge(t, a, b)
	r := snapshottest.Report(t, merged)
	rows := r.Body.Tables[0].Rows
	high := len(r.Body.Tables[0].Columns) - 1
	alone := snapshottest.Report(t, a).Body.Tables[0].Rows
	for n, want := range []struct {
		src   string
		count float64
	}{{"10.0.0.1", 400}, {"10.0.0.3", 400}, {"10.0.0.2", 70}} {
		if rows[n][0] != want.src || rows[n][1] != want.count {
			t.Errorf("row %d: %v, want %v", n, rows[n], want)
		}
	}
	if got, want := rows[1][high].(float64), alone[0][high].(float64)+20; got != want {
		t.Errorf("10.0.0.3 has up to %g, want %g", got, want)
	}
	if r.Used != 870 || snapshottest.Value(r.Body, "total") != 870 || snapshottest.Value(r.Body, "unseen_below") != 50 {
		t.Errorf("%d used, %v", r.Used, r.Body.Values)
	}
	snapshottest.Stands(t, merged)
	strange := held(t, 1, 1)
	strange.Params["key"] = "dst"
	if _, err := algo.Merge(a, strange); !errors.Is(err, algo.ErrMerge) {
		t.Errorf("another key: %v", err)
	}
}

// Agents of a version read each other's snapshots by this number: it increases with every change of their contents, and with nothing else.
func TestLayout(t *testing.T) {
	if s, _ := snapshottest.New(t, Name, nil); s.Layout != 1 {
		t.Errorf("layout %d: are snapshots of before not read any more?", s.Layout)
	}
}

// Packets without an entry are taken to be as large as the rest, and a second pass counts as refused if it was requested and did not return.
func TestCounts(t *testing.T) {
	for _, c := range []struct{ packets, matched, units, admitted, written, refused uint64 }{
		{}, {100, 75, 1000, 9, 4, 5}, {100, 0, 1000, 4, 4, 0}, {100, 100, 1000, 4, 9, 0}, {100, 130, 1000, 1, 0, 1},
	} {
		n := make(counts, bpf.PrecisionPrecisionCounterPRECISION_COUNTS)
		n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS], n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED] = c.packets, c.matched
		n[bpf.PrecisionPrecisionCounterPRECISION_UNITS] = c.units
		n[bpf.PrecisionPrecisionCounterPRECISION_ADMITTED], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN] = c.admitted, c.written
		if got, want := n.unmatched(), float64(c.units)*max(0, 1-float64(c.matched)/max(1, float64(c.packets))); got != want || n.refused() != c.refused {
			t.Errorf("%+v: %g unmatched, want %g; %d refused", c, got, want, n.refused())
		}
	}
}
