package rttarray

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func values(t *testing.T, set map[string]string) algo.Values {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		contains string
	}{
		{map[string]string{"entries": "1000"}, "powers of two"},
		{map[string]string{"entries": "4", "stages": "4"}, "2 entries each"},
		{map[string]string{"expiry": "10ns"}, "64ns"},
		{map[string]string{"expiry": "1h"}, "274s"},
	} {
		_, err := newConfig(values(t, c.set), algo.Setup{})
		if err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: %v, want something about %q", c.set, err, c.contains)
		}
	}
}

// replay runs a model of the paper's synthetic trace through the real program.
func replay(t *testing.T, set map[string]string, longest time.Duration) report.Line {
	t.Helper()
	return replaySeed(t, set, longest, 3)
}

func replaySeed(t *testing.T, set map[string]string, longest time.Duration, seed uint64) report.Line {
	t.Helper()
	m, err := traffic.NewLogUniform(traffic.LogUniformOptions{Requests: 40_000, Max: longest, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return replayModel(t, set, m, seed)
}

func replayModel(t *testing.T, set map[string]string, m traffic.Model, seed uint64) report.Line {
	t.Helper()
	testutil.NeedRoot(t)
	var line report.Line
	cfg := session.Config{
		Algorithms: []session.Selected{{Descriptor: descriptor(), Values: values(t, set)}},
		Seed:       seed, Truth: true, Notice: t.Logf,
		Emit: func(l report.Line) error { line = l; return nil },
	}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(m), nil); err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	return line
}

func number(t *testing.T, b report.Body, name string) float64 {
	t.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	t.Fatalf("no value %s", name)
	return 0
}

var all = []map[string]string{
	{"evict": "overwrite"},
	{"evict": "overwrite", "stages": "4"},
	{"evict": "expiry", "expiry": "8ms"},
	{"evict": "expiry", "expiry": "8ms", "stages": "4"},
	{"evict": "cascade", "stages": "1"},
	{"evict": "cascade", "stages": "2"},
	{"evict": "cascade", "stages": "4"},
}

// TestRoomy: with enough entries all methods are right.
func TestRoomy(t *testing.T) {
	for _, set := range all {
		set := map[string]string{"evict": set["evict"], "stages": orOne(set["stages"]), "expiry": "2ms", "entries": "65536"}
		l := replay(t, set, time.Millisecond)
		got, want := number(t, l.Report, "matched"), number(t, *l.Truth, "matched")
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%v: %g of %g matched", set, got, want)
		}
		if notes := len(l.Report.Notes); (notes > 0) != (set["evict"] != "cascade") {
			t.Errorf("%v: %d notes: an uncorrected result needs a note", set, notes)
		}
		d, truth := l.Report.Distributions[0], l.Truth.Distributions[0]
		for i, q := range d.Quantiles[:4] {
			if off := math.Abs(q.Value/truth.Quantiles[i].Value - 1); off > 0.05 {
				t.Errorf("%v: %s is %.1f %% off", set, q.Name, 100*off)
			}
		}
	}
}

func orOne(stages string) string {
	if stages == "" {
		return "1"
	}
	return stages
}

// TestBias: what the baselines are for. 8 ms are 8000 requests, with 1024 entries most of the slow responses find their
// request overwritten: the median is a fraction. The cascade corrects and does not have the bias in its count.
func TestBias(t *testing.T) {
	for _, set := range all {
		set["entries"] = "1024"
		l := replay(t, set, 8*time.Millisecond)
		d, truth := l.Report.Distributions[0], l.Truth.Distributions[0]
		p95 := d.At(0.95) / truth.At(0.95)
		share := d.Count / truth.Count
		t.Logf("%v: count %.2f of the truth, p95 %.2f of it", set, share, p95)
		corrected := set["evict"] == "cascade"
		if !corrected && share > 0.9 {
			t.Errorf("%v: %.2f of the responses matched: the test is too easy", set, share)
		}
		if set["evict"] == "overwrite" && p95 > 0.7 {
			t.Errorf("%v: p95 is %.2f of the truth, it should be far too small", set, p95)
		}
		if corrected && set["stages"] == "1" && math.Abs(share-1) > 0.15 {
			t.Errorf("%v: count is %.2f of the truth", set, share)
		}
		if number(t, l.Report, "requests") != number(t, *l.Truth, "requests") {
			t.Errorf("%v: requests were lost", set)
		}
		inserted, repeated, rejected := number(t, l.Report, "inserted"), number(t, l.Report, "repeated"), number(t, l.Report, "rejected")
		if sum := inserted + repeated + rejected; sum != number(t, l.Report, "requests") {
			t.Errorf("%v: %g requests are accounted for of %g", set, sum, number(t, l.Report, "requests"))
		}
		if (rejected > 0) != (set["evict"] == "expiry") {
			t.Errorf("%v: %g requests were rejected", set, rejected)
		}
	}
}

// TestConcentrated is section 4.1: of requests that took several lifetimes, one stage keeps some, which stand for all;
// four keep hardly any, so that there is nothing to correct, or a lucky one that stands for far too many.
func TestConcentrated(t *testing.T) {
	slow := func(stages string, seed uint64) float64 {
		l := replaySeed(t, map[string]string{"evict": "cascade", "stages": stages, "entries": "1024"}, 4*time.Millisecond, seed)
		d, truth := l.Report.Distributions[0], l.Truth.Distributions[0]
		const limit = 2.5e6 // ns, 2.5 lifetimes
		return d.Count * (1 - d.Share(limit)) / (truth.Count * (1 - truth.Share(limit)))
	}
	offOne, offFour := 0.0, 0.0
	for seed := range uint64(4) {
		one, four := slow("1", seed+1), slow("4", seed+1)
		t.Logf("beyond 2.5 lifetimes: %.2f of the truth with one stage, %.2f with four", one, four)
		if math.Abs(one-1) > 0.4 {
			t.Errorf("beyond 2.5 lifetimes: %.2f of the truth with one stage", one)
		}
		offOne, offFour = offOne+math.Abs(one-1), offFour+math.Abs(four-1)
	}
	if offFour < 4*offOne {
		t.Errorf("beyond 2.5 lifetimes four stages are off by %.2f, one by %.2f", offFour/4, offOne/4)
	}
}

// TestTooLong: a delay beyond 2^32 ticks is counted, and is in no distribution; a response in front of its request (a
// capture out of order, another core's clock) is one of 0.
func TestTooLong(t *testing.T) {
	testutil.NeedRoot(t)
	const longest = int64(64) << 32
	for _, set := range []map[string]string{{"evict": "overwrite"}, {"evict": "cascade", "stages": "2"}} {
		packets := traffic.Script{
			traffic.SYN(1e9, 1, false), traffic.SYN(2e9, 2, false), traffic.SYN(3e9, 3, false), traffic.SYN(3e9-10_000, 3, true),
			traffic.SYN(1e9+longest-1e6, 1, true), traffic.SYN(2e9+longest+1e6, 2, true),
		}
		l := replayModel(t, set, &packets, 1)
		d := l.Report.Distributions[0]
		if math.Abs(d.Count-2) > 0.01 || math.Abs(2*d.Mean/float64(longest)-1) > 0.02 || l.Lost["too_long"] != 1 {
			t.Errorf("%v: %g delays, on average %g ns, and %d too long: want 0 and %d, and one", set, d.Count, d.Mean, l.Lost["too_long"], longest)
		}
	}
}

// A cascade of so many stages stores as many requests, wherever they hash to: a new one pushes each down by at most one.
func TestCascadeHoldsItsDepth(t *testing.T) {
	testutil.NeedRoot(t)
	for _, stages := range []int{1, 2, 4} {
		var packets traffic.Script
		const rounds = 200
		for n := range rounds {
			at := int64(1e9) + int64(n)*1e6
			for k := range stages {
				packets = append(packets, traffic.SYN(at+int64(k)*1000, n*stages+k, false))
			}
			for k := range stages {
				packets = append(packets, traffic.SYN(at+5e5+int64(k)*1000, n*stages+k, true))
			}
		}
		set := map[string]string{"evict": "cascade", "stages": fmt.Sprint(stages), "entries": fmt.Sprint(max(4, 2*stages))}
		l := replayModel(t, set, &packets, 1)
		if got := number(t, l.Report, "matched"); got != float64(rounds*stages) {
			t.Errorf("%d stages: %g of %d requests were held", stages, got, rounds*stages)
		}
	}
}
