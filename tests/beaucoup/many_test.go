package beaucoup

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// noise is packets whose every field is new: each attribute draws its coupons independently of the others.
type noise struct {
	*rand.Rand
	left, keys int
	now        int64
}

// Next implements traffic.Model.
func (n *noise) Next(p *packet.Packet) bool {
	if n.left == 0 {
		return false
	}
	n.left--
	n.now += 1000
	*p = packet.Packet{Time: traffic.Start + n.now, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
		TCPFlags: packet.ACK, Len: 54, SrcPort: uint16(n.Uint32()), DstPort: uint16(n.Uint32())}
	src, dst := n.Uint32()|1<<31, n.Uint32()|1<<31
	p.Src = netip.AddrFrom4([4]byte{byte(src>>24) & 0xdf, byte(src >> 16), byte(src >> 8), byte(src)})
	p.Dst = netip.AddrFrom4([4]byte{byte(dst>>24) & 0xdf, byte(dst >> 16), byte(dst >> 8), byte(dst)})
	p.VLAN = uint16(1 + n.IntN(n.keys))
	p.Valid |= packet.VLAN
	return true
}

// Queries of eleven attributes over the same keys, which draw one coupon in three packets together.
const eleven = `q1: count distinct src by vlan > 300 in 10m
q2: count distinct dst by vlan > 300 in 10m
q3: count distinct src+dst by vlan > 300 in 10m
q4: count distinct src+sport by vlan > 300 in 10m
q5: count distinct dst+dport by vlan > 300 in 10m
q6: count distinct src+dport by vlan > 300 in 10m
q7: count distinct dst+sport by vlan > 300 in 10m
q8: count distinct src+sport+dport by vlan > 300 in 10m
q9: count distinct dst+sport+dport by vlan > 300 in 10m
q10: count distinct src+dst+dport by vlan > 300 in 10m
q11: count distinct timestamp by vlan > 300 in 10m`

// The correction for ties removes their bias; without it, queries alert too late.
func TestTies(t *testing.T) {
	theory := 0.0 // mean relative error of the queries' collectors, each alone with the same coupons
	bias := func(ties, budget string) (bias, mre float64) {
		m := &noise{Rand: rand.New(rand.NewPCG(testutil.Seed(t), 1)), left: 60_000, keys: 60}
		l := replayed(t, traffic.Frames(m), session.Config{}, map[string]string{"queries": eleven, "budget": budget, "ties": ties})[0]
		if got := number(t, &l.Report, "coupons_per_packet"); budget == "1/3" && math.Abs(got/(1.0/3)-1) > 0.2 {
			t.Errorf("packets draw %.3f coupons, want about 0.333", got)
		}
		expected := 0.0
		theory = 0
		for _, table := range l.Report.Tables {
			if table.Name == "queries" {
				for _, row := range table.Rows {
					v, _ := report.Number(row[6])
					expected += v / 300 / 11
					alone, _ := report.Number(row[7])
					theory += alone / 11
				}
			}
		}
		return (1+number(t, l.Truth, "bias"))/expected - 1, number(t, l.Truth, "mean_relative_error")
	}
	corrected, mre := bias("true", "1/3")
	alone := theory
	without, _ := bias("false", "1/3")
	t.Logf("bias against the expected count: %.3f with the correction, %.3f without; mean relative error %.3f, alone %.3f", corrected, without, mre, alone)
	if mre > 1.15*alone {
		t.Errorf("mean relative error %.3f of eleven queries together, want at most 1.15 times the %.3f of each alone", mre, alone)
	}
	if math.Abs(corrected) > 0.05 {
		t.Errorf("bias %.3f with the correction, want 0.05 or less", corrected)
	}
	if without < 0.08 {
		t.Errorf("bias %.3f without the correction: this test sees no ties", without)
	}
}

// A replay is reproducible, and its windows add up.
func TestReplayRepeats(t *testing.T) {
	set := map[string]string{"queries": "s: count distinct dst by src > 200 in 10m"}
	run := func(window time.Duration) (raised float64, lines int) {
		for _, l := range replayed(t, traffic.Frames(&scans{keys: 50, each: 600, gap: 100_000}), session.Config{Seed: 7, Window: window}, set) {
			raised += number(t, &l.Report, "alerts_raised")
			lines++
		}
		return raised, lines
	}
	a, one := run(0)
	b, many := run(500 * time.Millisecond)
	if a != b || one != 1 || many < 5 || a < 50 {
		t.Errorf("one window: %g alerts, %d windows: %g", a, many, b)
	}
}

// Ordinary traffic: no alert that the exact count does not confirm.
func TestOrdinaryTraffic(t *testing.T) {
	testutil.NeedRoot(t)
	src := openTrace(t, "composite_120s.pcap")
	for _, l := range replayed(t, src, session.Config{Window: 30 * time.Second}, map[string]string{"set": "six"}) {
		if n := number(t, l.Truth, "unconfirmed"); n > 0 {
			t.Errorf("window %d: %g alerts are not confirmed: %v", l.Window.Number, n, l.Report.Tables[0].Rows)
		}
	}
}

// A new hash every window: an attacker cannot avoid the coupons, and alerts are still sent.
func TestRotation(t *testing.T) {
	set := map[string]string{"rotate": "true", "queries": "s: count distinct dst by src > 200 in 10s"}
	raised := 0.0
	for _, l := range replayed(t, traffic.Frames(&scans{keys: 20, each: 6000, gap: 20_000}), session.Config{Window: time.Second}, set) {
		raised += number(t, &l.Report, "alerts_raised")
	}
	if raised < 20 {
		t.Errorf("%g alerts of 20 keys", raised)
	}
}
