package conquest

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

func values(t *testing.T, set map[string]string) algo.Values {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func configured(t *testing.T, set map[string]string) *config {
	t.Helper()
	c, err := newConfig(values(t, set), algo.Setup{Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is left open follows from the queue: snapshots reach back a full one, and it is congested from an eighth of that on.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		set                    map[string]string
		longest, interval, tau int64
	}{
		{map[string]string{"rate": "10Gbit", "buffer": "8MB"}, 6_400_000, 1 << 21, 800_000},
		{map[string]string{"rate": "10Gbit", "buffer": "8MB", "snapshots": "8"}, 6_400_000, 1 << 20, 800_000},
		{map[string]string{"rate": "1Gbit", "interval": "1ms", "tau": "5ms"}, 8_000_000, 1 << 20, 5_000_000},
		{map[string]string{"source": "tap"}, 8_000_000, 1 << 21, 1_000_000},
		{map[string]string{"source": "tap", "longest": "40us"}, 40_000, 1 << leastShift, 5_000},
		{map[string]string{"rate": "1kbit", "buffer": "1MB"}, 2e9, 1 << mostShift, 250_000_000},
		{map[string]string{"interval": "1048576ns"}, 8_000_000, 1 << 20, 1_000_000},
		{map[string]string{"interval": "1048577ns"}, 8_000_000, 1 << 21, 1_000_000},
	} {
		got := configured(t, c.set)
		if got.longest != c.longest || got.interval() != c.interval || got.tau != c.tau {
			t.Errorf("%v: longest %d, interval %d, tau %d; want %d, %d, %d", c.set, got.longest, got.interval(), got.tau, c.longest, c.interval, c.tau)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{"snapshots", "6", "powers of two"}, {"columns", "1000", "powers of two"}, {"queues", "3", "powers of two"}, {"digests", "100", "powers of two"},
		{"rate", "10", "10Gbit or 100Mbit"}, {"rate", "-1Gbit", "1kbit to 1000Gbit"}, {"rate", "NaNbit", "1kbit to 1000Gbit"}, {"rate", "2000Gbit", "1kbit to 1000Gbit"},
		{"interval", "1s", "auto and durations"}, {"tau", "never", "auto and durations"}, {"longest", "1us", "20µs"},
	} {
		if _, err := newConfig(values(t, map[string]string{c.key: c.text}), algo.Setup{Replay: true}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s=%s: %v, want something with %q", c.key, c.text, err, c.want)
		}
	}
	if _, err := newConfig(values(t, map[string]string{"columns": "16384", "queues": "2"}), algo.Setup{Replay: true}); err == nil || !strings.Contains(err.Error(), "16384 columns in all") {
		t.Errorf("too many columns: %v", err)
	}
	if _, err := newConfig(values(t, map[string]string{"source": "replay"}), algo.Setup{}); err == nil || !strings.Contains(err.Error(), "xdpmon replay") {
		t.Errorf("a model of a live link: %v", err)
	}
	if _, err := descriptor().New(values(t, map[string]string{"source": "tap", "egress": "nosuchlink"}), algo.Env{}); err == nil || !strings.Contains(err.Error(), "no such interface") {
		t.Errorf("an interface that is not there: %v", err)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"10Gbit": 1e10, "2.5Mbit": 2.5e6, "800kbit/s": 8e5, "1Gbitps": 1e9, "5000bit": 5000} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%s is %g, %v", text, got, err)
		}
	}
}

// Every array of the object has a size and a stage, in every form; those that are used rise with the snapshots.
func TestArrays(t *testing.T) {
	for _, set := range []map[string]string{{}, {"snapshots": "2"}, {"snapshots": "8"}, {"snapshots": "16", "ramp": "1kB", "delay": "longest"}, {"rows": "1", "queues": "8"}} {
		spec, err := bpf.LoadConquest()
		if err != nil {
			t.Fatal(err)
		}
		c := configured(t, set)
		if err := c.configure(spec); err != nil {
			t.Fatal(err)
		}
		arrays := c.arrays()
		for name, ms := range spec.Maps {
			if _, known := arrays[name]; ms.Type == ebpf.Array && strings.HasPrefix(name, "conquest_") && !known {
				t.Errorf("%v: nobody sizes %s", set, name)
			}
		}
		if arrays["conquest_peak"].stage <= arrays["conquest_burst"].stage || arrays["conquest_burst"].stage <= arrays["conquest_s0_0"].stage {
			t.Errorf("%v: stages %+v", set, arrays)
		}
	}
}

// The plan's bound on collisions is that of the sketch, and more memory never asks for a larger alpha.
func TestPlan(t *testing.T) {
	before := 2.0
	for _, memory := range []int64{64 << 10, 256 << 10, 1 << 20} {
		b, err := descriptor().Plan(values(t, nil), algo.PlanArgs{RatePerSecond: 1e6, MaxDelayNS: 6_000_000, MemoryBytes: memory})
		if err != nil {
			t.Fatal(err)
		}
		row := b.Tables[0].Rows[0]
		if used, alpha := row[2].(int64), row[3].(float64); used > memory || alpha >= before {
			t.Errorf("%d bytes: takes %d, alpha from %g (%g with less)", memory, used, alpha, before)
		} else {
			before = alpha
		}
	}
	for _, bad := range []algo.PlanArgs{{MaxDelayNS: 6e6, MemoryBytes: 1000}, {MaxDelayNS: 1000, MemoryBytes: 1 << 20}} {
		if _, err := descriptor().Plan(values(t, nil), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// What source=auto is depends on the parameters alone; a tap on one interface is refused with the remedy.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		set    map[string]string
		replay bool
		want   bpf.ConquestConquestSourceKind
		text   string
	}{
		{nil, true, sourceModel, ""},
		{nil, false, sourceCarried, "qdisc"},
		{map[string]string{"egress": "7"}, false, sourceTap, "tap, since"},
		{map[string]string{"egress": "7"}, true, sourceModel, ""},
		{map[string]string{"source": "tap"}, false, sourceTap, ""},
		{map[string]string{"source": "qdisc", "egress": "7"}, false, sourceCarried, ""},
		{map[string]string{"source": "qdisc"}, true, sourceCarried, ""},
	} {
		got, err := newConfig(values(t, c.set), algo.Setup{Replay: c.replay})
		if err != nil || got.source != c.want {
			t.Fatalf("%v, replay %v: %v, %v; want %v", c.set, c.replay, got.source, err, c.want)
		}
		if text := got.chosenText(); (text != "") != (c.text != "") || !strings.Contains(text, c.text) {
			t.Errorf("%v, replay %v: %q, want %q", c.set, c.replay, text, c.text)
		}
	}
	for interfaces, refused := range map[int]bool{0: false, 1: true, 2: false} {
		for set, tap := range map[string]bool{"tap": true, "qdisc": false, "auto": false} {
			_, err := descriptor().New(values(t, map[string]string{"source": set}), algo.Env{Interfaces: interfaces})
			if (err != nil) != (refused && tap) || err != nil && !strings.Contains(err.Error(), "conquest.source=qdisc") {
				t.Errorf("source=%s on %d interfaces: %v", set, interfaces, err)
			}
		}
	}
}

// Coarse windows cover a second beside snapshots of the usual length, never more than 32 bits count, and are not there where they would show nothing new.
func TestCoarse(t *testing.T) {
	for _, c := range []struct {
		set              map[string]string
		interval, covers int64
	}{
		{map[string]string{"longest": "8ms"}, 1 << 28, 3 << 28},
		{map[string]string{"longest": "2ms"}, 1 << 26, 3 << 26},
		{map[string]string{"longest": "4ms", "snapshots": "2"}, 1 << 28, 3 << 28},
		{map[string]string{"longest": "8ms", "snapshots": "8"}, 0, 7 << 20},
		{map[string]string{"longest": "200ms"}, 1 << 28, 3 << 28},
		{map[string]string{"interval": "134217728ns"}, 1 << 28, 3 << 28},
		{map[string]string{"longest": "8ms", "snapshots": "16"}, 0, 15 << 19},
		{map[string]string{"longest": "8ms", "reading": "nearest"}, 0, 3 << 21},
	} {
		got := configured(t, c.set)
		if got.coarseInterval() != c.interval || got.reaches() != c.covers {
			t.Errorf("%v: coarse windows of %d, %d covered; want %d and %d", c.set, got.coarseInterval(), got.reaches(), c.interval, c.covers)
		}
		if got.coarse > 0 && got.arrays()["conquest_told"].stage != 10 {
			t.Errorf("%v: stages %+v", c.set, got.arrays())
		}
	}
}

// What a plan states of memory is the sum of the arrays that the program has.
func TestRegisterBytes(t *testing.T) {
	for _, set := range []map[string]string{
		{}, {"snapshots": "2"}, {"snapshots": "8", "queues": "4", "columns": "1024"}, {"rows": "1"}, {"source": "qdisc"}, {"source": "qdisc", "rows": "1", "queues": "8"},
	} {
		c, err := newConfig(values(t, set), algo.Setup{Replay: set["source"] == ""})
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		for name, a := range c.arrays() {
			if a.entries == 1 {
				continue
			}
			many := 1
			if rest, _ := strings.CutPrefix(name, "conquest_"); len(rest) < 6 && strings.ContainsAny(rest[:1], "trc") && rest != "told" && rest != "tap" { // four side by side
				many = 4
			}
			want += 8 * int64(many*a.entries)
		}
		if got := c.registerBytes(); got != want {
			t.Errorf("%v: %d bytes, arrays have %d", set, got, want)
		}
	}
}
