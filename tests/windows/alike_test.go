package windows

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
)

// loadAlike loads an instance that shares its programs with others.
func loadAlike(t *testing.T) *loader.Instance {
	t.Helper()
	object, _ := fridgeObject(t, map[string]string{"fridges": "4096@1"})
	inst := load(t, loader.Options{Seed: 1, Alike: 3}, witnessObject(t, "witness", witness.Options{}), object)
	if err := inst.Alone(); err != nil {
		t.Fatalf("it shares no programs: %v", err)
	}
	return inst
}

// Instances that share programs, and maps that contain all their registers, count their own packets, each once, while the banks of all are
// flipped; the one without packets counts none.
func TestAlikeUnderLoad(t *testing.T) {
	testutil.NeedRoot(t)
	var ledgers [3]*ledger
	for n := range ledgers {
		ledgers[n] = &ledger{inst: loadAlike(t)}
	}
	if a, b := programID(t, ledgers[0].inst), programID(t, ledgers[1].inst); a != b {
		t.Fatalf("programs %d and %d are two", a, b)
	}
	traffic := mutator.Options{Traffic: mutator.Handshakes, Flows: 1000, Apart: true}
	floods := []*mutator.Flood{startFlood(t, ledgers[0].inst, traffic, mutator.Fast), startFlood(t, ledgers[2].inst, traffic, mutator.Fast)}
	flips := underLoad(t, 3*time.Second, func() {
		for _, l := range ledgers {
			l.flip(t)
		}
	})
	sent := [3]mutator.Sent{total(t, floods[0]), {}, total(t, floods[1])}
	for n, l := range ledgers {
		l.flip(t)
		l.flip(t)
		want := sent[n].Packets()
		t.Logf("instance %d: %d packets, %d flips", n, want, flips)
		if l.chain.Seen != want || l.seen.Packets != want || l.seen.Tally != want || l.seen.Shared != want || l.chain.Bytes != sent[n].Bytes {
			t.Errorf("instance %d: the chain saw %d packets, counters %d, tally %d, shared register %d; %d were sent", n, l.chain.Seen, l.seen.Packets, l.seen.Tally,
				l.seen.Shared, want)
		}
		if n != 1 {
			l.checkFridge(t, sent[n])
		} else if l.cells != 0 || ledgers[0].chain.Seen == 0 {
			t.Errorf("%d samples of an instance that nothing was sent to", l.cells)
		}
	}
}

func programID(t *testing.T, inst *loader.Instance) any {
	t.Helper()
	info, err := inst.Programs()["witness_tc"].Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}

// One of several alike instances changes its chain while another is sent packets, which loses none; a third chain at the same time is refused and
// changes nothing; and an instance that replaces another starts with empty registers.
func TestAlikeChange(t *testing.T) {
	testutil.NeedRoot(t)
	var insts [3]*loader.Instance
	for n := range insts {
		insts[n] = loadAlike(t)
	}
	l := &ledger{inst: insts[0]}
	f := startFlood(t, insts[0], mutator.Options{Traffic: mutator.Handshakes, Flows: 1000, Apart: true}, mutator.Fast)
	only := func(name string) []loader.Object { return []loader.Object{witnessObject(t, name, witness.Options{})} }
	if err := insts[1].Replace(only("first")); err != nil {
		t.Fatal(err)
	}
	if err := insts[2].Replace(only("second")); !errors.Is(err, maps.ErrHalves) {
		t.Fatalf("a third chain: %v", err)
	}
	if err := insts[2].Replace(only("first")); err != nil { // the one that another has changed to
		t.Fatal(err)
	}
	for range 5 {
		l.flip(t)
	}
	sent := total(t, f)
	l.flip(t)
	l.flip(t)
	if want := sent.Packets(); want == 0 || l.chain.Seen != want || l.seen.Packets != want {
		t.Errorf("the chain saw %d packets, counters %d; %d were sent", l.chain.Seen, l.seen.Packets, want)
	}
	l.checkFridge(t, sent)

	left := startFlood(t, insts[0], mutator.Options{Traffic: mutator.Handshakes, Flows: 1000, Apart: true}, mutator.Fast)
	time.Sleep(50 * time.Millisecond)
	if total(t, left).Packets() == 0 {
		t.Fatal("nothing was left in the registers")
	}
	if err := insts[0].Close(); err != nil {
		t.Fatal(err)
	}
	next := loadAlike(t)
	for _, name := range []string{"fridge", "witness"} {
		set, err := next.Set(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, array := range set.Names() {
			a, err := set.Array(array)
			if err != nil {
				t.Fatal(err)
			}
			if a.Kind != maps.TagRegister && a.Kind != maps.TagTally && a.Kind != maps.TagCounters {
				continue
			}
			for bank := range a.Banks {
				words, err := a.Read(bank, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range words {
					if w != 0 {
						t.Fatalf("%s has what another instance left", array)
					}
				}
			}
		}
	}
	if counts, err := next.CountsSoFar(); err != nil || counts.Seen != 0 {
		t.Errorf("%d packets seen before any was sent: %v", counts.Seen, err)
	}
}
