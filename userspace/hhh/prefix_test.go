package hhh

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func configOf(t *testing.T, set map[string]string) *config {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.Setup{Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The data plane writes the levels of source and destination into a key's tag, one byte each.
func TestPrefixOfAKey(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		src, dst string
		s, d     uint64 // levels
		want     string
	}{
		{map[string]string{"dimension": "src"}, "10.1.2.3", "20.1.2.3", 2, 9, "10.1.0.0/16"},
		{map[string]string{"dimension": "dst"}, "10.1.2.3", "20.1.2.3", 9, 1, "20.0.0.0/8"},
		{map[string]string{"dimension": "both"}, "10.1.2.3", "20.1.2.3", 4, 3, "10.1.2.3/32 > 20.1.2.0/24"},
		{map[string]string{"dimension": "both", "level": "nibble"}, "10.1.2.3", "20.17.2.3", 0, 3, "0.0.0.0/0 > 20.16.0.0/12"},
		{map[string]string{"dimension": "both"}, "2001:db8:1::1", "2001:db8:2::1", 4, 6, "2001:db8::/32 > 2001:db8:2::/48"},
		{map[string]string{"dimension": "src"}, "2001:db8:1::1", "2001:db8:2::1", 5, 0, "2001:db8::/40"},
	} {
		conf := configOf(t, c.set)
		p := packet.Packet{Valid: packet.IP, Src: netip.MustParseAddr(c.src), Dst: netip.MustParseAddr(c.dst)}
		k, ok := conf.ways.Spec.Of(&p)
		if !ok {
			t.Fatalf("%v: no key", c.set)
		}
		k[1] |= c.s<<8 | c.d<<16
		if got := conf.prefixOf(k).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.set, got, c.want)
		}
	}
}

// An address has a prefix of every level above it, a pair one of every pair of levels; roots are the families' own.
func TestAncestors(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		src, dst string
		n        int
		some     []string
	}{
		{map[string]string{"dimension": "src"}, "10.1.2.3", "20.1.2.3", 5, []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32"}},
		{map[string]string{"dimension": "dst", "level": "nibble"}, "10.1.2.3", "20.1.2.3", 9, []string{"0.0.0.0/0", "16.0.0.0/4", "20.1.2.3/32"}},
		{map[string]string{"dimension": "both"}, "10.1.2.3", "20.1.2.3", 25, []string{"0.0.0.0/0 > 20.1.2.3/32", "10.1.2.3/32 > 0.0.0.0/0"}},
		{map[string]string{"dimension": "src", "bits6": "48"}, "2001:db8:1::1", "::1", 7, []string{"::/0", "2001:db8:1::/48"}},
	} {
		conf := configOf(t, c.set)
		var got []string
		conf.ancestors(netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst), func(p heavy.Prefix) { got = append(got, p.String()) })
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != c.n || len(got) != c.n {
			t.Errorf("%v: %d nodes, want %d: %v", c.set, len(got), c.n, got)
		}
		for _, want := range c.some {
			if !slices.Contains(got, want) {
				t.Errorf("%v: %s is missing in %v", c.set, want, got)
			}
		}
		if n := conf.draws(netip.MustParseAddr(c.src).Is4()); c.set["dimension"] == "both" && int(n) != c.n || c.set["dimension"] != "both" && int(n) != c.n-1-conf.exact {
			t.Errorf("%v: a packet draws one of %g levels, %d are exact, there are %d nodes", c.set, n, conf.exact, c.n)
		}
	}
	conf := configOf(t, map[string]string{"dimension": "both"})
	if four, six := conf.root(true).String(), conf.root(false).String(); four != "0.0.0.0/0 > 0.0.0.0/0" || six != "::/0 > ::/0" {
		t.Errorf("roots %s and %s", four, six)
	}
	exact := map[heavy.Prefix]float64{conf.root(true): 5, conf.root(false): 6}
	conf.roots(exact, 100, 0)
	if len(exact) != 1 || exact[conf.root(true)] != 100 {
		t.Errorf("roots count %v, want 100 of IPv4 alone", exact)
	}
}

// Memory is shared by levels, ways, and nothing else.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want int
	}{
		{map[string]string{"method": "stacking", "entries": "3000"}, 500},
		{map[string]string{"method": "stacking", "entries": "3001", "level": "nibble"}, 250},
	} {
		if got := configOf(t, c.set).perStack(); got != c.want {
			t.Errorf("%v: %d entries of a way of a level, want %d", c.set, got, c.want)
		}
	}
	if c := configOf(t, map[string]string{"count": "bytes", "initial": "10"}); c.ways.Initial != 15_000 {
		t.Errorf("initial value %d bytes", c.ways.Initial)
	}
}

// The margin of what every packet counts at grows with what flows compete for, and there is none below where nothing was evicted.
func TestStackedMargin(t *testing.T) {
	if m := stacked(1000, 1, 1); m.below != 0 || math.Abs(m.above-1-longestWait) > 1e-9 {
		t.Errorf("with room for all %+v", m)
	}
	for _, c := range []struct{ estimate, smallest, below, above float64 }{
		{1000, 41, 1680. / 1001 / 4, 1 + longestWait + (longestWait/4-.5)*longestWait*1680/1001},
		{10, 41, 10, 1 + longestWait*41},
		{1000, 401, 160800. / 1001 / 4, 1 + longestWait + (longestWait/4-.5)*longestWait*160800/1001},
	} {
		if m := stacked(c.estimate, 1, c.smallest); math.Abs(m.below-c.below) > 1e-9 || math.Abs(m.above-c.above) > 1e-9 {
			t.Errorf("%g packets against %g: %+v, want %g and %g", c.estimate, c.smallest, m, c.below, c.above)
		}
	}
}

// The twin is one form: whatever differs is refused.
func TestOneTwin(t *testing.T) {
	twin := func(set map[string]string) error {
		all := map[string]string{"ways": "2", "family": "4"}
		for k, v := range set {
			all[k] = v
		}
		v, err := algo.NewValues(Name, params, all)
		if err != nil {
			t.Fatal(err)
		}
		_, err = descriptor().P4(v)
		return err
	}
	if err := twin(nil); err != nil {
		t.Error(err)
	}
	for key, text := range map[string]string{"method": "stacking", "count": "bytes", "family": "6", "ways": "1", "admission": "exact", "delay": "1"} {
		if err := twin(map[string]string{key: text}); err == nil || !strings.Contains(err.Error(), "set hhh."+key+"=") {
			t.Errorf("a twin with %s=%s: %v", key, text, err)
		}
	}
}

// What a packet weighs is one, or bytes between their mean and a full packet.
func TestSize(t *testing.T) {
	n := make(counts, 16)
	for _, c := range []struct {
		set            string
		packets, bytes uint64
		want           float64
	}{{"packets", 10, 10, 1}, {"bytes", 0, 0, 1}, {"bytes", 10, 1000, 200}, {"bytes", 10, 10_000, fullPacket}, {"bytes", 10, 20_000, 2000}} {
		n[bpf.HhhHhhCounterHHH_PACKETS], n[bpf.HhhHhhCounterHHH_IPV4], n[bpf.HhhHhhCounterHHH_IPV6] = c.packets, c.bytes/2, c.bytes/2
		if got := configOf(t, map[string]string{"count": c.set}).size(n); got != c.want {
			t.Errorf("%d packets of %d %s: %g, want %g", c.packets, c.bytes, c.set, got, c.want)
		}
	}
}

// Of prefixes that chance may have raised above the threshold the lower ends are wider; chance is as large as the interval, on whichever side that lies.
func TestNearby(t *testing.T) {
	for _, c := range []struct {
		m           margin
		conditioned float64
		wider       bool
	}{{margin{20, 20}, 115, true}, {margin{20, 20}, 125, false}, {margin{5, 60}, 120, true}, {margin{5, 60}, 140, false}} {
		got := c.m.nearby(c.conditioned, 100, selected)
		if got.above != c.m.above || (got.below > c.m.below) != c.wider || got.below < c.m.below {
			t.Errorf("%+v of %g, threshold 100: %+v", c.m, c.conditioned, got)
		}
	}
}
