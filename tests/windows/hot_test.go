package windows

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// All cores send the very same few handshakes, over and over: same slots, same identifiers. Whatever the race causes, a
// record is answered at most once, and no delay is longer than the test.
func TestHotKeys(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct {
		name    string
		set     map[string]string
		traffic mutator.Traffic
		clock   bool    // an algorithm in front of the fridge has read the clock already
		torn    float64 // largest share of torn samples
	}{
		{"handshakes", map[string]string{"fridges": "1024@1"}, mutator.Handshakes, false, 0.001},
		{"answers", map[string]string{"fridges": "1024@1", "legs": "false"}, mutator.Mixed, false, 0.001},
		{"early clock", map[string]string{"fridges": "1024@1", "legs": "false"}, mutator.Mixed, true, 0.001},
		{"early clock, handshakes", map[string]string{"fridges": "1024@1"}, mutator.Handshakes, true, 0.001},
		{"few slots", map[string]string{"fridges": "16@1"}, mutator.Handshakes, false, 0.05},
		{"few slots, answers", map[string]string{"fridges": "16@1", "legs": "false"}, mutator.Mixed, false, 0.05},
		{"restart", map[string]string{"fridges": "1024@1", "retransmit": "restart", "legs": "false"}, mutator.Mixed, true, 0.001},
	} {
		t.Run(c.name, func(t *testing.T) {
			object, instance := fridgeObject(t, c.set)
			inst := load(t, loader.Options{Seed: 1}, witnessObject(t, "witness", witness.Options{Clock: c.clock}), object)
			maps, err := inst.Set("fridge")
			if err != nil {
				t.Fatal(err)
			}
			if err := instance.Bind(maps); err != nil {
				t.Fatal(err)
			}
			heat(t, inst, instance, c.traffic, c.torn)
		})
	}
}

func heat(t *testing.T, inst *loader.Instance, instance algo.Instance, traffic mutator.Traffic, torn float64) {
	t.Helper()
	started := time.Now()
	f := startFlood(t, inst, mutator.Options{Traffic: traffic, Flows: 16, Frozen: true}, mutator.Fast)
	underLoad(t, time.Second/2, func() { time.Sleep(10 * time.Millisecond) })
	sent := total(t, f)
	elapsed := time.Since(started)
	set, err := inst.Set("fridge")
	if err != nil {
		t.Fatal(err)
	}
	counters, err := set.Array("fridge_counters")
	if err != nil {
		t.Fatal(err)
	}
	counts, err := counters.Read(inst.Control().Bank(), nil)
	if err != nil {
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
	checkHot(t, counts, sent, torn)
	for n, d := range result.Body.Distributions {
		checkLongest(t, d, elapsed)
		if n == 0 {
			checkWeights(t, d, sent)
		}
	}
}

// checkWeights: no sample represents requests that never existed, as one with another's survived insertions would.
func checkWeights(t *testing.T, d report.Distribution, sent mutator.Sent) {
	t.Helper()
	t.Logf("%.0f estimated", d.Count)
	if d.Count > 1.02*float64(sent.Responses) {
		t.Errorf("%.0f answered requests estimated, but only %d responses were sent", d.Count, sent.Responses)
	}
}

func checkHot(t *testing.T, counts []uint64, sent mutator.Sent, limit float64) {
	t.Helper()
	of := func(n fridge.FridgeFridgeCounter) uint64 { return counts[n] }
	matched, inserted := of(fridge.FridgeFridgeCounterFRIDGE_MATCHED), of(fridge.FridgeFridgeCounterFRIDGE_INSERTED)
	repeated, replies := of(fridge.FridgeFridgeCounterFRIDGE_REPEATED), of(fridge.FridgeFridgeCounterFRIDGE_REPEATED_REPLY)
	torn := of(fridge.FridgeFridgeCounterFRIDGE_TORN)
	t.Logf("%d requests, %d responses: %d inserted, %d repeated, %d matched, %d repeated replies, %d finals, %d torn", sent.Requests,
		sent.Responses, inserted, repeated, matched, replies, of(fridge.FridgeFridgeCounterFRIDGE_FINALS), torn)
	if inserted+repeated != sent.Requests {
		t.Errorf("%d inserted and %d repeated of %d requests", inserted, repeated, sent.Requests)
	}
	if matched+replies > sent.Responses || matched == 0 {
		t.Errorf("%d matched and %d repeated replies of %d responses", matched, replies, sent.Responses)
	}
	if float64(matched) > 1.01*float64(inserted+repeated) {
		t.Errorf("%d requests in the table, but %d were matched", inserted+repeated, matched)
	}
	if float64(torn) > limit*float64(matched) {
		t.Errorf("%d of %d samples torn", torn, matched)
	}
}

func checkLongest(t *testing.T, d report.Distribution, elapsed time.Duration) {
	t.Helper()
	const bin = 1.04 // width of a delay bin, at the most
	before := 0.0
	for _, b := range d.Buckets {
		if b.Cumulative > before && b.Upper > bin*float64(elapsed) {
			t.Errorf("%s: %.1f samples up to %s, but the test took %s", d.Name, b.Cumulative-before, time.Duration(b.Upper), elapsed)
		}
		before = b.Cumulative
	}
}
