package reorder

import (
	"errors"
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// reported is a snapshot of records, all of which were reported, among as many packets.
func reported(t *testing.T, packets uint64, records ...record) *snapshot.Snapshot {
	t.Helper()
	s, _ := snapshottest.New(t, Name, nil)
	c, f := make(snapshot.Words, bpf.ReorderReorderCounterREORDER_COUNTS), flows{}
	c[bpf.ReorderReorderCounterREORDER_PACKETS] = packets
	for _, r := range records {
		f.add(r)
		c[bpf.ReorderReorderCounterREORDER_COMPARED] += r.n
		c[bpf.ReorderReorderCounterREORDER_OUT] += r.o
	}
	s.Words[counterWords], s.Words[tornWords], s.Words[flowWords] = c, snapshot.Words{1}, f.words()
	return s
}

var (
	one   = record{prefix: 0x0a000000, signature: 1, n: 20, o: 3}
	again = record{prefix: 0x0a000000, signature: 1, n: 30, o: 1}
	other = record{prefix: 0x0a000100, signature: 2, n: 40, o: 2}
)

// Without a kernel: reports become prefixes.
func TestReportOfASnapshot(t *testing.T) {
	s := reported(t, 100, one, again, other)
	r := snapshottest.Report(t, s)
	rows := r.Body.Tables[0].Rows
	if len(rows) != 2 || rows[0][0] != "10.0.0.0/24" || rows[0][1] != uint64(50) || rows[0][2] != uint64(4) || rows[0][6] != uint64(1) || rows[0][7] != uint64(2) {
		t.Errorf("prefixes %v", rows)
	}
	if r.Used != 100 || r.Lost["torn"] != 1 || r.Lost["not_watched"] != 10 || snapshottest.Value(r.Body, "reports") != 3 {
		t.Errorf("%d used, lost %v", r.Used, r.Lost)
	}
	snapshottest.Stands(t, s)
}

// Hosts that see different flows are one that sees them all.
func TestMerged(t *testing.T) {
	merged := snapshottest.Merge(t, reported(t, 60, one, again), reported(t, 40, other))
	whole := reported(t, 100, one, again, other)
	whole.Words[tornWords] = snapshot.Words{2}
	if got, want := snapshottest.Text(t, snapshottest.Report(t, merged)), snapshottest.Text(t, snapshottest.Report(t, whole)); got != want {
		t.Errorf("merged\n%s\nwant\n%s", got, want)
	}
	snapshottest.Stands(t, merged)
	strange := reported(t, 1)
	strange.Params["T"] = "1s"
	if _, err := algo.Merge(merged, strange); !errors.Is(err, algo.ErrMerge) {
		t.Errorf("another T: %v", err)
	}
}

// A row's contents are bounded, so that no sum of rows wraps.
func TestEdges(t *testing.T) {
	var edges []snapshottest.Edge
	for at := range flowWidth {
		switch at {
		case 0: // a prefix is any
		case 1:
			edges = append(edges, snapshottest.Edge{Name: flowWords, At: at, Good: []uint64{0, math.MaxUint32}, Bad: []uint64{math.MaxUint32 + 1}})
		default:
			edges = append(edges, snapshottest.Edge{Name: flowWords, At: at, Good: []uint64{0, mostCounted}, Bad: []uint64{mostCounted + 1, math.MaxUint64}})
		}
	}
	snapshottest.Edges(t, reported(t, 100, one, again, other), edges...)
}
