package fridge

import (
	"errors"
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// counted is a snapshot of n samples at each of some delays in ns, that survived nothing, in the first fridge and, with groups, of group 10.0.0.0/24 in
// row 1 and of 10.0.9.0/24 in row 2 by turns.
func counted(t *testing.T, set map[string]string, n uint64, requests uint64, delays ...float64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, set)
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	newPast(len(c.parts)).into(s, []uint64{1})
	sizes := c.sizes()
	for _, name := range c.arrays() {
		s.Words[name] = make(snapshot.Words, max(sizes[name], 1))
	}
	k := make(snapshot.Words, bpf.FridgeFridgeCounterFRIDGE_COUNTS)
	answered := n * uint64(len(delays))
	k[bpf.FridgeFridgeCounterFRIDGE_REQUESTS], k[bpf.FridgeFridgeCounterFRIDGE_RESPONSES] = requests, answered
	k[bpf.FridgeFridgeCounterFRIDGE_MATCHED], k[bpf.FridgeFridgeCounterFRIDGE_INSERTED] = answered, requests
	k[bpf.FridgeFridgeCounterFRIDGE_INSERTED_BY] = requests
	s.Words["fridge_counters"] = k
	for i, d := range delays {
		row := 0
		if c.grouped() {
			row = 1 + i%2
			s.Words["fridge_groups"][row] = []uint64{0, group.KeyIPv4<<60 | 0x0a000000, group.KeyIPv4<<60 | 0x0a000900}[row]
		}
		cell := row*len(c.parts)*c.plane() + c.scale().Bin(d)
		if c.table {
			s.Words["fridge_hist"][cell] += n * weightOne
			s.Words["fridge_hits"][cell] += n << 36
			continue
		}
		s.Words["fridge_hist"][cell] += n << 36
		if c.rules.Finals {
			s.Words["fridge_hist"][cell+len(c.parts)*c.plane()] += n << 36
			s.Words["fridge_second"][cell] += n << 36
		}
	}
	return s
}

func delayOf(t *testing.T, s *snapshot.Snapshot) report.Distribution {
	t.Helper()
	return find(t, snapshottest.Report(t, s).Body, "delay_ns")
}

// Without a kernel: cells become a corrected distribution.
func TestReportOfASnapshot(t *testing.T) {
	s := counted(t, nil, 50, 160, 1e6, 2e6, 4e6)
	d := delayOf(t, s)
	if math.Abs(d.Count-150) > 0.01 || math.Abs(d.Quantiles[0].Value/2e6-1) > 0.03 {
		t.Errorf("%g values, median %g", d.Count, d.Quantiles[0].Value)
	}
	r := snapshottest.Report(t, s)
	if r.Used != 310 || snapshottest.Value(r.Body, "matched") != 150 {
		t.Errorf("%d used", r.Used)
	}
	for _, set := range shapes[:4] {
		snapshottest.Stands(t, counted(t, set, 50, 160, 1e6, 2e6, 4e6))
	}
}

var shapes = []map[string]string{nil, {"fridges": "4096@1/2,4096@1/64"}, {"group": "src/24"}, {"match": "tcp-duration"}, {"legs": "false", "counter": "inferred"},
	{"correction": "table", "legs": "false"}}

// Estimates of two hosts are corrected by their own rates, and add up; variances do, too.
func TestMergedIsTheSum(t *testing.T) {
	for _, set := range shapes {
		a, b := counted(t, set, 500, 1600, 1e6, 2e6, 4e6), counted(t, set, 300, 900, 8e6, 16e6)
		b.Hashes++ // seeds do not matter
		merged := snapshottest.Merge(t, a, b)
		whole, one, other := delayOf(t, merged), delayOf(t, a), delayOf(t, b)
		if sum := one.Count + other.Count; math.Abs(whole.Count-sum) > 1e-6*sum || math.Abs(whole.Sum-one.Sum-other.Sum) > 1e-6*whole.Sum {
			t.Errorf("%v: %g values together, %g and %g apart", set, whole.Count, one.Count, other.Count)
		}
		if got, want := math.Pow(whole.CountErr, 2), math.Pow(one.CountErr, 2)+math.Pow(other.CountErr, 2); math.Abs(got-want) > 1e-6*want+1e-9 {
			t.Errorf("%v: variance %g, the parts' are %g", set, got, want)
		}
		r, x, y := snapshottest.Report(t, merged), snapshottest.Report(t, a), snapshottest.Report(t, b)
		if r.Used != x.Used+y.Used || snapshottest.Value(r.Body, "requests") != 2500 {
			t.Errorf("%v: %d used, %d and %d", set, r.Used, x.Used, y.Used)
		}
		again := snapshottest.Merge(t, counted(t, set, 300, 900, 8e6, 16e6), counted(t, set, 500, 1600, 1e6, 2e6, 4e6))
		if math.Abs(delayOf(t, again).Count-whole.Count) > 1e-6*whole.Count {
			t.Errorf("%v: the order matters", set)
		}
		three := snapshottest.Merge(t, merged, b)
		if got := delayOf(t, three); math.Abs(got.Count-one.Count-2*other.Count) > 1e-6*got.Count || three.Parts != 3 {
			t.Errorf("%v: three parts have %g", set, got.Count)
		}
		if set == nil || set["group"] != "" {
			snapshottest.Stands(t, merged)
		}
	}
}

// Groups are put together by what they are called, wherever their rows were.
func TestMergedGroups(t *testing.T) {
	set := map[string]string{"group": "src/24"}
	a, b := counted(t, set, 100, 200, 1e6, 2e6), counted(t, set, 100, 200, 4e6, 2e6)
	b.Words["fridge_groups"][1] = group.KeyIPv4<<60 | 0x0a000500
	r := snapshottest.Report(t, snapshottest.Merge(t, a, b))
	got := map[any]any{}
	for _, row := range r.Body.Tables[0].Rows {
		got[row[0]] = row[1]
	}
	if len(got) != 3 || got["10.0.0.0/24"] != uint64(100) || got["10.0.5.0/24"] != uint64(100) || got["10.0.9.0/24"] != uint64(200) {
		t.Errorf("groups %v", got)
	}
}

// Results of earlier windows are in the snapshot, and the same registers mean more delay after busy ones.
func TestPastIsInTheSnapshot(t *testing.T) {
	set := map[string]string{"counter": "inferred", "legs": "false", "fridges": "256@1"}
	quiet, busy := counted(t, set, 10, 100, 3e9), counted(t, set, 10, 100, 3e9)
	p := newPast(1)
	p.add(4e9, []uint64{4000, 0, 0, 0}, make([]uint64, len(p.gaps)))
	p.into(busy, []uint64{1})
	if a, b := delayOf(t, quiet).Count, delayOf(t, busy).Count; b < 1.5*a {
		t.Errorf("%g after a quiet window, %g after a busy one", a, b)
	}
	other := counted(t, set, 1, 1)
	other.Params["fridges"] = "512@1"
	if _, err := algo.Merge(quiet, other); !errors.Is(err, algo.ErrMerge) {
		t.Errorf("other fridges: %v", err)
	}
}

// Windows of an idle interface are equal, however long they and those before were; the first with traffic has them.
func TestIdleWindowsAreEqual(t *testing.T) {
	p, gaps := newPast(1), make([]uint64, len(newPast(1).gaps))
	gaps[0] = 7
	p.add(1e9, []uint64{40, 0, 0, 0}, gaps)
	digest := func(ns int64, inserted ...uint64) uint64 {
		s := snapshot.New(snapshot.Head{}, report.Window{})
		p.into(s, inserted)
		p.add(ns, inserted, make([]uint64, len(gaps)))
		return s.Digest()
	}
	if first := digest(1e9, 0); first == digest(1e9, 0) {
		t.Error("the window with traffic is forgotten at once")
	}
	for range mostWindows {
		digest(1e9+7, 0)
	}
	if digest(1e9, 0) != digest(1e9+3, 0) {
		t.Error("idle windows differ")
	}
	s := snapshot.New(snapshot.Head{}, report.Window{})
	p.into(s, []uint64{1})
	if n := len(s.Words[windowWords]); n != windowWidth*mostWindows || p.gaps[0] == 0 {
		t.Errorf("%d words of windows, gaps %v", n, p.gaps[:3])
	}
}

// The number of earlier windows is bounded, and they have a length.
func TestEdges(t *testing.T) {
	s := counted(t, nil, 50, 160, 1e6, 2e6)
	p := newPast(1)
	for range mostWindows {
		p.windows = append(p.windows, rateWindow{ns: 1e9})
	}
	p.into(s, []uint64{1})
	snapshottest.Edges(t, s, snapshottest.Edge{Name: windowWords, At: 0, Good: snapshottest.Numbers(-1, 0, 1, 1e18), Bad: snapshottest.Numbers(math.NaN())},
		snapshottest.Edge{Name: gapWords, At: 0, Good: snapshottest.Numbers(0, 1e9), Bad: snapshottest.Numbers(math.NaN(), math.Inf(1))},
		snapshottest.Edge{Name: occurrenceWords, At: 0, Good: snapshottest.Numbers(0, 1e9), Bad: snapshottest.Numbers(math.NaN(), math.Inf(-1))})
	p.windows = append(p.windows, rateWindow{ns: 1e9})
	p.into(s, []uint64{1})
	if _, err := algo.Report(s); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("%d windows: %v", len(p.windows), err)
	}
}
