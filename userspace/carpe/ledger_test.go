package carpe

import (
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// A snapshot's flows are bounded by what reports can contain.
func TestEdges(t *testing.T) {
	s, _ := snapshottest.New(t, Name, nil)
	s.Words["counters"], s.Words["state"] = make(snapshot.Words, bpf.CarpeCarpeCounterCARPE_COUNTS), make(snapshot.Words, stateWords)
	flowsInto(s, map[heavy.Key]sums{{1}: {2, 500, 30, 4}, {2}: {1, 700, 0, 1}})
	snapshottest.Stands(t, s)
	snapshottest.Edges(t, s,
		snapshottest.Range("flows", heavy.KeyWords+1, 0, math.Nextafter(math.MaxInt64, 0)), snapshottest.Range("flows", heavy.KeyWords+2, 0, math.MaxFloat64),
		snapshottest.Edge{Name: "flows", At: heavy.KeyWords + 3, Good: []uint64{1, 1 << 16}, Bad: []uint64{0, 1<<16 + 1}})
	cut := *s
	cut.Words = map[string]snapshot.Words{"counters": s.Words["counters"], "state": s.Words["state"], "flows": s.Words["flows"][:flowWords+1]}
	if _, err := algo.Report(&cut); err == nil {
		t.Error("half a flow is reported")
	}
}

// Reports count in their window and in those that its span holds; what has no room is counted, and so is what is forgotten.
func TestLedger(t *testing.T) {
	c := configured(t, map[string]string{"span": "2", "threshold": "1000", "epsilon": "0.05"})
	c.flows = 2
	l := newLedger(c)
	a, b := heavy.Key{1}, heavy.Key{2}
	for _, one := range []struct {
		key   heavy.Key
		epoch uint64
		n     uint64
	}{{a, 7, 1}, {a, 5, 2}, {a, 6, 4}, {a, 7, 8}, {b, 6, 16}} {
		if l.add(one.key, one.epoch, sums{reports: one.n, weight: float64(100 * one.n), variance: 1, observers: uint32(one.n)}) == nil {
			t.Errorf("%+v has no room", one)
		}
	}
	if l.add(heavy.Key{3}, 7, sums{reports: 3}) != nil || l.full != 3 {
		t.Errorf("a third flow has room; %d reports had none", l.full)
	}
	for epoch, want := range map[uint64][2]uint64{4: {}, 5: {2, 0}, 6: {6, 16}, 7: {13, 16}, 8: {9, 0}, 9: {}} {
		for n, k := range []heavy.Key{a, b} {
			if got := l.within(l.flows[k], epoch); got.reports != want[n] || got.weight != float64(100*want[n]) {
				t.Errorf("flow %d has %+v in the span up to %d, want %d", n+1, got, epoch, want[n])
			}
		}
	}
	if got := l.within(l.flows[a], 7); got.observers != 8 || got.variance != 3 {
		t.Errorf("%+v", got)
	}
	all := l.window(7)
	if len(all) != 2 || all[a].reports != 13 || len(l.flows[a].steps) != 2 {
		t.Errorf("%+v, %+v", all, l.flows[a])
	}
	if all := l.window(8); len(all) != 1 || len(l.flows) != 1 {
		t.Errorf("%+v of %+v", all, l.flows)
	}
	l.add(b, 8, sums{reports: 5})
	if n := l.clear(); n != 9+5 || len(l.flows) != 0 || l.clear() != 0 {
		t.Errorf("%d reports were forgotten", n)
	}
}
