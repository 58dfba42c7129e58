package precision

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	_ "github.com/xdpmon/xdpmon/userspace/hhh" // registers the algorithm under test
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// networks is traffic with hierarchical heavy hitters: a busy host, a /24, a /16 and a /8 of small hosts, and traffic from
// everywhere; with V6 the same in IPv6.
type networks struct {
	left int
	rng  *rand.Rand
	v6   bool
}

// Next implements traffic.Model.
func (n *networks) Next(p *packet.Packet) bool {
	if n.left == 0 {
		return false
	}
	n.left--
	var a [4]byte
	for i := range a {
		a[i] = byte(1 + n.rng.UintN(223))
	}
	switch x := n.rng.Float64(); {
	case x < .10:
		a = [4]byte{10, 1, 1, 1}
	case x < .20:
		a = [4]byte{10, 2, 3, a[3]}
	case x < .32:
		a = [4]byte{20, 5, a[2], a[3]}
	case x < .45:
		a[0] = 30
	}
	*p = packet.Packet{Time: traffic.Start + int64(1e9) - int64(n.left)*1000, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, Segs: 1,
		Src: netip.AddrFrom4(a), Dst: netip.AddrFrom4([4]byte{198, 18, 0, a[3]}), SrcPort: 53, DstPort: 5353, Payload: 100, Len: 142}
	if n.v6 {
		p.Src = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, a[0], a[1], a[2], a[3]})
		p.Dst = netip.AddrFrom16([16]byte{0xfd, 1: a[3], 15: 1})
		p.Len += 20
	}
	return true
}

// TestHeavyNetworks: every prefix of twice the threshold is found, with its count within a tenth, by both methods. A tenth is four
// standard deviations or more: drawing from L levels has sqrt((L - 1)/n) of a count n, and packets before the admission L times
// about the initial value. Two dimensions draw from 25 levels, and IPv6 with the initial value 100 from 8, so these see three
// times the packets: 45,000 of each prefix, for which that is 2.3 % and 2.5 %. Stacking needs only a part of them.
func TestHeavyNetworks(t *testing.T) {
	testutil.NeedRoot(t)
	least, few, many, most := 30000, 80000, 200000, 400000
	cases := []struct {
		name    string
		v6      bool
		packets int
		set     map[string]string
	}{
		{"IPv6", true, many, nil},
		{"both addresses", false, most, map[string]string{"dimension": "both", "initial": "10", "entries": "16384"}},
		{"random-prefix", false, few, nil},
		{"stacking", false, least, map[string]string{"method": "stacking"}},
		{"stacking, pow2", false, least, map[string]string{"method": "stacking", "admission": "pow2", "initial": "10"}},
		{"stacking, nibbles", false, least, map[string]string{"method": "stacking", "level": "nibble"}},
		{"stacking, destinations", false, least, map[string]string{"method": "stacking", "dimension": "dst", "count": "bytes", "initial": "1"}},
		{"stacking, IPv6", true, least, map[string]string{"method": "stacking", "family": "6", "entries": "8192"}},
		{"stacking, IPv6 nibbles", true, least, map[string]string{"method": "stacking", "family": "6", "level": "nibble", "bits6": "36"}},
		{"random-prefix, nibbles", false, few, map[string]string{"level": "nibble", "initial": "10"}},
		{"whole, bits", false, least, map[string]string{"level": "bit", "entries": "256"}},
		{"whole, IPv6 pairs", true, least, map[string]string{"method": "whole", "dimension": "both"}},
		{"random-prefix, bits", false, most, map[string]string{"method": "random-prefix", "level": "bit"}},
		{"destinations, bytes", false, few, map[string]string{"dimension": "dst", "count": "bytes", "initial": "1", "family": "4"}},
	}
	err := Parallel(len(cases), func(n int) error {
		c, set := cases[n], map[string]string{"threshold": "1/25"}
		for k, v := range c.set {
			set[k] = v
		}
		model := &networks{left: c.packets, rng: rand.New(rand.NewPCG(7, 8)), v6: c.v6}
		line, err := replayWithTruth(bytecode.Config{Algorithm: "hhh", Set: set}, traffic.Frames(model))
		if err == nil {
			compare(t, c.name, line)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, name string, line report.Line) {
	t.Helper()
	found := map[string]float64{}
	for _, row := range line.Report.Tables[0].Rows {
		found[row[0].(string)] = row[1].(float64)
	}
	checked, worst := 0, 0.0
	for _, row := range line.Truth.Tables[0].Rows {
		if row[3].(float64) < 2./25 {
			continue
		}
		checked++
		n, got := row[1].(float64), found[row[0].(string)]
		worst = max(worst, math.Abs(got/n-1))
		if math.Abs(got-n) > .1*n {
			t.Errorf("%s: %s has %.0f, found %.0f", name, row[0], n, got)
		}
	}
	t.Logf("%s: %d prefixes, largest error %.1f %%", name, checked, 100*worst)
	if checked == 0 {
		t.Errorf("%s: the model has nothing heavy", name)
	}
}
