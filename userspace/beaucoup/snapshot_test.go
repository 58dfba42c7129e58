package beaucoup

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// alerted takes the events since the last time as a report would.
func (i *instance) alerted(t *testing.T) (alerts []Alert, vectors []vector) {
	t.Helper()
	s := snapshot.New(i.head, report.Window{})
	s.Words[counterWords], s.Words[stateWords] = make(snapshot.Words, bpf.BeaucoupBeaucoupCounterBEAUCOUP_COUNTS), make(snapshot.Words, 3)
	if err := i.collected(s, 0); err != nil {
		t.Fatal(err)
	}
	e, err := i.open(s)
	if err != nil {
		t.Fatal(err)
	}
	return e.last, e.vectors
}

// drawn is a snapshot of a host whose keys, sources 10.0.0.N, have drawn these coupons, from second 1 on; that raises an alert where there are
// enough.
func drawn(t *testing.T, set map[string]string, coupons ...uint64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, set)
	i, err := configured(v, algo.Env{Setup: algo.Setup{WindowNS: 1e9}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := &i.program.Queries[0]
	var have snapshot.Words
	counts := make([]uint64, 65)
	for n, k := range coupons {
		e := event{Time: 2e9, Age: 1e9, Coupons: k}
		e.Key[compile.WordSrcLow] = 0xffff0a000000 + uint64(n)
		if bits.OnesCount64(k) >= c.Collector.N {
			e.Alert = 1
		}
		counts[bits.OnesCount64(k)]++
		i.events = append(i.events, tagged{e, c, i.effective(c)})
	}
	alerted := slices.ContainsFunc(i.events, func(e tagged) bool { return e.Alert != 0 })
	for k := range i.events {
		i.events[k].Alert = 0 // what alerts are judged by is in the kernel
	}
	if err := i.collected(s, 0); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(s.Words[eventWords]); at += eventWidth {
		if k := s.Words[eventWords][at+3]; bits.OnesCount64(k) >= c.Collector.N {
			s.Words[eventWords][at+4] = 1
		}
	}
	if alerted {
		have = append(snapshot.Words{0}, counts...)
	}
	s.Words[haveWords] = have
	n := make(snapshot.Words, bpf.BeaucoupBeaucoupCounterBEAUCOUP_COUNTS)
	n[countPackets] = 1000
	s.Words[counterWords], s.Words[stateWords] = n, snapshot.Words{uint64(len(coupons)), 0, 0}
	return s
}

var exporting = map[string]string{"queries": "spread: count distinct dst by src > 100 in 10s", "export": "true"}

func alertsIn(r algo.Result) map[any]any {
	found := map[any]any{}
	for _, row := range r.Body.Tables[0].Rows {
		found[row[1]] = row[2]
	}
	return found
}

// Without a kernel: events become alerts with their counts.
func TestReportOfASnapshot(t *testing.T) {
	s := drawn(t, exporting, 1<<32-1, 3)
	s.Offset = 1_700_000_000e9
	r := snapshottest.Report(t, s)
	if got := alertsIn(r); len(got) != 1 || got["src=10.0.0.0"] == nil || r.Used != 1000 {
		t.Errorf("alerts %v, %d used", got, r.Used)
	}
	if when := r.Body.Tables[0].Rows[0][3]; when != "2023-11-14T22:13:22.000Z" {
		t.Errorf("when: %v", when)
	}
	snapshottest.Stands(t, s)
	names := drawn(t, map[string]string{"queries": "names: count distinct src by dns.qname > 100 in 10s", "names": "a.example"}, 1<<32-1)
	if len(names.Texts[nameTexts]) != 1 {
		t.Errorf("names %v", names.Texts)
	}
	snapshottest.Stands(t, names)
}

// A coupon is collected where any host has it: two hosts are one that drew the coupons of both, and three in any order are, too.
func TestMergedIsOneHost(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	const keys = 50
	var parts [3][]uint64
	whole := make([]uint64, keys)
	for key := range keys {
		for part := range parts {
			coupons := random.Uint64() & random.Uint64() & (1<<32 - 1)
			parts[part] = append(parts[part], coupons)
			whole[key] |= coupons
		}
	}
	var hosts [3]*snapshot.Snapshot
	for n := range hosts {
		hosts[n] = drawn(t, exporting, parts[n]...)
	}
	left := snapshottest.Merge(t, snapshottest.Merge(t, hosts[0], hosts[1]), hosts[2])
	right := snapshottest.Merge(t, hosts[2], snapshottest.Merge(t, hosts[1], hosts[0]))
	want := alertsIn(snapshottest.Report(t, drawn(t, exporting, whole...)))
	for _, merged := range []*snapshot.Snapshot{left, right} {
		r := snapshottest.Report(t, merged)
		got := alertsIn(r)
		if len(got) != len(want) || len(want) == 0 || r.Used != 3000 || snapshottest.Value(r.Body, "windows") != 3 {
			t.Errorf("%d alerts together, %d on one host; %d used", len(got), len(want), r.Used)
		}
		for key := range want {
			if got[key] == nil {
				t.Errorf("%v is not alerted together", key)
			}
		}
		for _, row := range r.Body.Tables[0].Rows {
			if row[7] != int64(3) {
				t.Errorf("%v was seen by %v hosts", row[1], row[7])
			}
		}
	}
	if a, b := snapshottest.Text(t, snapshottest.Report(t, left)), snapshottest.Text(t, snapshottest.Report(t, right)); a != b {
		t.Errorf("the order matters:\n%s\n%s", a, b)
	}
	snapshottest.Stands(t, left)
}

// Windows of a query are identified by the wall clock, whatever the hosts' own clocks.
func TestMergedByTheWallClock(t *testing.T) {
	for offset, alerts := range map[int64]int{5e9: 1, 10e9: 1, 10e9 + 1: 0} {
		a, b := drawn(t, exporting, 0x0000ffff), drawn(t, exporting, 0xffff0000)
		a.Offset, b.Offset = 1_700_000_000e9, 1_700_000_000e9+offset
		merged := snapshottest.Merge(t, a, b)
		if got := alertsIn(snapshottest.Report(t, merged)); len(got) != alerts {
			t.Errorf("%d ns apart: alerts %v", offset, got)
		}
		if merged.Offset != 0 || merged.Window.End != b.Window.End+b.Offset {
			t.Errorf("window %+v", merged.Window)
		}
	}
}

func TestSnapshotsNotMerged(t *testing.T) {
	a := drawn(t, exporting, 1)
	seeded, epoch, other := drawn(t, exporting, 1), drawn(t, exporting, 1), drawn(t, exporting, 1)
	seeded.Hashes++
	epoch.Epoch++
	other.Words[queryWords] = slices.Clone(other.Words[queryWords])
	other.Words[queryWords][5]++
	silent := drawn(t, map[string]string{"queries": exporting["queries"]}, 1)
	for what, pair := range map[string][2]*snapshot.Snapshot{"another seed": {a, seeded}, "another epoch": {a, epoch}, "another query": {a, other}, "no export": {silent, silent}} {
		if _, err := algo.Merge(pair[0], pair[1]); !errors.Is(err, algo.ErrMerge) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Queries of a snapshot have collectors that can be, and events are of queries that there are.
func TestEdges(t *testing.T) {
	s := drawn(t, exporting, 1<<32-1, 3)
	m, n := s.Words[queryWords][1], s.Words[queryWords][2]
	snapshottest.Edges(t, s,
		snapshottest.Edge{Name: queryWords, At: 1, Good: []uint64{n, 64}, Bad: []uint64{0, n - 1, 65, math.MaxUint64}},
		snapshottest.Edge{Name: queryWords, At: 2, Good: []uint64{1, m}, Bad: []uint64{0, m + 1, math.MaxUint64}},
		snapshottest.Range(queryWords, 3, leastP, 1), snapshottest.Range(queryWords, 4, leastP, 1),
		snapshottest.Edge{Name: eventWords, At: 0, Good: []uint64{0}, Bad: []uint64{1, math.MaxUint64}},
		snapshottest.Edge{Name: eventWords, At: 4, Good: []uint64{0, 1, math.MaxUint64}},
		snapshottest.Edge{Name: haveWords, At: 0, Good: []uint64{0}, Bad: []uint64{1}},
		snapshottest.Edge{Name: haveWords, At: 5, Good: []uint64{0, 1 << 40}},
		snapshottest.Edge{Name: stateWords, At: 0, Good: []uint64{0, math.MaxUint64}})
	merged := snapshottest.Merge(t, s, drawn(t, exporting, 5))
	snapshottest.Edges(t, merged, snapshottest.Edge{Name: spanWords, At: 0, Good: []uint64{0}, Bad: []uint64{1}}, snapshottest.Edge{Name: spanWords, At: 3, Good: []uint64{0, 1}})
}
