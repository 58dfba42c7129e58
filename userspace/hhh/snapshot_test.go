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
	s, v := snapshottest.New(t, Name, map[string]string{"dimension": "src", "family": "4", "method": "random-prefix", "exact8": "off"})
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

// wholeOf is a snapshot of whole addresses: 10.1.1.1 with so many packets, of which the first 21 may be of others, and 10.1.2.2 with 400 exactly.
func wholeOf(t *testing.T, n float64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, map[string]string{"family": "4", "method": "whole", "level": "bit"})
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	words := make(snapshot.Words, bpf.HhhHhhCounterHHH_COUNTS)
	words[bpf.HhhHhhCounterHHH_PACKETS], words[bpf.HhhHhhCounterHHH_IPV4] = uint64(n)+500, uint64(n)+500
	s.Words[counterWords] = words
	first := make(snapshot.Words, c.firsts())
	first[10], first[11] = uint64(n)+400, 100
	s.Words[firstWords] = first
	of := func(address uint64) heavy.Key { return heavy.Key{address<<32 | 1, 1 | 32<<8} }
	table := &heavy.Table{Counts: map[heavy.Key]float64{of(0x0a010202): 400}, Guesses: map[heavy.Key]heavy.Guess{of(0x0a010202): heavy.Unnoted(1, 1)},
		Records: 2, Entries: 16, Minimum: 3}
	table.Counts[of(0x0a010101)], table.Guesses[of(0x0a010101)] = n, heavy.Unnoted(21, 21)
	table.Into(s)
	return s
}

// Whole addresses add up to prefixes of any length; those of 8 bits or less are exact, and so are addresses that never shared an entry.
func TestReportOfWholeKeys(t *testing.T) {
	s := wholeOf(t, 10000)
	for _, c := range []struct {
		prefix                    string
		packets, low, conditioned float64
	}{{"10.1.1.1/32", 10000, 9960, 10000}, {"10.1.2.2/32", 400, 400, 400}} {
		row := rowOf(t, s, c.prefix)
		if row[1] != c.packets || row[2] != c.conditioned || row[5].(float64) < c.low || row[5].(float64) > c.packets {
			t.Errorf("%v, want %+v", row, c)
		}
	}
	snapshottest.Stands(t, s)
	merged := snapshottest.Merge(t, s, wholeOf(t, 3000))
	if row := rowOf(t, merged, "10.1.1.1/32"); row[1] != 13000.0 || row[6].(float64) <= 13000 {
		t.Errorf("two hosts: %v", row)
	}
	snapshottest.Stands(t, merged)
	snapshottest.Edges(t, s, snapshottest.Edge{Name: firstWords, At: 10, Good: []uint64{0, mostCounted}, Bad: []uint64{mostCounted + 1}})
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
