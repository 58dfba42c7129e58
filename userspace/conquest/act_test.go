package conquest

import (
	"math"
	"strings"
	"testing"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/loader/pisa"
)

// Whatever is done to culprits, the programs keep the memory rules: what is dead by default is looked at here.
func TestActionsAreProven(t *testing.T) {
	for _, set := range []map[string]string{
		{"action": "ecn"}, {"action": "drop", "chance": "quadratic"}, {"action": "drop", "chance": "steps"}, {"action": "mark", "to": "7", "chance": "linear"},
		{"action": "class", "to": "1:20"}, {"action": "ecn", "whom": "everyone"}, {"action": "ecn", "snapshots": "8"},
		{"action": "report", "snapshots": "8", "ramp": "1000"}, {"action": "drop", "snapshots": "16", "ramp": "1000"},
	} {
		set["source"] = "qdisc"
		c, err := newConfig(values(t, set), false)
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
		got, err := newConfig(values(t, map[string]string{"source": "qdisc", "action": c.action, "to": c.to}), false)
		if (err == nil) != c.ok || err == nil && got.constants()["conquest_to"] != c.want {
			t.Errorf("%s to %q: %+v, %v", c.action, c.to, got, err)
		}
		if _, err := newConfig(values(t, map[string]string{"source": "tap", "action": c.action, "to": c.to}), false); err == nil || !strings.Contains(err.Error(), "conquest.source=qdisc") {
			t.Errorf("%s at a tap: %v", c.action, err)
		}
	}
	for text, want := range map[string]int64{"auto": 15_000_000, "1us": 1000, "10s": 10_000_000_000, "999ns": 0, "10001ms": 0} {
		got, err := newConfig(values(t, map[string]string{"source": "qdisc", "action": "drop", "tau": "5ms", "drop_from": text, "hold": "2ms", "whom": "everyone", "chance": "steps"}), false)
		if (err == nil) != (want != 0) || err == nil && (got.dropFrom != want || got.hold != 2_000_000 || !got.everyone || got.chance != chances["steps"]) {
			t.Errorf("drop_from=%s: %+v, %v", text, got, err)
		}
	}
}

// Whatever may leave a culprit nothing is warned of when it starts, with what mends it: all ways to drop do, at the defaults and with a short hold as well.
func TestWarnsOfStarving(t *testing.T) {
	for _, c := range []struct {
		set   map[string]string
		warns bool
	}{
		{map[string]string{"action": "drop"}, true},
		{map[string]string{"action": "drop", "hold": "1s", "drop_from": "600us"}, true},
		{map[string]string{"action": "drop", "hold": "1s", "drop_from": "600us", "chance": "linear"}, true},
		{map[string]string{"action": "drop", "hold": "1s", "drop_from": "600us", "chance": "quadratic"}, true},
		{map[string]string{"action": "drop", "hold": "1s", "drop_from": "600us", "chance": "steps"}, true},
		{map[string]string{"action": "drop", "hold": "100us", "drop_from": "20ms"}, true},
		{map[string]string{"action": "ecn", "hold": "1s", "drop_from": "600us"}, false},
		{map[string]string{"action": "mark", "to": "7"}, false},
		{map[string]string{}, false},
	} {
		c.set["source"] = "qdisc"
		got, err := newConfig(values(t, c.set), false)
		if err != nil {
			t.Fatal(err)
		}
		text := got.starves()
		if (text != "") != c.warns {
			t.Errorf("%v: %q", c.set, text)
		}
		for _, says := range []string{"conquest.action=ecn", "conquest.chance=" + got.values.Text("chance"), time.Duration(got.hold).String(), time.Duration(got.tau).String()} {
			if c.warns && !strings.Contains(text, says) {
				t.Errorf("%v: %q does not say %s", c.set, text, says)
			}
		}
	}
}
