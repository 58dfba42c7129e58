package windows

import (
	"math"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// agreement is how far an answer of all cores may be from that of one core: the bar of the project.
const agreement = 0.02

// answer is what a fridge reports of a sequence.
type answer struct {
	estimated float64
	matched   uint64
	torn      uint64
	delay     report.Distribution
	packets   uint64
	turns     uint64
	truth     []float64 // sorted
	low, high float64   // of the possible delays
}

// hammerOn lets cores cores work off n packets of one sequence together.
func hammerOn(t *testing.T, cores int, n uint32, set map[string]string) answer {
	t.Helper()
	object, instance := fridgeObject(t, set)
	inst := load(t, loader.Options{Seed: 1}, object)
	maps, err := inst.Set("fridge")
	if err != nil {
		t.Fatal(err)
	}
	if err := instance.Bind(maps); err != nil {
		t.Fatal(err)
	}
	h, err := mutator.NewHammer(inst, mutator.HammerOptions{GapNS: 1000, Lag: 16384, Spread: 12, Flows: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := mutator.OnAll(cores, func(int) error { return h.Run(n / uint32(cores)) }); err != nil {
		t.Fatal(err)
	}
	return reported(t, inst, instance, h)
}

func reported(t *testing.T, inst *loader.Instance, instance algo.Instance, h *mutator.Hammer) answer {
	t.Helper()
	if _, err := h.Sent(); err != nil {
		t.Fatal(err)
	}
	bank, err := inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	result, err := algo.Window(instance, report.Window{Start: 1, End: 2}, bank)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if a.packets, a.turns, err = h.Length(); err != nil {
		t.Fatal(err)
	}
	for _, v := range result.Body.Values {
		switch v.Name {
		case "estimated":
			a.estimated = v.Value.(float64)
		case "matched":
			a.matched = v.Value.(uint64)
		}
	}
	a.torn, a.delay = result.Lost["torn"], result.Body.Distributions[0]
	a.truth = h.Delays(a.packets)
	slices.Sort(a.truth)
	a.low, a.high = h.Bounds()
	return a
}

// All cores together have the result of one core: the same sequence of handshakes over the same slots, half of the
// records evicted before their response arrives, in a race for every register.
func TestAllCoresAgreeWithOne(t *testing.T) {
	testutil.NeedRoot(t)
	cpus, err := mutator.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(cpus) < 2 {
		testutil.Skip(t, "needs two cores for a race, has %d", len(cpus))
	}
	packets := uint32(2_000_000)
	if testing.Short() {
		packets /= 4
	}
	for _, c := range []struct {
		name string
		set  map[string]string
	}{
		{"legs", map[string]string{"fridges": "16384@1"}},
		{"one shard", map[string]string{"fridges": "16384@1", "shards": "1", "legs": "false"}},
		{"two fridges", map[string]string{"fridges": "8192@1/2,8192@1/16"}},
		{"table", map[string]string{"fridges": "16384@1", "correction": "table"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, all := hammerOn(t, 1, packets, c.set), race(t, len(cpus), packets, c.set)
			t.Logf("one core: %.0f estimated from %d; %d cores, %d turns: %.0f from %d, %d torn; truth %d", one.estimated, one.matched,
				len(cpus), all.turns, all.estimated, all.matched, all.torn, len(all.truth))
			compare(t, one, all)
			all.plausible(t)
		})
	}
}

// race repeats until the cores really got into each other's way: on a busy machine one may be done before the other
// begins.
func race(t *testing.T, cores int, n uint32, set map[string]string) answer {
	t.Helper()
	const enough = 10_000 // turns
	var a answer
	for range 20 {
		if a = hammerOn(t, cores, n, set); a.turns >= enough {
			return a
		}
	}
	t.Errorf("the cores took turns only %d times: there was no race", a.turns)
	return a
}

func compare(t *testing.T, one, all answer) {
	t.Helper()
	// A signal restarts a run, so the two sequences may differ in length.
	scale := float64(len(one.truth)) / float64(len(all.truth))
	if off := relative(all.estimated*scale, one.estimated); off > agreement {
		t.Errorf("estimated count: %.2f %% apart", 100*off)
	}
	if off := relative(all.delay.Mean, one.delay.Mean); off > agreement {
		t.Errorf("mean delay: %.2f %% apart", 100*off)
	}
	for i, q := range all.delay.Quantiles {
		if off := relative(q.Value, one.delay.Quantiles[i].Value); off > agreement {
			t.Errorf("%s: %.2f %% apart", q.Name, 100*off)
		}
	}
}

func relative(a, b float64) float64 { return math.Abs(a-b) / b }

// plausible compares with the truth and looks for what cannot be.
func (a *answer) plausible(t *testing.T) {
	t.Helper()
	if off := relative(a.estimated, float64(len(a.truth))); off > agreement {
		t.Errorf("estimated %.0f, truth %d: %.2f %% apart", a.estimated, len(a.truth), 100*off)
	}
	for _, q := range a.delay.Quantiles {
		if q.Q > 0.99 {
			continue // rests on too few samples
		}
		truth := a.truth[int(q.Q*float64(len(a.truth)-1))]
		if off := relative(q.Value, truth); q.Defined && off > agreement {
			t.Errorf("%s %.0f ns, truth %.0f ns: %.2f %% apart", q.Name, q.Value, truth, 100*off)
		}
	}
	if share := float64(a.torn) / float64(a.matched); share > 0.001 {
		t.Errorf("%d of %d samples torn: %.3f %%", a.torn, a.matched, 100*share)
	}
	const bin = 1.04 // width of a delay bin, at the most
	before, impossible := 0.0, 0.0
	for _, b := range a.delay.Buckets {
		if b.Cumulative > before && (b.Upper < a.low || b.Upper > a.high*bin) {
			t.Logf("%.1f samples up to %.0f ns: possible are %.0f to %.0f ns", b.Cumulative-before, b.Upper, a.low, a.high)
			impossible += b.Cumulative - before
		}
		before = b.Cumulative
	}
	if impossible > mostFalse {
		t.Errorf("%.1f samples cannot be", impossible)
	}
}

// mostFalse is the weight of two samples of the usual 1.8, and less than that of three. A response whose request was overwritten takes
// another's record for its own when 24 bits of id agree (bpf/include/record.h): 620,000 such responses match 0.04 of them in the
// mean, and three in one run of 100,000.
const mostFalse = 4
