package reorder

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func testSeed(t *testing.T) uint64 { return testutil.Seed(t) }

func trace(t *testing.T, name string) string { return testutil.Trace(t, name) }

// small is the model of section 4.1, with 1/40 of its prefixes, 1/70 of its flows and packets.
func small(seed uint64) traffic.ReorderOptions {
	return traffic.ReorderOptions{Packets: 120_000, Flows: 8_000, Prefixes: 430, Span: 500 * time.Millisecond, Seed: seed}
}

// Every watched packet is in one report and in one window, whatever the method.
func TestReportsAddUp(t *testing.T) {
	for _, method := range []string{"sampling", "precision", "hybrid"} {
		lines := replay(t, model(t, small(1)), session.Config{Window: 2 * time.Second},
			map[string]string{"method": method, "report": "all", "buckets": "64"})
		if len(lines) < 5 {
			t.Fatalf("%s: %d windows, want at least 5", method, len(lines))
		}
		for n, l := range lines {
			watched, out := number(t, l.Report, "watched"), number(t, l.Report, "out_of_order")
			if got := number(t, l.Report, "reported"); got != watched {
				t.Errorf("%s, window %d: reports hold %g packets, %g were watched", method, n, got, watched)
			}
			if got := number(t, l.Report, "reported_out_of_order"); got != out {
				t.Errorf("%s, window %d: reports hold %g packets out of order, %g were seen", method, n, got, out)
			}
			if l.Lost["torn"] != 0 || l.Lost["reports"] != 0 {
				t.Errorf("%s, window %d: lost %v on one core with a large ring", method, n, l.Lost)
			}
		}
	}
}

// Few buckets find most of the prefixes in trouble; second passes stay below a tenth.
func TestPrefixesAreFound(t *testing.T) {
	for _, c := range []struct {
		set   map[string]string
		least float64
	}{
		{map[string]string{"buckets": "32"}, 0.5},
		{map[string]string{"buckets": "1024"}, 0.9},
		{map[string]string{"buckets": "1024", "method": "hybrid"}, 0.7},
		{map[string]string{"buckets": "1024", "definition": "2", "epsilon": "0.02"}, 0.8},
	} {
		var found, heavy float64
		for seed := range uint64(2) { // of both, for enough prefixes
			l := replay(t, model(t, small(seed+1)), session.Config{Seed: seed + 1}, c.set)[0]
			found, heavy = found+number(t, *l.Truth, "found"), heavy+number(t, *l.Truth, "prefixes_heavy")
			if share := number(t, l.Report, "second_pass_share"); share > 0.1 {
				t.Errorf("%v: %.3f of the packets passed twice, want 0.1 or less", c.set, share)
			}
		}
		t.Logf("%v: %g of %g prefixes", c.set, found, heavy)
		if heavy < 20 || found < c.least*heavy {
			t.Errorf("%v: %g of %g prefixes in trouble were found, want %g of them", c.set, found, heavy, c.least)
		}
	}
}

// report=all reports shares: fewer false positives for more reports.
func TestReportAll(t *testing.T) {
	rate := func(set map[string]string) (wrong, sent float64) {
		l := replay(t, model(t, small(3)), session.Config{}, set)[0]
		return number(t, *l.Truth, "false_positives"), number(t, l.Report, "reports_per_packet")
	}
	wrong, sent := rate(map[string]string{"buckets": "256"})
	wrongAll, sentAll := rate(map[string]string{"buckets": "256", "report": "all"})
	if wrongAll >= wrong || sentAll <= sent {
		t.Errorf("report=all: %g false positives and %.4f reports a packet, report=reorder: %g and %.4f", wrongAll, sentAll, wrong, sent)
	}
}

// A hybrid keeps large flows out of the array, and sends fewer reports.
func TestHybridSendsLess(t *testing.T) {
	var sent [2]float64
	for n, method := range []string{"sampling", "hybrid"} {
		l := replay(t, model(t, small(4)), session.Config{}, map[string]string{"buckets": "512", "method": method, "x": "0.5"})[0]
		sent[n] = number(t, l.Report, "reports")
	}
	if sent[1] >= sent[0] {
		t.Errorf("hybrid sent %g reports, sampling %g", sent[1], sent[0])
	}
}

// A replay is reproducible.
func TestReplayRepeats(t *testing.T) {
	set := map[string]string{"method": "hybrid", "buckets": "64"}
	o := small(5)
	o.Packets, o.Flows = 30_000, 2_000
	a := replay(t, model(t, o), session.Config{Seed: 7}, set)[0]
	b := replay(t, model(t, o), session.Config{Seed: 7}, set)[0]
	if !reflect.DeepEqual(fmt.Sprint(a.Report), fmt.Sprint(b.Report)) {
		t.Error("two replays with the same seed differ")
	}
}

// A budget that is too small refuses second passes, and they are counted.
func TestRefusedPassesAreCounted(t *testing.T) {
	l := replay(t, model(t, small(6)), session.Config{}, map[string]string{"method": "hybrid", "buckets": "32", "recirculate": "0.001"})[0]
	if l.Lost["recirculation"] == 0 || number(t, l.Report, "second_pass_share") > 0.002 {
		t.Errorf("budget of 0.001: %g of the packets passed twice, %d passes refused", number(t, l.Report, "second_pass_share"), l.Lost["recirculation"])
	}
}

// An algorithm after one that recirculates a packet does not take the rest of the chain for its own second pass.
func TestSecondPassOfAnother(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup(reorder.Name)
	if err != nil {
		t.Fatal(err)
	}
	var chain []session.Selected
	for n, set := range []map[string]string{{"buckets": "32"}, {"buckets": "32", "C": "16777214", "R": "16777215"}} {
		v, err := algo.NewValues(d.Name, d.Params, set)
		if err != nil {
			t.Fatal(err)
		}
		own := *d
		own.Name = fmt.Sprintf("%s-%d", d.Name, n)
		chain = append(chain, session.Selected{Descriptor: &own, Values: v})
	}
	var passes []float64
	cfg := session.Config{Algorithms: chain, Emit: func(l report.Line) error {
		passes = append(passes, number(t, l.Report, "second_passes"))
		return nil
	}}
	if err := session.ReplaySource(context.Background(), cfg, "model", model(t, small(1)), nil); err != nil {
		t.Fatal(err)
	}
	if len(passes) != 2 || passes[0] == 0 || passes[1] != 0 {
		t.Errorf("second passes %v, want some of the first algorithm and none of the second", passes)
	}
}
