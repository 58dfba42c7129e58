package beaucoup

import (
	"math/bits"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// A copy of a packet is reported as an alert of the query whose collector it has completed: one of its key, that is full, within its window and of no other copy; of two
// the one that has collected least since.
func TestCopies(t *testing.T) {
	d, err := algo.Lookup(Name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"entries": "256", "budget": "1", "queries": "a: count distinct timestamp by src > 9 in 60s\nb: count distinct timestamp by src > 22 in 60s"})
	if err != nil {
		t.Fatal(err)
	}
	i, err := configured(v, algo.Env{Setup: algo.Setup{Replay: true, Hash: algo.HashCRC}})
	if err != nil {
		t.Fatal(err)
	}
	p := packet.Packet{Valid: packet.IP | packet.Ports | packet.UDP | packet.IPID, Proto: 17, Segs: 1, SrcPort: 1, DstPort: 2, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2")}
	for p.Time = 1e12; ; p.Time += 1e3 { // a packet of which neither draws a coupon: only collectors show it
		words := compile.SwitchWords(&p, i.seed)
		if len(i.program.SwitchDraws(&words, compile.ValidOf(&p), true)) == 0 {
			break
		}
	}
	words := compile.SwitchWords(&p, i.seed)
	a, b := &i.program.Queries[0], &i.program.Queries[1]
	key := words.And(&a.Key.Mask)
	window := compile.Ticks(a.Window)
	coupons := func(n int) uint64 { return 1<<n - 1 }
	type place struct {
		other   int64 // of the checksum
		coupons int
		left    int64 // ticks of the window
	}
	none := place{other: 1}
	for what, c := range map[string]struct {
		a, b   place
		copies int
		want   []*compile.Compiled
	}{
		"full":               {place{0, a.Collector.N, 1000}, none, 1, []*compile.Compiled{a}},
		"more than full":     {place{0, a.Collector.M, 1000}, none, 1, []*compile.Compiled{a}},
		"one coupon lacks":   {place{0, a.Collector.N - 1, 1000}, none, 1, nil},
		"another key's":      {place{1, a.Collector.N, 1000}, none, 1, nil},
		"it has just begun":  {place{0, a.Collector.N, int64(window)}, none, 1, []*compile.Compiled{a}},
		"it has not":         {place{0, a.Collector.N, int64(window) + 1}, none, 1, nil},
		"its last tick":      {place{0, a.Collector.N, 0}, none, 1, []*compile.Compiled{a}},
		"its window is over": {place{0, a.Collector.N, -1}, none, 1, nil},
		"one for two copies": {place{0, a.Collector.N, 1000}, none, 2, []*compile.Compiled{a}},
		"two for two copies": {place{0, a.Collector.N + 1, 1000}, place{0, b.Collector.N, 1000}, 2, []*compile.Compiled{b, a}},
		"the later one":      {place{0, a.Collector.N + 1, 1000}, place{0, b.Collector.N, 1000}, 1, []*compile.Compiled{b}},
		"the first of two":   {place{0, a.Collector.N, 1000}, place{0, b.Collector.N, 1000}, 1, []*compile.Compiled{a}},
		"the other is over":  {place{0, a.Collector.N, -1}, place{0, b.Collector.N, 1000}, 1, []*compile.Compiled{b}},
	} {
		registers := map[string]map[int]uint64{"beaucoup_keys": {}, "beaucoup_vectors": {}, "beaucoup_ends": {}}
		for q, at := range map[*compile.Compiled]place{a: c.a, b: c.b} {
			slot, check := compile.SwitchPlace(&key, true, q.ID)
			n := int(slot & (i.entries - 1))
			registers["beaucoup_keys"][n], registers["beaucoup_vectors"][n] = uint64(int64(check)+at.other), coupons(at.coupons)
			registers["beaucoup_ends"][n] = uint64(uint32(int64(ticks32(p.Time)) + at.left))
		}
		packets := make([]packet.Packet, c.copies)
		for n := range packets {
			packets[n] = p
		}
		events, missing, err := Copies(v, packets, func(register string, n int) uint64 { return registers[register][n] })
		if err != nil || len(events) != len(c.want) || missing != c.copies-len(c.want) {
			t.Errorf("%s: %d events, %d missing, %v", what, len(events), missing, err)
			continue
		}
		for n, e := range events {
			at := c.a
			if c.want[n] == b {
				at = c.b
			}
			if int(e.Query) != c.want[n].ID || e.Time != uint64(p.Time) || e.Key != key || bits.OnesCount64(e.Coupons) != at.coupons || e.Alert != 1 ||
				e.Age != uint64(int64(window)-at.left)<<compile.Tick {
				t.Errorf("%s: %+v", what, e)
			}
		}
	}
}
