package conquest

import (
	"math"
	"strings"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Whatever is done to culprits, the programs keep the memory rules: what is dead by default is looked at here.
func TestActionsAreProven(t *testing.T) {
	for _, set := range []map[string]string{
		{"action": "ecn"}, {"action": "drop", "chance": "quadratic"}, {"action": "drop", "chance": "steps"}, {"action": "mark", "to": "7", "chance": "linear"},
		{"action": "class", "to": "1:20"}, {"action": "ecn", "whom": "everyone"}, {"action": "ecn", "snapshots": "8"},
		{"action": "report", "snapshots": "8", "ramp": "1000"}, {"action": "drop", "snapshots": "16", "ramp": "1000"},
		{"action": "ecn", "weight": "1500", "chance": "linear", "snapshots": "16", "interval": "524us"}, {"action": "drop", "weight": "1GB"},
	} {
		set["source"] = "qdisc"
		c, err := newConfig(values(t, set), algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := bpf.LoadConquest()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.configure(spec); err != nil {
			t.Fatal(err)
		}
		if _, err := pisa.Prove(spec); err != nil {
			t.Errorf("%v: %v", set, err)
		}
	}
}

// What an action needs is read to its edges, and reaches the program; without a queue of the host's own nothing is acted on.
func TestActionsAreRead(t *testing.T) {
	for _, c := range []struct {
		action, to string
		want       uint32
		ok         bool
	}{
		{"mark", "0", 0, true}, {"mark", "0x20", 0x20, true}, {"mark", "4294967295", math.MaxUint32, true}, {"mark", "4294967296", 0, false}, {"mark", "-1", 0, false},
		{"mark", "", 0, false}, {"class", "1:20", 0x10020, true}, {"class", "ffff:ffff", 0xffffffff, true}, {"class", "1:0", 0x10000, true}, {"class", "a:b", 0xa000b, true},
		{"class", "0:1", 0, false}, {"class", "10000:1", 0, false}, {"class", "1:10000", 0, false}, {"class", "1", 0, false}, {"class", "x:1", 0, false}, {"class", "1:x", 0, false},
		{"ecn", "no matter what", 0, true},
	} {
		got, err := newConfig(values(t, map[string]string{"source": "qdisc", "action": c.action, "to": c.to}), algo.Setup{})
		if (err == nil) != c.ok || err == nil && got.constants()[constant.ConquestTo] != c.want {
			t.Errorf("%s to %q: %+v, %v", c.action, c.to, got, err)
		}
		if _, err := newConfig(values(t, map[string]string{"source": "tap", "action": c.action, "to": c.to}), algo.Setup{}); err == nil || !strings.Contains(err.Error(), "conquest.source=qdisc") {
			t.Errorf("%s at a tap: %v", c.action, err)
		}
	}
	for text, want := range map[string]int64{"auto": 15_000_000, "1us": 1000, "10s": 10_000_000_000, "999ns": 0, "10001ms": 0} {
		got, err := newConfig(values(t, map[string]string{"source": "qdisc", "action": "drop", "tau": "5ms", "drop_from": text, "hold": "2ms", "whom": "everyone", "chance": "steps"}), algo.Setup{})
		if (err == nil) != (want != 0) || err == nil && (got.dropFrom != want || got.hold != 2_000_000 || !got.everyone || got.chance != chances["steps"]) {
			t.Errorf("drop_from=%s: %+v, %v", text, got, err)
		}
	}
}

// A weight reaches the program, to its edges.
func TestWeights(t *testing.T) {
	for text, want := range map[string]uint32{"0": 0, "1": 1, "1500": 1500, "15kB": 15_000, "1GB": 1_000_000_000} {
		got, err := newConfig(values(t, map[string]string{"source": "qdisc", "action": "ecn", "weight": text}), algo.Setup{})
		if err != nil || got.constants()[constant.ConquestWeight] != want {
			t.Errorf("weight=%s: %+v, %v, want %d", text, got, err, want)
		}
	}
	if _, err := algo.NewValues(Name, params, map[string]string{"weight": "1000000001B"}); err == nil {
		t.Error("more than 1GB is allowed")
	}
}

// Snapshots that are longer than what is waited are warned of where something is done to culprits, with what mends it.
func TestWarnsOfLongSnapshots(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"action": "ecn"}, ""},
		{map[string]string{"action": "ecn", "tau": "524288ns"}, ""},
		{map[string]string{"action": "ecn", "tau": "524287ns"}, "conquest.interval=262.143µs conquest.snapshots=16"},
		{map[string]string{"action": "drop", "longest": "33ms", "snapshots": "8", "tau": "1ms", "weight": "1500"}, "one snapshot (4.194304ms) is no evidence"},
		{map[string]string{"action": "ecn", "tau": "100us", "whom": "everyone"}, ""},
		{map[string]string{"tau": "100us"}, ""},
	} {
		c.set["source"] = "qdisc"
		got, err := newConfig(values(t, c.set), algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		if text := got.blind(); (text != "") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%v: %q", c.set, text)
		}
	}
}

// What can leave a flow less than the stated floor is warned of when it starts, with what mends it; nothing else is: whatever chance, drop_from and tau.
func TestWarnsOfStarving(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want []string
	}{
		{map[string]string{"action": "drop"}, nil},
		{map[string]string{"action": "drop", "drop_from": "600us", "chance": "steps", "tau": "300us"}, nil},
		{map[string]string{"action": "drop", "gap": "2ms"}, nil},
		{map[string]string{"action": "drop", "gap": "1ms"}, []string{"conquest.gap=1ms", "67.108864ms", "conquest.gap=2ms"}},
		{map[string]string{"action": "drop", "hold": "1s"}, []string{"conquest.hold=1s", "understands ECN", "conquest.hold=10ms"}},
		{map[string]string{"action": "ecn"}, nil},
		{map[string]string{"action": "ecn", "hold": "11ms"}, []string{"conquest.hold=11ms", "two segments"}},
		{map[string]string{"action": "ecn", "gap": "100us"}, nil},
		{map[string]string{"action": "mark", "to": "7", "hold": "1s"}, nil},
		{map[string]string{}, nil},
	} {
		c.set["source"] = "qdisc"
		got, err := newConfig(values(t, c.set), algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		text := got.starves()
		if (text != "") != (c.want != nil) {
			t.Errorf("%v: %q", c.set, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %q lacks %s", c.set, text, want)
			}
		}
	}
}

// A gap is rounded up to a power of two of ticks, to its edges.
func TestGaps(t *testing.T) {
	for text, want := range map[string]uint32{"100us": 8, "16384ns": 0, "1048576ns": 64, "1048577ns": 128, "10ms": 1024, "1s": 65536} {
		v, err := algo.NewValues(Name, params, map[string]string{"source": "qdisc", "action": "drop", "gap": text})
		if (err == nil) != (want != 0) {
			t.Errorf("gap=%s: %v", text, err)
		}
		if err != nil {
			continue
		}
		if got, err := newConfig(v, algo.Setup{}); err != nil || got.gap != want {
			t.Errorf("gap=%s: %d ticks, want %d (%v)", text, got.gap, want, err)
		}
	}
}
