package fridge

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

const msec = int64(time.Millisecond)

// syn makes the request of flow n, or its response.
func syn(at int64, n int, answer bool) packet.Packet { return traffic.SYN(at, n, answer) }

// deaf makes traffic in which most requests are never answered and sent again five times, as to hosts that are down: the
// answered ones have delays up to longest.
func deaf(seed uint64, gap, longest int64) (packets []packet.Packet, answered int) {
	const requests, perRequest = 30_000, 50_000 // ns
	rng := rand.New(rand.NewPCG(seed, 11))
	for n := range requests {
		at := int64(1e9) + int64(n)*perRequest
		packets = append(packets, syn(at, n, false))
		if n%3 == 0 {
			packets = append(packets, syn(at+1000+rng.Int64N(longest), n, true))
			answered++
			continue
		}
		for k := int64(1); k <= 5; k++ {
			packets = append(packets, syn(at+k*gap, n, false))
		}
	}
	return packets, answered
}

// forgetful is a fridge that takes every occurrence for a request of its own.
type forgetful struct{ *instance }

func (f forgetful) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := f.instance.Read(w, bank)
	if err == nil {
		clear(s.Words["fridge_repeats"])
		clear(s.Words[gapWords])
	}
	return s, err
}

func estimate(t *testing.T, set map[string]string, m traffic.Model, seed uint64, d *algo.Descriptor) float64 {
	t.Helper()
	l := trial{set: set, model: m, seed: seed, descriptor: d}.last(t)
	return find(t, l.Report, "delay_ns").Count
}

// TestRepeated: requests that are sent again after 200 ms take the slots of those that arrived in between like any other,
// and must count as insertions for them, but not twice for what waits longer. In every mode.
func TestRepeated(t *testing.T) {
	for _, set := range []map[string]string{{"retransmit": "keep"}, {"retransmit": "restart"}, {"correction": "table"}} {
		set["fridges"], set["legs"] = "8192@1", "false"
		packets, answered := deaf(1, 200*msec, 150*msec)
		if right := estimate(t, set, inTime(packets), 2, nil) / float64(answered); math.Abs(right-1) > 0.035 {
			t.Errorf("%v: estimate is %.3f of the truth", set, right)
		}
	}
}

// forgets is a configuration of forgetful instances.
type forgets struct{ *config }

func (c forgets) New(env algo.Env) (algo.Instance, error) {
	i, err := c.config.New(env)
	if err != nil {
		return nil, err
	}
	return forgetful{i.(*instance)}, nil
}

// TestInsistent: a request counts once, however often it is sent, whether its record is overwritten in between or not,
// and whether the answer arrives before or after the repetitions. A fridge that counts every occurrence as a request of its
// own for those that wait would be off, which proves that the traffic can show it.
func TestInsistent(t *testing.T) {
	d := descriptor()
	d.Config = algo.Typed(func(v algo.Values, s algo.Setup) (forgets, error) {
		c, err := newConfig(v, s)
		return forgets{c}, err
	})
	const requests, gap = 60_000, 10_000
	for _, c := range []struct {
		fridges      string
		lives, pause float64 // longest delay in lifetimes without repetitions; mean pause in longest delays
		share        float64
		early        bool
		bound        float64
		off          float64 // at least this far off when forgetful; 0: not tried
	}{
		{"1024@1", 1, 0.3, 0.1, false, 0.006, 0},
		{"1024@1", 1, 0.3, 1, false, 0.01, 0.1},
		{"1024@1", 1, 0.01, 1, false, 0.01, 0.2},
		{"1024@1", 1, 0.3, 1, true, 0.01, 0},
		{"1024@1/4", 1, 1, 1, false, 0.025, 0},
		{"1024@1/32", 1, 0.1, 0.5, false, 0.06, 0},
	} {
		set := map[string]string{"fridges": c.fridges, "legs": "false"}
		part := configOf(t, set).parts[0]
		delay := c.lives * part.Lifetime() * gap
		o := traffic.InsistentOptions{Requests: requests, Gap: gap, Share: c.share, Times: 3, Pause: time.Duration(c.pause * delay),
			Delay: time.Duration(delay), Early: c.early, Seed: 1}
		right := estimate(t, set, traffic.NewInsistent(o), 1, nil) / requests
		t.Logf("%+v: %.4f of the truth", c, right)
		if math.Abs(right-1) > c.bound {
			t.Errorf("%+v: estimate is %.4f of the truth", c, right)
		}
		if c.off == 0 {
			continue
		}
		if wrong := estimate(t, set, traffic.NewInsistent(o), 1, d) / requests; math.Abs(wrong-1) < c.off {
			t.Errorf("%+v: without telling repetitions apart %.4f: the test has no power", c, wrong)
		}
	}
}

// TestInsistentTable: sums of weights from the table (what groups take) are corrected for repetitions as the cells of the exact correction are. Of the
// first requests few were repeated yet, so samples of one delay have survived from one to three lifetimes, which is what a
// correction by their mean weight is 2 % off for.
func TestInsistentTable(t *testing.T) {
	const gap = 10_000
	set := map[string]string{"fridges": "1024@1/32", "legs": "false"}
	longest := configOf(t, set).parts[0].Lifetime() * gap
	o := traffic.InsistentOptions{Requests: 120_000, Gap: gap, Share: 1, Times: 3, Pause: time.Duration(0.3 * longest), Delay: time.Duration(longest), Seed: 1}
	of := map[string]float64{}
	for _, correction := range []string{"exact", "table"} {
		set["correction"] = correction
		of[correction] = estimate(t, set, traffic.NewInsistent(o), 1, nil)
	}
	set["group"], set["correction"] = "dport", "auto"
	of["group"] = estimate(t, set, traffic.NewInsistent(o), 1, nil)
	for correction, n := range of {
		if off := n/of["exact"] - 1; math.Abs(off) > 0.005 {
			t.Errorf("%s: %g requests, %+.2f %% from the exact correction of the same packets", correction, n, 100*off)
		}
	}
}

// TestRetransmitAuto: the same TSval in several segments is no repetition.
func TestRetransmitAuto(t *testing.T) {
	for _, kind := range delay.KindNames {
		if got := configOf(t, map[string]string{"match": kind}).rules.Restart; got != (kind != "tcp-timestamp") {
			t.Errorf("%s: restart is %v", kind, got)
		}
	}
}

// TestRepeatedSoon: what is repeated at once, as by a mirror port that shows every packet twice, is one insertion.
func TestRepeatedSoon(t *testing.T) {
	var packets []packet.Packet
	rng := rand.New(rand.NewPCG(1, 12))
	const requests = 20_000
	for n := range requests {
		at := int64(1e9) + int64(n)*25_000
		packets = append(packets, syn(at, n, false), syn(at+10, n, false))
		back := at + 1000 + rng.Int64N(100*msec)
		packets = append(packets, syn(back, n, true), syn(back+10, n, true))
	}
	l := trial{set: map[string]string{"fridges": "4096@1", "legs": "false"}, model: inTime(packets), seed: 3}.last(t)
	if got := find(t, l.Report, "delay_ns").Count / requests; math.Abs(got-1) > 0.03 {
		t.Errorf("estimate is %.3f of the truth", got)
	}
	if got := valueOf(t, l.Report, "repeated"); got != requests {
		t.Errorf("%g requests were repeated, want %d", got, requests)
	}
}

// TestRepeatedClock: keep measures what the user felt, restart the last try.
func TestRepeatedClock(t *testing.T) {
	for mode, want := range map[string]float64{"keep": 310e6, "restart": 10e6, "auto": 10e6} {
		packets := []packet.Packet{syn(1e9, 1, false), syn(1e9+300*msec, 1, false), syn(1e9+310*msec, 1, true)}
		l := trial{set: map[string]string{"retransmit": mode}, model: inTime(packets), seed: 1, truth: true}.last(t)
		for _, d := range []float64{find(t, l.Report, "delay_ns").Mean, find(t, *l.Truth, "delay_ns").Mean} {
			if math.Abs(d/want-1) > 0.02 {
				t.Errorf("%s: delay %g ns, want %g", mode, d, want)
			}
		}
	}
}

// TestTooLong: a delay beyond 2^32 ticks is counted, and is in no distribution; with the clock of another core or a capture
// out of order a response may arrive before its request, which is a delay of 0.
func TestTooLong(t *testing.T) {
	for _, legs := range []string{"false", "true"} {
		const longest = int64(64) << 32
		packets := []packet.Packet{
			syn(1e9, 1, false), syn(1e9+longest-msec, 1, true), // just not
			syn(2e9, 2, false), syn(2e9+longest+msec, 2, true),
			syn(3e9, 3, false), syn(3e9+4*longest+msec, 3, true),
		}
		l := trial{set: map[string]string{"legs": legs}, model: inTime(packets), seed: 1, truth: true}.last(t)
		d, truth := find(t, l.Report, "delay_ns"), find(t, *l.Truth, "delay_ns")
		if d.Count != 1 || truth.Count != 1 || math.Abs(d.Mean/float64(longest)-1) > 0.02 {
			t.Errorf("legs %s: %g delays (%g in truth), on average %g ns, want one of %d", legs, d.Count, truth.Count, d.Mean, longest)
		}
		if got := l.Lost["too_long"]; got != 2 {
			t.Errorf("legs %s: %d delays were too long, want 2", legs, got)
		}
	}
}

func TestAnswerBeforeRequest(t *testing.T) {
	late := traffic.Script{syn(2e9, 1, false), syn(2e9-10_000, 1, true)}
	l := trial{set: map[string]string{"legs": "false"}, model: &late, seed: 1}.last(t)
	if d := find(t, l.Report, "delay_ns"); d.Count != 1 || d.Mean > 64 || l.Lost["too_long"] != 0 {
		t.Errorf("%g delays, on average %g ns, %d too long: want one of none at all", d.Count, d.Mean, l.Lost["too_long"])
	}
}
