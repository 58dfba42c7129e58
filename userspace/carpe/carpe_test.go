package carpe

import (
	"context"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func values(t testing.TB, set map[string]string) algo.Values {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func configured(t testing.TB, set map[string]string) *config {
	t.Helper()
	c, err := newConfig(values(t, set), algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// manyFlows are n flows of so many packets each, of both families, in random order over two seconds; every tenth packet consists of seven segments.
func manyFlows(n, packets int, seed uint64) *traffic.Script {
	rng := rand.New(rand.NewPCG(seed, 15))
	var list []packet.Packet
	for k := range n * packets {
		flow := k % n
		p := packet.Packet{Time: traffic.Start + rng.Int64N(2e9-2), Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: uint16(1000 + flow%3),
			DstPort: 9, Segs: 1, Payload: 100 + rng.Uint32N(1000), Src: netip.AddrFrom4([4]byte{10, byte(flow), 0, byte(flow >> 8)}), Dst: netip.AddrFrom4([4]byte{20, 0, byte(flow), 1})}
		p.Len = p.Payload + 42
		if flow%3 == 0 {
			p.Src, p.Dst, p.Len = netip.AddrFrom16([16]byte{0x20, 1, byte(flow), byte(flow >> 8), 15: 1}), netip.AddrFrom16([16]byte{0x20, 2, 15: byte(flow)}), p.Len+20
		}
		list = append(list, p)
	}
	return traffic.InTime(list)
}

func windowsOf(t *testing.T, packets *traffic.Script, seed uint64, set map[string]string) (list []report.Line) {
	t.Helper()
	testutil.NeedRoot(t)
	d, err := algo.Lookup(Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values(t, set)}}, Seed: seed, Truth: true, Window: 2 * time.Second, Notice: t.Logf,
		Snapshots: true, Emit: func(l report.Line) error { list = append(list, l); return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(packets), nil); err != nil {
		t.Fatal(err)
	}
	return list
}

// Whatever is counted, in how many ways and with how many observers: reports represent what flows had, less half a bundle that is not
// full in the mean; the bounds hold the truth.
func TestEstimates(t *testing.T) {
	const flows, packets = 160, 600
	for name, set := range map[string]map[string]string{
		"packets":       {"threshold": "1000", "epsilon": "0.04", "s": "1/8"},
		"observers":     {"threshold": "1000", "epsilon": "0.2", "s": "1/8", "observers": "4", "ways": "3", "entries": "3072"},
		"bytes":         {"threshold": "1000000", "epsilon": "0.04", "s": "1/4000", "count": "bytes", "ways": "1", "entries": "65536"},
		"large packets": {"threshold": "20000", "epsilon": "0.04", "s": "1/100", "count": "bytes", "observers": "2"},
		"handed over":   {"threshold": "1000", "epsilon": "0.04", "s": "1/8", "entries": "4", "handover": "true"},
	} {
		c := configured(t, set)
		lines := windowsOf(t, manyFlows(flows, packets, 7), 5, set)
		s, err := snapshot.Decode(lines[0].Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		found, err := flowsOf(s)
		if err != nil {
			t.Fatal(err)
		}
		truth := map[heavy.Key]float64{}
		for _, p := range *manyFlows(flows, packets, 7) {
			k, _ := c.spec.Of(&p)
			if c.bytes {
				truth[k] += float64(p.Len)
			} else {
				truth[k]++
			}
		}
		var off, variance, all float64
		held, named := 0, 0
		for k, n := range truth {
			f := found[k]
			d := f.weight - n
			off, variance, all = off+d, variance+f.variance, all+n
			if f.reports == 0 {
				continue
			}
			named++
			if low, high := c.bounds(f); low <= n && n <= high {
				held++
			}
		}
		tau := float64(c.tau(c.observers))
		unfinished := tau / 2
		if name == "large packets" { // a packet is a bundle, or fills one
			unfinished = 0
		}
		want, deviation := -unfinished*flows, math.Sqrt(variance+flows*(tau*tau/3+float64(c.start*c.start)))
		t.Logf("%s: %.0f of %.0f off, %.0f expected within %.0f; bounds hold %d of %d", name, off, all, want, deviation, held, flows)
		if math.Abs(off-want) > 4*deviation {
			t.Errorf("%s: estimates are off by %.0f, want %.0f within %.0f", name, off, want, deviation)
		}
		if held < named*95/100 || named < flows*9/10 {
			t.Errorf("%s: bounds hold %d of %d", name, held, named)
		}
	}
}

// On one host with s = 1 and one observer nothing is left to chance: elephants are those of the truth.
func TestOneHostAlone(t *testing.T) {
	var list []packet.Packet
	for n, one := range *manyFlows(40, 300, 3) {
		if one.SrcPort != 1001 || n%3 == 0 { // some flows are smaller
			list = append(list, one)
		}
	}
	lines := windowsOf(t, traffic.InTime(list), 1, map[string]string{"threshold": "250", "epsilon": "0.04", "s": "1", "span": "2"})
	if len(lines) != 1 {
		t.Fatalf("%d windows", len(lines))
	}
	l := lines[0]
	if got, want := snapshottest.Value(l.Report, "elephants"), snapshottest.Value(*l.Truth, "elephants"); got != want || want < 5 || want > 35 {
		t.Errorf("%v elephants, in truth %v", got, want)
	}
	if got, want := snapshottest.Value(l.Report, "total"), snapshottest.Value(*l.Truth, "total"); got != want {
		t.Errorf("%v in all, in truth %v", got, want)
	}
	if held, seen := snapshottest.Value(l.Report, "held"), snapshottest.Value(*l.Truth, "flows_seen"); held > seen || held == 0 {
		t.Errorf("%v entries for %v flows", held, seen)
	}
}

// The span slides by a window: what is older does not count, and what is idle for a quarter of a span has no entry.
func TestSpan(t *testing.T) {
	var list []packet.Packet
	for window, other := range []byte{0, 0, 9, 9, 9} { // flows of two windows, and others after them
		for _, p := range *manyFlows(20, 195, 4) {
			p.Time += int64(window) * 2e9
			if p.Src.Is4() {
				p.Src = netip.AddrFrom4([4]byte{10 + other, p.Src.As4()[1], 0, 1})
			} else {
				p.Src = netip.AddrFrom16([16]byte{0x20, 1 + other, p.Src.As16()[2], 15: 1})
			}
			list = append(list, p)
		}
	}
	lines := windowsOf(t, traffic.InTime(list), 1, map[string]string{"threshold": "300", "epsilon": "0.05", "s": "1/2", "span": "2"})
	for n, want := range []float64{0, 20, 0, 20, 20} {
		if got := snapshottest.Value(lines[n].Report, "elephants"); got != want {
			t.Errorf("window %d: %v elephants, want %v", n, got, want)
		}
		if got := snapshottest.Value(*lines[n].Truth, "elephants"); got != want {
			t.Errorf("window %d: %v elephants in truth, want %v", n, got, want)
		}
	}
	if held, expired := snapshottest.Value(lines[2].Report, "held"), snapshottest.Value(lines[2].Report, "expired"); held > 20 || expired < 10 || expired > 20 {
		t.Errorf("after a quarter of a span without packets of 20 flows %v entries are held, and %v were freed", held, expired)
	}
}

// Flows of one packet, always others: little more than half of what one window begins is held at once.
func TestMice(t *testing.T) {
	var list []packet.Packet
	for n := range 12_000 {
		list = append(list, packet.Packet{Time: traffic.Start + int64(n)*5e5, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: uint16(n), DstPort: 9, Segs: 1,
			Len: 100, Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{20, 0, 0, 1})})
	}
	for n, l := range windowsOf(t, traffic.InTime(list), 1, map[string]string{"threshold": "1000", "epsilon": "0.05", "s": "1/2"}) {
		begun, most, held := snapshottest.Value(l.Report, "bundles_begun"), snapshottest.Value(l.Report, "held_most"), snapshottest.Value(l.Report, "held")
		if begun < 1500 || most > 0.6*begun || held > 0.3*begun {
			t.Errorf("window %d: %v begun, %v held at most and %v at the end", n, begun, most, held)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		contains string
	}{
		{map[string]string{"threshold": "100", "epsilon": "0.1", "s": "1/10"}, "must be above 1/s"},
		{map[string]string{"s": "0.3"}, "whole numbers"},
		{map[string]string{"threshold": "1000", "epsilon": "0.1", "observers": "8"}, "at most 4"},
		{map[string]string{"group": "src/33"}, "src/0 to src/32"},
		{map[string]string{"group": "port/3"}, "allowed are"},
		{map[string]string{"entries": "101"}, "multiples of the 2 ways"},
		{map[string]string{"threshold": "1000000000000"}, "smaller carpe.epsilon"},
	} {
		v := values(t, c.set)
		if _, err := descriptor().New(v, algo.Env{}); err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: %v", c.set, err)
		}
		if _, err := descriptor().Coordinate(v, algo.Env{Setup: algo.Setup{WindowNS: 1e9}}); err == nil {
			t.Errorf("%v: a coordinator takes it", c.set)
		}
	}
	if _, err := newConfig(values(t, map[string]string{"s": "1/10"}), algo.Setup{Hash: algo.HashCRC}); err == nil {
		t.Error("s = 1/10 with the hashes of a switch")
	}
}

// Events of flows without an entry are bundled here, up to a maximum of flows: those of later flows are only counted.
func TestHandedHasABound(t *testing.T) {
	h := newHanded(configured(t, map[string]string{"threshold": "1000", "epsilon": "0.04", "s": "1"}), algo.Env{Setup: algo.Setup{Replay: true}})
	for n := range uint64(mostHanded) {
		if got := h.add(heavy.Key{n}, 1, 1); got != 0 {
			t.Fatalf("flow %d: a report of %d", n, got)
		}
	}
	if h.full != 0 || len(h.flows) != mostHanded {
		t.Errorf("%d flows, %d events had no room", len(h.flows), h.full)
	}
	if h.add(heavy.Key{mostHanded}, 1, 1); h.full != 1 || len(h.flows) != mostHanded {
		t.Errorf("one more: %d flows, %d events had no room", len(h.flows), h.full)
	}
	if h.add(heavy.Key{3}, 1, 1); h.full != 1 || h.flows[heavy.Key{3}] != 2*h.config.start {
		t.Errorf("one that has room has %d units, %d events had none", h.flows[heavy.Key{3}], h.full)
	}
	tau := h.config.tau(1)
	if got := h.add(heavy.Key{4}, tau-1-h.config.start, 1); got != 0 {
		t.Errorf("a unit less than a bundle is reported as %d", got)
	}
	if got := h.add(heavy.Key{4}, 1, 1); got != tau || h.reports != 1 || len(h.flows) != mostHanded-1 {
		t.Errorf("a bundle of %d is reported as %d, %d reports, %d flows left", tau, got, h.reports, len(h.flows))
	}
}

// R follows how tau is rounded.
func TestRounding(t *testing.T) {
	c := configured(t, map[string]string{"threshold": "1413", "epsilon": "0.1"})
	for _, one := range []struct {
		observers, tau uint32
		reports        float64
	}{{1, 141, 10}, {2, 71, 10}, {4, 35, 10}, {8, 18, 10}} {
		if c.tau(one.observers) != one.tau || c.reports(one.observers) != one.reports {
			t.Errorf("%d observers: tau %d, R %g", one.observers, c.tau(one.observers), c.reports(one.observers))
		}
	}
	if c.most != 8 {
		t.Errorf("%d observers at most: tau is above 16 up to 8", c.most)
	}
	coarse := configured(t, map[string]string{"threshold": "20", "epsilon": "0.33", "s": "1/2"}) // tau 7, 3: R 3, 3
	if coarse.tau(1) != 7 || coarse.reports(1) != 3 || coarse.tau(2) != 3 || coarse.reports(2) != 3 {
		t.Errorf("%d %g %d %g", coarse.tau(1), coarse.reports(1), coarse.tau(2), coarse.reports(2))
	}
	for n, want := range map[int]uint32{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 7: 4, 8: 8, 1000: 8} {
		if got := c.advertised(n); got != want {
			t.Errorf("%d observers count as %d, want %d", n, got, want)
		}
	}
}
