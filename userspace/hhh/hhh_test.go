package hhh

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// TestStackRoom: what has room in a stack is accepted, and what has none is refused with the number of levels that there are.
func TestStackRoom(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		levels   int // 0: refused
		contains string
	}{
		{map[string]string{}, 3, ""},
		{map[string]string{"level": "nibble"}, 6, ""},
		{map[string]string{"family": "6"}, 7, ""},
		{map[string]string{"family": "6", "bits6": "36", "level": "nibble"}, 7, ""},
		{map[string]string{"family": "6", "bits6": "128"}, 0, "1 to 7 levels above 8 bits, 15 are asked for"},
		{map[string]string{"family": "6", "level": "nibble"}, 0, "1 to 7 levels above 8 bits, 14 are asked for"},
		{map[string]string{"family": "6", "bits6": "16"}, 1, ""},
		{map[string]string{"family": "6", "bits6": "8"}, 0, "0 are asked for"},
		{map[string]string{"dimension": "both"}, 0, "stacking counts one address"},
	} {
		set := map[string]string{"method": "stacking"}
		for k, v := range c.set {
			set[k] = v
		}
		v, err := algo.NewValues(Name, params, set)
		if err != nil {
			t.Fatal(err)
		}
		got, err := newConfig(v, algo.Setup{})
		switch {
		case c.levels == 0 && (err == nil || !strings.Contains(err.Error(), c.contains)):
			t.Errorf("%v: %v, want %q", c.set, err, c.contains)
		case c.levels > 0 && (err != nil || got.stackLevels() != c.levels):
			t.Errorf("%v: %v, want %d levels", c.set, err, c.levels)
		}
	}
}

// TestStackPrefix: a key of the data plane and its prefix, also where no bit is left to mark it.
func TestStackPrefix(t *testing.T) {
	for _, c := range []struct {
		key  uint64
		bits int
		want uint64
	}{{0x0a010000_00000001, 16, 0x0a01000000000000}, {1, 24, 0}, {^uint64(0), 64, 0}, {0x20010db800000001, 64, 0x20010db800000001}} {
		if got := stackPrefix(c.key, c.bits); got != c.want {
			t.Errorf("key %#x of %d bits: %#x, want %#x", c.key, c.bits, got, c.want)
		}
	}
}

// Bytes are counted in packets of their mean size, however few.
func TestDeviationOfOnePacket(t *testing.T) {
	v, err := algo.NewValues("hhh", descriptor().Params, map[string]string{"count": "bytes"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	n := make(counts, bpf.HhhHhhCounterHHH_COUNTS)
	n[bpf.HhhHhhCounterHHH_PACKETS], n[bpf.HhhHhhCounterHHH_IPV4] = 1, 1500
	h := heavy.Heavy{Count: 1500, Prefix: heavy.Prefix{Src: netip.MustParsePrefix("192.0.2.1/32")}}
	h.Count *= c.draws(true)
	want := math.Sqrt(h.Count * 1500 * (c.draws(true) - 1))
	if got := c.deviation(h, n, seen{}); math.Abs(got-want) > 1e-6*want {
		t.Errorf("%g, want %g", got, want)
	}
}

// The default method and initial value: stacking for one family if there is memory, and never on a switch.
func TestAuto(t *testing.T) {
	for _, c := range []struct {
		set             map[string]string
		hash            algo.Hash
		stacks, adapts  bool
		initial, budget float64
	}{
		{nil, algo.HashFast, false, true, 1, 1},
		{map[string]string{"family": "4"}, algo.HashFast, true, false, 1, 1},
		{map[string]string{"family": "6"}, algo.HashFast, true, false, 1, 1},
		{map[string]string{"family": "6", "bits6": "128"}, algo.HashFast, false, true, 1, 1},
		{map[string]string{"family": "4", "dimension": "both"}, algo.HashFast, false, true, 1, 1},
		{map[string]string{"family": "4", "entries": "65536"}, algo.HashFast, true, false, 16, 1},
		{map[string]string{"family": "4", "count": "bytes"}, algo.HashFast, true, false, 1500, 1},
		{map[string]string{"family": "4"}, algo.HashCRC, false, false, 100, 2. / 101},
		{map[string]string{"family": "4", "initial": "99", "method": "random-prefix"}, algo.HashFast, false, false, 99, .02},
		{map[string]string{"method": "stacking", "initial": "99"}, algo.HashFast, true, false, 99, .06},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		got, err := newConfig(v, algo.Setup{Hash: c.hash})
		if err != nil {
			t.Fatalf("%v: %v", c.set, err)
		}
		if got.stacking != c.stacks || got.ways.Adapts != c.adapts || float64(got.ways.Initial) != c.initial || math.Abs(got.budget-c.budget) > 1e-9 {
			t.Errorf("%v %v: stacking %v, adapts %v, initial %d, budget %g, want %+v", c.set, c.hash, got.stacking, got.ways.Adapts, got.ways.Initial, got.budget, c)
		}
	}
	for _, bad := range []string{"", "-1", "1000001", "many"} {
		v, err := algo.NewValues(Name, params, map[string]string{"initial": bad})
		if err == nil {
			_, err = newConfig(v, algo.Setup{})
		}
		if err == nil {
			t.Errorf("initial %q is taken", bad)
		}
	}
}

// By bit whole keys are the default, and stacking has no stages; 8 bits are exact where 256 counters hold them, and never on a switch.
func TestWholeAndExact(t *testing.T) {
	for _, c := range []struct {
		set     map[string]string
		hash    algo.Hash
		whole   bool
		exact   int
		draws   float64
		refused string
	}{
		{set: nil, exact: 1, draws: 3},
		{set: map[string]string{"exact8": "off"}, draws: 4},
		{set: nil, hash: algo.HashCRC, draws: 4},
		{set: map[string]string{"level": "nibble"}, exact: 2, draws: 6},
		{set: map[string]string{"level": "bit"}, whole: true, exact: 8, draws: 1},
		{set: map[string]string{"level": "bit", "family": "4"}, whole: true, exact: 8, draws: 1},
		{set: map[string]string{"level": "bit", "method": "random-prefix"}, exact: 8, draws: 24},
		{set: map[string]string{"level": "bit"}, hash: algo.HashCRC, draws: 32},
		{set: map[string]string{"method": "whole", "dimension": "both"}, whole: true, draws: 1},
		{set: map[string]string{"dimension": "both"}, draws: 25},
		{set: map[string]string{"bits6": "8"}, draws: 4},
		{set: map[string]string{"method": "stacking"}, draws: 4},
		{set: map[string]string{"bits6": "8", "exact8": "on"}, refused: "no level of IPv6 is left"},
		{set: map[string]string{"dimension": "both", "exact8": "on"}, refused: "choose a dimension"},
		{set: map[string]string{"method": "stacking", "exact8": "on"}, refused: "always does"},
		{set: map[string]string{"level": "bit", "dimension": "both"}, refused: "1,089 pairs"},
		{set: map[string]string{"level": "bit", "method": "stacking", "family": "4"}, refused: "24 are asked for"},
		{set: map[string]string{"method": "whole"}, hash: algo.HashCRC, refused: "a switch has no whole keys"},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		got, err := newConfig(v, algo.Setup{Hash: c.hash})
		switch {
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%v: %v, want %q", c.set, err, c.refused)
		case c.refused == "" && err != nil:
			t.Errorf("%v: %v", c.set, err)
		case c.refused == "" && (got.whole != c.whole || got.exact != c.exact || got.draws(true) != c.draws):
			t.Errorf("%v: whole %v, %d exact levels, %g draws, want %+v", c.set, got.whole, got.exact, got.draws(true), c)
		}
	}
}

// The interval of a drawn count has 1.96 standard deviations of the drawing to both sides, and grows with the size of a packet as the counts do.
func TestDrawn(t *testing.T) {
	for _, c := range []struct{ draws, counted, sd float64 }{{16, 10000, math.Sqrt(16 * 15 * 10000)}, {2, 400, math.Sqrt(2 * 400)}, {1, 10000, 0}} {
		m := drawn(c.draws*c.counted, c.counted, heavy.Guess{}, c.draws, 1)
		// Of a Poisson count the root has a deviation of a half.
		if math.Abs(m.below/(1.96*c.sd+1e-9)-1) > .1 && c.sd > 0 || math.Abs(m.above/(1.96*c.sd+1e-9)-1) > .1 && c.sd > 0 || c.sd == 0 && (m.below != 0 || m.above > 2) {
			t.Errorf("%+v: %+v, want about %.0f", c, m, 1.96*c.sd)
		}
		large := drawn(1500*c.draws*c.counted, 1500*c.counted, heavy.Guess{}, c.draws, 1500)
		if math.Abs(large.below-1500*m.below) > 1e-6*large.below || math.Abs(large.above-1500*m.above) > 1e-6*large.above {
			t.Errorf("%+v: of packets of 1500 bytes %+v, of packets %+v", c, large, m)
		}
	}
	if m := drawn(0, 0, heavy.Guess{}, 16, 1); m.below != 0 || m.above < 16 {
		t.Errorf("of nothing: %+v", m)
	}
}
