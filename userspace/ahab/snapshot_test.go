package ahab

import (
	"errors"
	"fmt"
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// limited is a snapshot of a window with two users above the limit.
func limited(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, map[string]string{"capacity": "80Mbit"})
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	n := int(c.entries())
	for name, size := range map[string]int{"counters": int(bpf.AhabAhabCounterAHAB_COUNTS), "deeds": n * actions, "bytes": n * actions, "offered": n, "dropped": n, "refused": n, "limit": n, "capacity": n} {
		s.Words[name] = make(snapshot.Words, size)
	}
	s.Words["overestimate"], s.Words["sampled"] = snapshot.Floats([]float64{1, 2}), snapshot.Words{allSamples}
	s.Words["offered"][1], s.Words["deeds"][actions], s.Words["bytes"][actions] = 5_000_000, 4000, 5_000_000
	p := people{}
	p[user{0, 0xffff0a000001, 0, 0xffff0a000002, 4<<40 | 6<<32 | 80<<16 | 90 | 128<<56, 1 | 1<<16}] = &seen{n: 4, dropped: 1, bytes: 4000, rate: 40, squares: 500, limit: 20}
	p[user{0, 0xffff0a000003, 0, 0xffff0a000002, 4<<40 | 6<<32 | 81<<16 | 90 | 128<<56, 1 | 1<<16}] = &seen{n: 1, bytes: 1000, rate: 10, squares: 100, limit: 5}
	s.Words["users"] = p.words()
	return s
}

// What a snapshot has of users is what samples can show.
func TestEdges(t *testing.T) {
	s := limited(t)
	snapshottest.Stands(t, s)
	at := len(user{})
	edges := []snapshottest.Edge{
		{Name: "sampled", At: 0, Good: []uint64{1, allSamples}, Bad: []uint64{0, allSamples + 1}},
		{Name: "users", At: 5, Good: []uint64{1}, Bad: []uint64{0, 2, 0xffff}},
		{Name: "users", At: at, Good: []uint64{1, 1000}, Bad: []uint64{0}},
		{Name: "users", At: at + 1, Good: []uint64{0, 1}, Bad: []uint64{5}},
	}
	for k := range 3 {
		edges = append(edges, snapshottest.Edge{Name: "users", At: at + 3 + k, Good: snapshottest.Numbers(0, 1e18), Bad: snapshottest.Numbers(-1, math.NaN(), math.Inf(1))})
	}
	snapshottest.Edges(t, s, edges...)
}

// A snapshot of slices has their names; as many as there can be.
func TestNamed(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: false, 2: true, 3: true, slices.MaxSlices + 1: true, slices.MaxSlices + 2: false} {
		s := &snapshot.Snapshot{Texts: map[string][]string{"slices": make([]string, n)}, Words: map[string]snapshot.Words{"norms": make(snapshot.Words, n)}}
		for i := range n {
			s.Texts["slices"][i], s.Words["norms"][i] = fmt.Sprint(i), []uint64{0, 1, 1 << 24, 1<<24 + 1}[i%4]
		}
		c := &config{path: "x"}
		err := c.named(s)
		if (err == nil) != ok || err != nil && !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%d names: %v", n, err)
		}
		for i, one := range c.slices {
			if want := []uint32{1 << 16, 1, 1 << 24, 1 << 16}[i%4]; one.norm != want || one.name != fmt.Sprint(i) {
				t.Errorf("slice %d: %+v, want %d", i, one, want)
			}
		}
	}
	c := &config{path: "x"}
	if err := c.named(&snapshot.Snapshot{Texts: map[string][]string{"slices": {"", "a"}}}); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("without norms: %v", err)
	}
}
