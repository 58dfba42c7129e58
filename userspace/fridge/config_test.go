package fridge

import (
	"net/netip"
	"strings"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func values(t *testing.T, set map[string]string) algo.Values {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func configOf(t *testing.T, set map[string]string) *config {
	t.Helper()
	c, err := newConfig(values(t, set), algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c := configOf(t, nil)
	if !c.rules.Finals || c.rows != 2 || c.mantissa != 5 || c.tick != 64 || c.rules.Longest != 64<<32-1 || !c.recorded || c.table {
		t.Errorf("defaults are %+v", c)
	}
	c = configOf(t, map[string]string{"match": "tcp-duration", "group": "src/24"})
	if c.rules.Finals || c.rows != 64 || c.mantissa != 3 || c.tick != 65536 || !c.table {
		t.Errorf("tcp-duration by group is %+v", c)
	}
}

// TestRefused: what only the algorithm can judge is refused with the value and what is allowed.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		contains string
	}{
		{map[string]string{"fridges": "1000@1"}, "fridge.fridges=1000@1"},
		{map[string]string{"shards": "3"}, "powers of two"},
		{map[string]string{"group": "src"}, "src/LEN"},
		{map[string]string{"group": "src/33"}, "0 to 32"},
		{map[string]string{"group": "host"}, "dport"},
		{map[string]string{"sla": "50@95%"}, "50ms@95%"},
		{map[string]string{"sla": "50ms@100%"}, "50ms@95%"},
		{map[string]string{"tick": "100ns"}, "powers of two"},
		{map[string]string{"tick": "2.097152ms"}, "1.048576ms"},
		{map[string]string{"legs": "true", "match": "dns"}, "tcp-handshake"},
		{map[string]string{"legs": "true", "group": "vlan"}, "group=none"},
		{map[string]string{"correction": "table", "counter": "inferred"}, "counter=recorded"},
		{map[string]string{"match": "tcp-duration", "counter": "inferred"}, "counter=recorded"},
		{map[string]string{"side": "egress"}, "side=any"},
		{map[string]string{"group": "dport", "rows": "4096", "resolution": "32", "correction": "exact"}, "fewer rows"},
	} {
		_, err := newConfig(values(t, c.set), algo.Setup{})
		if err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: %v, want something about %q", c.set, err, c.contains)
		}
	}
}

// TestConfigure: every parameter combination fits the object, and its arrays are as large as the program expects.
func TestConfigure(t *testing.T) {
	for _, set := range []map[string]string{
		nil,
		{"fridges": "32768@1/2,32768@1/64", "correction": "table"},
		{"match": "tcp-duration", "group": "dport"},
		{"match": "dns", "counter": "inferred", "resolution": "4"},
	} {
		i, err := descriptor().New(values(t, set), algo.Env{})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := bpf.LoadFridge()
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Configure(spec); err != nil {
			t.Errorf("%v: %v", set, err)
		}
		c := configOf(t, set)
		slots, _ := layout.Totals(c.parts)
		if got := int(spec.Maps["fridge_entries"].MaxEntries); got != slots {
			t.Errorf("%v: %d entries, want %d", set, got, slots)
		}
		if got, want := int(spec.Maps["fridge_hist"].MaxEntries), 2*c.rows*len(c.parts)*c.plane(); got != want {
			t.Errorf("%v: histogram of %d cells, want %d", set, got, want)
		}
	}
}

func TestGroupKeys(t *testing.T) {
	p := &packet.Packet{Valid: packet.IP, Src: netip.MustParseAddr("192.0.2.77"), Dst: netip.MustParseAddr("2001:db8:aaaa:bbbb:cccc::1"),
		SrcPort: 50000, DstPort: 53, VLAN: 7}
	tagged := *p
	tagged.Valid |= packet.VLAN
	for _, c := range []struct {
		group   string
		p       *packet.Packet
		reverse bool
		want    string
	}{
		{"src/24", p, false, "192.0.2.0/24"},
		{"src/24", p, true, "2001:db8:aaaa::/48"},
		{"dst/8", p, true, "192.0.0.0/8"},
		{"dst/8", p, false, "2001:db8:aaaa::/48"},
		{"src/0", p, false, "0.0.0.0/0"},
		{"src/32", p, false, "192.0.2.77/32"},
		{"dport", p, false, "53"},
		{"dport", p, true, "50000"},
		{"vlan", p, false, "untagged"},
		{"vlan", &tagged, false, "7"},
	} {
		g, err := group.Parse(c.group, 48)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Name(g.Key(c.p, c.reverse)); got != c.want {
			t.Errorf("%s, reverse %v: %s, want %s", c.group, c.reverse, got, c.want)
		}
	}
}

func TestSLA(t *testing.T) {
	a, err := delay.ParseAgreement("50ms@95%")
	if err != nil || a.Limit != 50e6 || a.Share != 0.95 {
		t.Fatalf("%+v, %v", a, err)
	}
	if b, err := delay.ParseAgreement("50ms@0.95"); err != nil || *b != *a {
		t.Errorf("50ms@0.95: %+v, %v", b, err)
	}
	if b, err := delay.ParseAgreement("none"); b != nil || err != nil {
		t.Errorf("none: %+v, %v", b, err)
	}
	for _, c := range []struct {
		fast, slow float64
		want       string
	}{{1000, 10, delay.Kept}, {1000, 100, delay.Broken}, {10, 1, delay.Undecided}, {1000, 52, delay.Undecided}, {1, 0, delay.Undecided}} {
		s := delay.NewSpectrum(delay.NewScale(5, 64, false))
		for at, n := range map[float64]float64{10e6: c.fast, 90e6: c.slow} {
			bin := s.Scale.Bin(at)
			s.Mass[bin], s.Square[bin], s.Raw[bin] = n, n, n
		}
		j := a.Judge(s)
		if j.Verdict != c.want {
			t.Errorf("%g of %g too slow: %s (%+v), want %s", c.slow, c.fast+c.slow, j.Verdict, j, c.want)
		}
		if (j.Confidence > 0.5) != (c.slow/(c.fast+c.slow) > 0.05) {
			t.Errorf("%g of %g too slow: %g sure that it is broken", c.slow, c.fast+c.slow, j.Confidence)
		}
	}
}
