package windows

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
)

// fleet is more instances than one set of programs serves, and the number of packets sent to each.
type fleet struct {
	insts []*loader.Instance
	sent  []uint64
}

// join adds an instance; its interfaces alternate between both kinds of hook.
func (c *fleet) join(t *testing.T, name string) {
	t.Helper()
	inst := load(t, loader.Options{Seed: 1, Alike: loader.MostAlike, Lazy: true}, witnessObject(t, name, witness.Options{}))
	if err := inst.Alone(); err != nil {
		t.Fatalf("it shares no programs: %v", err)
	}
	c.insts, c.sent = append(c.insts, inst), append(c.sent, 0)
}

// send a different number of packets to each, through XDP and TC alternately.
func (c *fleet) send(t *testing.T) {
	t.Helper()
	frame := builder.MustBuild(&builder.Spec{})
	for n, inst := range c.insts {
		kind := []loader.Kind{loader.XDP, loader.TC}[n%2]
		entry, err := inst.Entry(loader.EntryConfig{Kind: kind, IfIndex: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range n + 1 {
			if _, err := entry.Run(&ebpf.RunOptions{Data: frame.Data}); err != nil {
				t.Fatal(err)
			}
		}
		c.sent[n] += uint64(n + 1)
		if err := entry.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *fleet) check(t *testing.T, when string) {
	t.Helper()
	seen, err := loader.SeenSoFar(c.insts)
	if err != nil {
		t.Fatal(err)
	}
	for n, inst := range c.insts {
		counts, err := inst.CountsSoFar()
		if err != nil {
			t.Fatal(err)
		}
		if counts.Seen != c.sent[n] || seen[n] != c.sent[n] {
			t.Errorf("%s: instance %d has seen %d packets, %d among all, of %d", when, n, counts.Seen, seen[n], c.sent[n])
		}
	}
}

// More instances than one set of programs serves, half of them at XDP and half at TC, some with another chain: each counts its own packets, whichever instance's window ends,
// is closed, or is replaced.
func TestCrowd(t *testing.T) {
	testutil.NeedRoot(t)
	c := &fleet{}
	for range loader.MostAlike + 3 {
		c.join(t, "witness")
	}
	for range 2 {
		c.join(t, "other")
	}
	c.send(t)
	c.check(t, "at first")
	ended := []int{0, 7, loader.MostAlike + 1, loader.MostAlike + 4}
	for _, n := range ended {
		bank, err := c.insts[n].Control().Flip()
		if err != nil {
			t.Fatal(err)
		}
		counts, err := c.insts[n].Counts(bank)
		if err != nil || counts.Seen != c.sent[n] {
			t.Errorf("the window of %d: %d packets, not %d: %v", n, counts.Seen, c.sent[n], err)
		}
		c.sent[n] = 0
	}
	c.check(t, "after windows of some")
	if err := c.insts[5].Close(); err != nil {
		t.Fatal(err)
	}
	c.insts, c.sent = append(c.insts[:5], c.insts[6:]...), append(c.sent[:5], c.sent[6:]...)
	c.join(t, "witness")
	c.check(t, "after one was closed and another was added")
	c.send(t)
	c.check(t, "after all")
}
