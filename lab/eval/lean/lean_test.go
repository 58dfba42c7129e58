package lean

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// small is a fourteenth of a minute, with victims enough that a list of 100 is theirs.
func small(seed uint64) traffic.LeanOptions {
	return traffic.LeanOptions{Packets: 500_000, Flows: 26_000, Delay: 50 * time.Millisecond, Loss: 0.04, Late: 0.04, Again: 0.01, Seed: seed}
}

// The bars at a fourteenth of the traffic, where the same memory has less to hold but truths are small numbers, too: the
// hundredth flow has one or two events. 75 % leaves ten points for that and for chance (100 draws: 4 points).
func TestRecall(t *testing.T) {
	testutil.NeedRoot(t)
	list := shipped()
	quick := eval.NewPage(t.TempDir(), "lean", true, t.Logf)
	outcomes, _, err := run(t.Context(), quick, []traffic.LeanOptions{small(1), small(2)}, list)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range list {
		o := outcomes[n]
		if o.recall().mean < 0.75 {
			t.Errorf("%s: recall %s", c.statistic, o.recall())
		}
		if o.precision().mean < 0.75 {
			t.Errorf("%s: precision %s", c.statistic, o.precision())
		}
		if m := o.memory(); m <= 0 || m > base {
			t.Errorf("%s: %.0f bytes are used, at most %d are allowed", c.statistic, m, base)
		}
	}
}

// A scan costs no more than five points.
func TestScan(t *testing.T) {
	testutil.NeedRoot(t)
	list := []contestant{{"latency", false, base}, {"retrans", false, base}}
	quiet, loud := small(3), small(3)
	loud.Scan = 7_000
	quick := eval.NewPage(t.TempDir(), "lean", true, t.Logf)
	outcomes, truths, err := run(t.Context(), quick, []traffic.LeanOptions{quiet, loud}, list)
	if err != nil {
		t.Fatal(err)
	}
	if truths[1].packets != truths[0].packets+7000 {
		t.Errorf("%d packets with the scan, %d without", truths[1].packets, truths[0].packets)
	}
	for n, c := range list {
		if fall := outcomes[n][0].recall - outcomes[n][1].recall; fall > mostFall {
			t.Errorf("%s: recall falls by %.1f points", c.statistic, 100*fall)
		}
	}
}

// On a real capture every flow with ten events or more is named in 40 KB. The order is right as far as the clock's ticks can show,
// where no record of a segment that waits for its ACK is overwritten: one large delay that is missing would move its flow, so the
// order of latency is asked for with more memory.
func TestCaptures(t *testing.T) {
	testutil.NeedRoot(t)
	for _, file := range captureNames {
		path := testutil.Trace(t, file+".pcap")
		tallies, err := count(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := replayed(t.Context(), path, 1, tallies)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range statistics {
			if f := all[0][i]; !f.complete() || s != "latency" && !f.ordered() {
				t.Errorf("%s, %s, 40 KB: %d of %d flows are named, %d of %d pairs in the other order", file, s, f.named, f.flows, f.told, f.pairs)
			}
			if f := all[1][i]; !f.complete() || !f.ordered() {
				t.Errorf("%s, %s, 640 KB: %d of %d flows are named, %d of %d pairs in the other order", file, s, f.named, f.flows, f.told, f.pairs)
			}
		}
	}
}

// Flows that have as much as the last one of the true list are right in it, and no others.
func TestRank(t *testing.T) {
	tallies := map[heavy.Key]exact.Tally{}
	for i := range 150 {
		tallies[heavy.Key{uint64(i + 1), 1}] = exact.Tally{Again: uint64(max(3, 100-i))} // 97 different ones, 53 with 3
	}
	r := rank(tallies, "retrans")
	if r.want != 100 || r.last != 3 || len(r.top) != 150 {
		t.Errorf("list of %d, last %g, %d right flows", r.want, r.last, len(r.top))
	}
	delete(tallies, heavy.Key{150, 1})
	if r := rank(tallies, "loss"); r.want != 0 || len(r.top) != 0 {
		t.Errorf("nothing is lost, but the list has %d flows", r.want)
	}
}

// What is missing, and pairs that a list has the other way round, are found.
func TestCompare(t *testing.T) {
	tallies := map[string]exact.Tally{"a": {Again: 30}, "b": {Again: 20}, "c": {Again: 10}, "d": {Again: 9}, "e": {Again: 11}}
	f := compare(map[string]float64{"a": 15, "b": 21, "c": 10, "d": 99}, "retrans", tallies)
	if f.flows != 4 || f.named != 3 || f.pairs != 3 || f.reversed != 1 || f.told != 1 || f.worst != 1 {
		t.Errorf("%+v", f)
	}
}

// The calculations of the variance section against draws.
func TestBitmapDeviation(t *testing.T) {
	if d := bitmapDeviation(5000, 3277); d < 81 || d > 83 { // the reading notes have 82
		t.Errorf("5000 packets in 3277 bits: deviation %.1f", d)
	}
}

func TestVariance(t *testing.T) {
	_, err := leftovers(traffic.LeanOptions{Packets: 60_000, Flows: 3_000, Heavy: 100, Victims: 20, Loss: -1, Background: -1, Unanswered: -1, ZeroID: -1, RandomID: -1, V6: -1})
	if err == nil {
		t.Fatal("a negative share of losses is possible")
	}
	list, err := leftovers(traffic.LeanOptions{Packets: 60_000, Flows: 3_000, Heavy: 100, Victims: 20, Background: -1, Unanswered: -1, ZeroID: -1, RandomID: -1, V6: -1})
	if err != nil {
		t.Fatal(err)
	}
	walks := 0.0
	for _, f := range list {
		// Nothing is lost, all is answered: signed times are the delays, and a walk has only its two ends.
		if total := float64(f.tally.Latency) / 1e9; f.signed < total-1e-6 || f.signed > total+1e-6 {
			t.Fatalf("signed times leave %.9f s, delays are %.9f s", f.signed, total)
		}
		if f.walk < -2 || f.walk > 2 {
			t.Fatalf("a walk of a flow without loss ends at %g", f.walk)
		}
		walks += f.walk * f.walk
	}
	// With both ends' parities fair: 0 or 4 by turns (both alone: 2 on average) or 1 or 0: a mean of 1.
	if mean := walks / float64(len(list)); mean < 0.85 || mean > 1.15 {
		t.Errorf("residue of a flow has variance %.2f, want 1", mean)
	}
	if got := expect(list, "latency", func(f *left) float64 { return f.signed }, 0); got != 1 {
		t.Errorf("recall without noise is %g", got)
	}
}
