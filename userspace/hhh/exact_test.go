package hhh

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
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

// mixed is packets of a few networks, IPv4 and IPv6.
func mixed(n int) *traffic.Script {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []packet.Packet
	for k := range n {
		p := packet.Packet{Time: traffic.Start + int64(k)*1000, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: 1, DstPort: 9, Segs: 1}
		p.Payload = 100 + rng.Uint32N(1000)
		a, b := byte(rng.IntN(4)), byte(rng.IntN(1+k%8))
		p.Src, p.Dst, p.Len = netip.AddrFrom4([4]byte{10 + a, b, a, b}), netip.AddrFrom4([4]byte{20 + b, b, a, a}), p.Payload+42
		if k%3 == 0 {
			p.Src, p.Dst = netip.AddrFrom16([16]byte{0x20, 1, a, b, a, b, a, b, 15: 1}), netip.AddrFrom16([16]byte{0x20, 2, b, a, b, a, 15: 1})
			p.Len += 20
		}
		list = append(list, p)
	}
	return traffic.InTime(list)
}

// With room for every prefix stacking equals the truth, except for the packets before a prefix had its entry: a
// second pass takes one at a time.
func TestStackingWithRoom(t *testing.T) {
	testutil.NeedRoot(t)
	for _, set := range []map[string]string{{"dimension": "dst", "level": "nibble"}, {"family": "6"}, {"count": "bytes"}} {
		set := maps.Clone(set)
		set["method"], set["entries"], set["initial"], set["recirculation"], set["threshold"] = "stacking", "16384", "1", "1", "0.02"
		l := last(t, set)
		missing, most := 0, 12.0 // packets
		if set["count"] == "bytes" {
			most *= fullPacket
		}
		found := map[any][]any{}
		for _, row := range l.Report.Tables[0].Rows {
			found[row[0]] = row
		}
		for _, row := range l.Truth.Tables[0].Rows {
			got, n := found[row[0]], row[1].(float64)
			switch {
			case got == nil && row[2].(float64) > n/10:
				missing++
			case got != nil && (got[1].(float64) > n || got[1].(float64) < n-most):
				t.Errorf("%v: %v counts %g, in truth %g", set, row[0], got[1], n)
			}
		}
		if missing > 0 || len(l.Truth.Tables[0].Rows) < 8 {
			t.Errorf("%v: %d of %d heavy prefixes are missing", set, missing, len(l.Truth.Tables[0].Rows))
		}
		if l.Lost["recirculation_refused"] != 0 {
			t.Errorf("%v: lost %v", set, l.Lost)
		}
	}
}

// With an entry for every address whole keys equal the truth, by any level, dimension and family, and have intervals without width.
func TestWholeWithRoom(t *testing.T) {
	testutil.NeedRoot(t)
	for _, set := range []map[string]string{{"level": "bit"}, {"dimension": "dst", "level": "nibble", "family": "6"}, {"count": "bytes", "family": "4"}, {"dimension": "both"}} {
		set := maps.Clone(set)
		set["method"], set["threshold"] = "whole", "0.02"
		l := last(t, set)
		found := map[any][]any{}
		for _, row := range l.Report.Tables[0].Rows {
			found[row[0]] = row
		}
		for _, row := range l.Truth.Tables[0].Rows {
			got := found[row[0]]
			if got == nil || got[1] != row[1] || got[2] != row[2] || got[5] != row[1] || got[6] != row[1] || got[4] != 0.0 {
				t.Errorf("%v: %v is %v, in truth %v", set, row[0], got, row)
			}
		}
		if len(found) != len(l.Truth.Tables[0].Rows) || len(found) < 8 {
			t.Errorf("%v: %d prefixes, in truth %d", set, len(found), len(l.Truth.Tables[0].Rows))
		}
	}
}

// Prefixes of 8 bits have no error in random-prefix either.
func TestExactFirstByte(t *testing.T) {
	testutil.NeedRoot(t)
	l := last(t, map[string]string{"method": "random-prefix", "threshold": "0.1", "entries": "256"})
	exact := map[any]any{}
	for _, row := range l.Truth.Tables[0].Rows {
		exact[row[0]] = row[1]
	}
	checked := 0
	for _, row := range l.Report.Tables[0].Rows {
		if p := netip.MustParsePrefix(row[0].(string)); p.Bits() <= exactBits {
			if checked++; row[1] != exact[row[0]] || row[5] != row[6] || row[4] != 0.0 {
				t.Errorf("%v, in truth %v", row, exact[row[0]])
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d prefixes of 8 bits or less", checked)
	}
}

func last(t *testing.T, set map[string]string) (l report.Line) {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := algo.Lookup(Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 1, Truth: true, Notice: t.Logf,
		Emit: func(line report.Line) error { l = line; return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(mixed(4000)), nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// A host may have overlooked a prefix that had an entry and lost it, too: a bound by the first admission alone, three times what prefixes compete with,
// the initial value included, would be too low.
func TestUnseen(t *testing.T) {
	testutil.NeedRoot(t)
	i, s := snapshotOf(t, map[string]string{"entries": "32", "initial": "10"})
	r := s.Read()
	r.Words(counterWords, int(bpf.HhhHhhCounterHHH_COUNTS))
	table := heavy.TableOf(r)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if least := 3 * (table.Minimum + float64(i.ways.Initial) + 1); table.Minimum <= 0 || table.Unseen < least || table.Unseen > 10*least {
		t.Errorf("a prefix of %g has an entry, and competes with %g: %g at least", table.Unseen, table.Minimum, least)
	}
}

// snapshotOf the last window.
func snapshotOf(t *testing.T, set map[string]string) (*config, *snapshot.Snapshot) {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	var l report.Line
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: descriptor(), Values: v}}, Seed: 1, Snapshots: true,
		Emit: func(line report.Line) error { l = line; return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(mixed(4000)), nil); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Decode(l.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}
