package hhh

import (
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// drawnOf is a snapshot of random prefixes: so many packets of 10.0.0.0/8, of which those in entries of level 1 are given.
func drawnOf(t *testing.T, packets uint64, entries float64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, map[string]string{"dimension": "src", "family": "4", "method": "random-prefix"})
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	words := make(snapshot.Words, bpf.HhhHhhCounterHHH_COUNTS)
	words[bpf.HhhHhhCounterHHH_PACKETS], words[bpf.HhhHhhCounterHHH_IPV4] = packets, packets
	s.Words[counterWords] = words
	key := heavy.Key{0x0a000000<<32 | 1, 1 | 1<<8}
	if p := c.prefixOf(key); p.String() != "10.0.0.0/8" {
		t.Fatalf("the key is of %s", p)
	}
	table := &heavy.Table{Counts: map[heavy.Key]float64{}, Records: 1, Entries: 16, Unseen: 12, Minimum: 3, Initial: 100}
	if entries > 0 {
		table.Counts[key] = entries
	}
	table.Into(s)
	return s
}

func stackedOf(t *testing.T, n uint64) *snapshot.Snapshot {
	t.Helper()
	s, _ := snapshottest.New(t, Name, map[string]string{"dimension": "src", "method": "stacking"})
	words := make(snapshot.Words, bpf.HhhHhhCounterHHH_COUNTS)
	words[bpf.HhhHhhCounterHHH_PACKETS], words[bpf.HhhHhhCounterHHH_IPV4] = n, n
	s.Words[counterWords] = words
	l := &levels{counts: map[node]uint64{}, records: 1, smallest: 150}
	l.counts[node{0x0a << 56, 8}], l.counts[node{0x0a01 << 48, 16}] = n, n-1
	l.into(s)
	return s
}

func rowOf(t *testing.T, s *snapshot.Snapshot, prefix string) []any {
	t.Helper()
	for _, row := range snapshottest.Report(t, s).Body.Tables[0].Rows {
		if row[0] == prefix {
			return row
		}
	}
	t.Fatalf("%s is not listed", prefix)
	return nil
}

// Without a kernel: entries of drawn levels, and of stacked ones, become prefixes.
func TestReportOfASnapshot(t *testing.T) {
	s := drawnOf(t, 40000, 9000)
	if row := rowOf(t, s, "10.0.0.0/8"); row[1] != 36000.0 {
		t.Errorf("%v, want 4 levels times 9000", row)
	}
	snapshottest.Stands(t, s)
	s = stackedOf(t, 50000)
	if row := rowOf(t, s, "10.1.0.0/16"); row[1] != 49999.0 {
		t.Errorf("%v, want 49999", row)
	}
	snapshottest.Stands(t, s)
}

// Counts of two hosts add up, and bounds: a host without an entry may have overlooked what a flow without one can have.
func TestMerged(t *testing.T) {
	a, b := drawnOf(t, 40000, 9000), drawnOf(t, 10000, 0)
	b.Hashes++
	row, alone := rowOf(t, snapshottest.Merge(t, a, b), "10.0.0.0/8"), rowOf(t, a, "10.0.0.0/8")
	if row[1] != 36000.0 || row[6].(float64) < alone[6].(float64)+4*12 {
		t.Errorf("%v, alone %v", row, alone)
	}
	a, b = stackedOf(t, 50000), stackedOf(t, 30000)
	merged := snapshottest.Merge(t, a, b)
	row, alone = rowOf(t, merged, "10.1.0.0/16"), rowOf(t, a, "10.1.0.0/16")
	if row[1] != 79998.0 || row[6].(float64)-79998 <= alone[6].(float64)-49999 {
		t.Errorf("%v, alone %v", row, alone)
	}
	snapshottest.Stands(t, merged)
}

// Prefixes have the length of a level, no bits after it, and counts whose sums do not wrap.
func TestEdges(t *testing.T) {
	s := stackedOf(t, 50000)
	first, second := 0x0a<<56, uint64(0x0a01<<48)
	snapshottest.Edges(t, s,
		snapshottest.Range(stackWords, 0, 0, mostCounted), snapshottest.Range(stackWords, 1, 0, mostCounted),
		snapshottest.Edge{Name: nodeWords, At: 0, Good: []uint64{0, uint64(first), 0xff << 56}, Bad: []uint64{uint64(first) | 1, uint64(first) | 1<<55}},
		snapshottest.Edge{Name: nodeWords, At: 3, Good: []uint64{second, 0xffff << 48}, Bad: []uint64{second | 1<<47}},
		snapshottest.Edge{Name: nodeWords, At: 1, Good: []uint64{8, 16, 32}, Bad: []uint64{0, 7, 9, 31, 40, 128, 1 << 40}},
		snapshottest.Edge{Name: nodeWords, At: 2, Good: []uint64{0, mostCounted}, Bad: []uint64{mostCounted + 1}},
		snapshottest.Edge{Name: nodeWords, At: 5, Good: []uint64{0, mostCounted}, Bad: []uint64{mostCounted + 1}})
}
