package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// fridgeObject configures a fridge.
func fridgeObject(t *testing.T, set map[string]string) (loader.Object, algo.Instance) {
	t.Helper()
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Seed: 1}
	objects, instances, err := session.Objects(cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	return objects[0], instances[0]
}

func witnessObject(t *testing.T, name string, opts witness.Options) loader.Object {
	t.Helper()
	o, err := witness.Object(name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// ledger adds up what all windows held.
type ledger struct {
	inst   *loader.Instance
	chain  loader.Counts
	seen   witness.Count
	fridge []uint64 // its counters
	cells  uint64   // samples in its histogram
}

// flip closes a window and books it.
func (l *ledger) flip(t *testing.T) {
	t.Helper()
	bank, err := l.inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := l.inst.Counts(bank)
	if err != nil {
		t.Fatal(err)
	}
	l.chain.Seen += counts.Seen
	l.chain.Parsed += counts.Parsed
	l.chain.Bytes += counts.Bytes
	l.seen.Add(witnessed(t, l.inst, "witness", bank))
	l.bookFridge(t, bank)
}

func (l *ledger) bookFridge(t *testing.T, bank int) {
	t.Helper()
	const countShift = 36 // RESIDUAL_BITS of bpf/include/survival.h: above it a cell counts samples
	counters := readArray(t, l.inst, "fridge", "fridge_counters", bank)
	if l.fridge == nil {
		l.fridge = make([]uint64, len(counters))
	}
	for i, n := range counters {
		l.fridge[i] += n
	}
	for _, cell := range readArray(t, l.inst, "fridge", "fridge_hist", bank) {
		l.cells += cell >> countShift
	}
}

func readArray(t *testing.T, inst *loader.Instance, algorithm, name string, bank int) []uint64 {
	t.Helper()
	set, err := inst.Set(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	array, err := set.Array(name)
	if err != nil {
		t.Fatal(err)
	}
	words, err := array.ReadReset(bank, nil)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func (l *ledger) of(n fridge.FridgeFridgeCounter) uint64 { return l.fridge[n] }

// Banks are flipped as fast as the kernel allows while all cores send: over all windows every packet is counted once,
// by the chain, by counters, tallies and shared registers of an algorithm, and by the fridge.
func TestFlipsUnderLoad(t *testing.T) {
	testutil.NeedRoot(t)
	object, _ := fridgeObject(t, map[string]string{"fridges": "4096@1"})
	inst := load(t, loader.Options{Seed: 1}, witnessObject(t, "witness", witness.Options{}), object)
	l := &ledger{inst: inst}
	f := startFlood(t, inst, mutator.Options{Traffic: mutator.Handshakes, Flows: 1000, Apart: true}, mutator.Fast)
	flips := underLoad(t, 3*time.Second, func() { l.flip(t) })
	sent := total(t, f)
	l.flip(t)
	l.flip(t)
	t.Logf("%d packets (%d by TC), %d flips", sent.Packets(), f.ByTC(), flips)
	if flips < 5 {
		t.Errorf("only %d flips: that proves nothing", flips)
	}
	for name, got := range map[string]uint64{
		"chain, seen": l.chain.Seen, "chain, parsed": l.chain.Parsed, "counters": l.seen.Packets, "tally": l.seen.Tally,
		"shared register": l.seen.Shared,
	} {
		if got != sent.Packets() {
			t.Errorf("%s: %d packets over all windows, %d were sent (%+d)", name, got, sent.Packets(), int64(got-sent.Packets()))
		}
	}
	if l.chain.Bytes != sent.Bytes || l.seen.Bytes != sent.Bytes {
		t.Errorf("chain counted %d bytes, algorithm %d, %d were sent", l.chain.Bytes, l.seen.Bytes, sent.Bytes)
	}
	l.checkFridge(t, sent)
}

// Algorithms of three groups count every packet once, whichever groups' windows end together, and what is after them in the chain counts in the bank of
// its own group.
func TestGroupsUnderLoad(t *testing.T) {
	testutil.NeedRoot(t)
	fridges, _ := fridgeObject(t, map[string]string{"fridges": "4096@1"})
	one, two := witnessObject(t, "witness", witness.Options{}), witnessObject(t, "longest", witness.Options{})
	one.Group, two.Group = 1, 15
	inst := load(t, loader.Options{Seed: 1}, one, two, fridges)
	l := &ledger{inst: inst}
	seen := map[string]*witness.Count{"witness": {}, "longest": {}}
	end := func(groups ...int) {
		banks, err := inst.Control().FlipGroups(groups...)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range groups {
			switch g {
			case 0:
				counts, err := inst.Counts(banks[i])
				if err != nil {
					t.Fatal(err)
				}
				l.chain = l.chain.Plus(counts)
				l.bookFridge(t, banks[i])
			case 1:
				seen["witness"].Add(witnessed(t, inst, "witness", banks[i]))
			case 15:
				seen["longest"].Add(witnessed(t, inst, "longest", banks[i]))
			}
		}
	}
	f := startFlood(t, inst, mutator.Options{Traffic: mutator.Handshakes, Flows: 1000, Apart: true}, mutator.Fast)
	n := 0
	flips := underLoad(t, 2*time.Second, func() {
		switch n++; {
		case n%6 == 0:
			end(0, 1, 15)
		case n%3 == 0:
			end(0, 1)
		default:
			end(0)
		}
	})
	sent := total(t, f)
	for range 2 {
		end(0, 1, 15)
	}
	t.Logf("%d packets, %d flips", sent.Packets(), flips)
	if flips < 12 {
		t.Errorf("only %d flips: that proves nothing", flips)
	}
	if l.chain.Seen != sent.Packets() || l.chain.Bytes != sent.Bytes {
		t.Errorf("the chain saw %d packets of %d bytes, %d of %d were sent", l.chain.Seen, l.chain.Bytes, sent.Packets(), sent.Bytes)
	}
	for name, c := range seen {
		if c.Packets != sent.Packets() || c.Tally != sent.Packets() || c.Shared != sent.Packets() {
			t.Errorf("%s: %+v, %d were sent", name, *c, sent.Packets())
		}
	}
	l.checkFridge(t, sent)
}

func witnessed(t *testing.T, inst *loader.Instance, name string, bank int) witness.Count {
	t.Helper()
	set, err := inst.Set(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := witness.Read(set, bank)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A closed bank does not change: packets that started before the flip have ended when it returns, however long they took.
func TestClosedBankIsStill(t *testing.T) {
	testutil.NeedRoot(t)
	inst := load(t, loader.Options{Seed: 1}, witnessObject(t, "witness", witness.Options{Spin: 4000}))
	f := startFlood(t, inst, mutator.Options{Traffic: mutator.Requests}, mutator.Slow)
	set, err := inst.Set("witness")
	if err != nil {
		t.Fatal(err)
	}
	flips := underLoad(t, 1500*time.Millisecond, func() {
		bank, err := inst.Control().Flip()
		if err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, set, bank)
		time.Sleep(2 * time.Millisecond) // a packet takes a tenth of it
		if after := snapshot(t, set, bank); !slices.Equal(before, after) {
			t.Errorf("the closed bank still counts: %d packets, then %d", before[0], after[0])
		}
	})
	sent := total(t, f)
	t.Logf("%d packets, %d flips", sent.Packets(), flips)
	if flips < 5 || sent.Packets() < 100 {
		t.Errorf("%d flips, %d packets: that proves nothing", flips, sent.Packets())
	}
}

// snapshot reads a bank of the witness's counters and leaves it unchanged.
func snapshot(t *testing.T, set *maps.Set, bank int) []uint64 {
	t.Helper()
	array, err := set.Array("witness_counts")
	if err != nil {
		t.Fatal(err)
	}
	words, err := array.Read(bank, nil)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func (l *ledger) checkFridge(t *testing.T, sent mutator.Sent) {
	t.Helper()
	requests, responses := l.of(fridge.FridgeFridgeCounterFRIDGE_REQUESTS), l.of(fridge.FridgeFridgeCounterFRIDGE_RESPONSES)
	if requests != sent.Requests || responses != sent.Responses {
		t.Errorf("fridge: %d requests, %d responses; %d and %d were sent", requests, responses, sent.Requests, sent.Responses)
	}
	matched, finals := l.of(fridge.FridgeFridgeCounterFRIDGE_MATCHED), l.of(fridge.FridgeFridgeCounterFRIDGE_FINALS)
	if matched == 0 || finals == 0 {
		t.Errorf("fridge: %d matched, %d finals: the traffic does not fit", matched, finals)
	}
	if l.cells != matched+finals {
		t.Errorf("fridge: %d samples in the histogram, but %d matched and %d finals", l.cells, matched, finals)
	}
	fates := l.of(fridge.FridgeFridgeCounterFRIDGE_INSERTED) + l.of(fridge.FridgeFridgeCounterFRIDGE_REPEATED) +
		l.of(fridge.FridgeFridgeCounterFRIDGE_LOST_COIN)
	if fates != requests {
		t.Errorf("fridge: %d requests, but %d inserted, repeated or not admitted", requests, fates)
	}
}
