package windows

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
)

// chains are visited in turn. "stays" is in all of them, and of "left" and "right" always exactly one, at any position.
var chains = [][]string{
	{"left", "stays"},
	{"stays", "right"},
	{"left", "stays", "other"},
	{"right", "other", "stays"},
	{"stays", "other", "left"},
	{"other", "right", "stays"},
}

// generation is one incarnation of an algorithm that is added and removed: its counters stay here.
type generation struct {
	name   string
	counts *ebpf.Map
}

// troupe is the objects of the chains and everything that was loaded of them.
type troupe struct {
	inst    *loader.Instance
	objects map[string]loader.Object
	lives   []generation
}

func newTroupe(t *testing.T) *troupe {
	t.Helper()
	c := &troupe{objects: map[string]loader.Object{}}
	for _, name := range []string{"stays", "left", "right", "other"} {
		// Some 50 microseconds in each: a packet takes long, and most exchanges happen during one.
		c.objects[name] = witnessObject(t, name, witness.Options{Spin: 1500})
	}
	c.inst = load(t, loader.Options{Seed: 1}, c.cast(chains[0])...)
	t.Cleanup(func() {
		for _, g := range c.lives {
			g.counts.Close()
		}
	})
	c.remember(t, chains[0])
	return c
}

func (c *troupe) cast(names []string) []loader.Object {
	var list []loader.Object
	for _, name := range names {
		list = append(list, c.objects[name])
	}
	return list
}

// remember stores the counters of what is loaded now.
func (c *troupe) remember(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		clone, err := c.inst.Maps()[name+"/witness_counts"].Clone()
		if err != nil {
			t.Fatal(err)
		}
		c.lives = append(c.lives, generation{name, clone})
	}
}

// change switches to the next chain. What both chains have keeps its counters; it is stored again, so incarnations of one
// map are counted once.
func (c *troupe) change(t *testing.T, n int) {
	t.Helper()
	names := chains[n%len(chains)]
	if err := c.inst.Replace(c.cast(names)); err != nil {
		t.Fatal(err)
	}
	c.remember(t, names)
}

// packets adds up the incarnations of each algorithm.
func (c *troupe) packets(t *testing.T) map[string]uint64 {
	t.Helper()
	seen, total := map[ebpf.MapID]bool{}, map[string]uint64{}
	for _, g := range c.lives {
		info, err := g.counts.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, ok := info.ID()
		if !ok {
			t.Fatal("the kernel reports no map ids")
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		total[g.name] += countOf(t, g.counts)
	}
	return total
}

// countOf reads both banks: a flip moves on from one to the other.
func countOf(t *testing.T, m *ebpf.Map) (packets uint64) {
	t.Helper()
	for bank := range uint32(2) {
		counts := make([][witness.WitnessWitnessCountWITNESS_COUNTS]uint64, maps.PossibleCPUs())
		if err := m.Lookup(bank, &counts); err != nil {
			t.Fatal(err)
		}
		for _, c := range counts {
			packets += c[witness.WitnessWitnessCountWITNESS_PACKETS]
		}
	}
	return packets
}

// The chain is exchanged as fast as the kernel allows while all cores send. An algorithm that stays sees every packet
// once; of two that alternate, one sees it: no packet passes a mixture of two chains.
func TestReplaceUnderLoad(t *testing.T) {
	testutil.NeedRoot(t)
	c := newTroupe(t)
	f := startFlood(t, c.inst, mutator.Options{Traffic: mutator.Requests, Flows: 1000}, mutator.Slow)
	var counted uint64
	n := 0
	changes := underLoad(t, 3*time.Second, func() {
		n++
		c.change(t, n)
		if n%3 == 0 {
			counted += c.seen(t)
		}
	})
	sent := total(t, f).Packets()
	counted += c.seen(t) + c.seen(t)
	seen := c.packets(t)
	t.Logf("%d packets, %d chains; left %d, right %d, other %d", sent, changes, seen["left"], seen["right"], seen["other"])
	if changes < 3 || seen["left"] == 0 || seen["right"] == 0 {
		t.Errorf("%d changes, left %d, right %d: that proves nothing", changes, seen["left"], seen["right"])
	}
	if counted != sent {
		t.Errorf("the chain counted %d packets, %d were sent (%+d)", counted, sent, int64(counted-sent))
	}
	if seen["stays"] != sent {
		t.Errorf("the algorithm that stays saw %d packets, %d were sent (%+d)", seen["stays"], sent, int64(seen["stays"]-sent))
	}
	if both := seen["left"] + seen["right"]; both != sent {
		t.Errorf("those that take turns saw %d packets, %d were sent (%+d)", both, sent, int64(both-sent))
	}
}

// orders are chains of the same algorithms: an exchange loads nothing.
var orders = [][]string{{"left", "stays", "right"}, {"right", "stays", "left"}, {"stays", "right", "left"}, {"right", "left", "stays"}}

// Whatever the order, every algorithm sees every packet once.
func TestReorderUnderLoad(t *testing.T) {
	testutil.NeedRoot(t)
	c := newTroupe(t)
	if err := c.inst.Replace(c.cast(orders[0])); err != nil {
		t.Fatal(err)
	}
	before := c.packets(t)
	c.remember(t, orders[0])
	f := startFlood(t, c.inst, mutator.Options{Traffic: mutator.Requests, Flows: 1000}, mutator.Slow)
	n := 0
	changes := underLoad(t, 3*time.Second, func() {
		n++
		if err := c.inst.Replace(c.cast(orders[n%len(orders)])); err != nil {
			t.Fatal(err)
		}
	})
	sent := total(t, f).Packets()
	seen := c.packets(t)
	t.Logf("%d packets, %d orders", sent, changes)
	if changes < 3 || sent < 1000 {
		t.Errorf("%d packets, %d changes: that proves nothing", sent, changes)
	}
	for _, name := range orders[0] {
		if got := seen[name] - before[name]; got != sent {
			t.Errorf("%s saw %d packets, %d were sent (%+d)", name, got, sent, int64(got-sent))
		}
	}
}

// seen ends a window of the chain.
func (c *troupe) seen(t *testing.T) uint64 {
	t.Helper()
	bank, err := c.inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := c.inst.Counts(bank)
	if err != nil {
		t.Fatal(err)
	}
	return counts.Seen
}

// A chain that cannot be loaded leaves the old one at work.
func TestFailedReplaceChangesNothing(t *testing.T) {
	testutil.NeedRoot(t)
	c := newTroupe(t)
	f := startFlood(t, c.inst, mutator.Options{Traffic: mutator.Requests, Flows: 1000}, mutator.Slow)
	broken := c.objects["left"]
	broken.Spec = broken.Spec.Copy()
	broken.Spec.Maps["witness_tally"].MaxEntries = 1 << 31 // more memory than there is
	underLoad(t, time.Second, func() {
		if err := c.inst.Replace([]loader.Object{c.objects["stays"], broken}); err == nil {
			t.Error("a chain that does not fit into memory was loaded")
		}
	})
	sent := total(t, f).Packets()
	seen := c.packets(t)
	if seen["stays"] != sent || seen["left"] != sent {
		t.Errorf("%d packets sent; the old chain's algorithms saw %d and %d", sent, seen["left"], seen["stays"])
	}
}
