package diagnose

import (
	"context"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// uploads are segments of 1,200 hosts, none of which is heavy, of six networks, of which networks lose different shares before they are seen; truth has what is missing, and what was seen, by
// network and window. A gap is seen by the next segment of its flow, and belongs to the window of that one.
func uploads(seed uint64, n int, apart, window int64) (list []packet.Packet, missing, seen map[string]map[int64]float64) {
	r := rand.New(rand.NewPCG(seed, 27))
	missing, seen = map[string]map[int64]float64{}, map[string]map[int64]float64{}
	type flow struct {
		seq  uint32
		lost float64
		any  bool
	}
	flows := map[netip.Addr]*flow{}
	loses := []float64{0, .002, .01, .03, .06, .1}
	const payload = 1460
	for i := range n {
		net := min(r.IntN(6), r.IntN(6)) // the first ones send most
		a := netip.AddrFrom4([4]byte{10, 1, byte(net), byte(1 + r.IntN(200))})
		f := flows[a]
		if f == nil {
			f = &flow{seq: r.Uint32()}
			flows[a] = f
		}
		at := int64(1e9) + int64(i)*apart
		p := packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.ACK, Src: a, Dst: netip.MustParseAddr("10.2.0.1"), SrcPort: 40000, DstPort: 443,
			Seq: f.seq, Ack: 1, Payload: payload, Len: payload + 54}
		f.seq += payload
		if f.any && r.Float64() < loses[net] {
			f.lost++
			continue
		}
		name := finding.NetworkOf(a).String()
		for _, m := range []map[string]map[int64]float64{missing, seen} {
			if m[name] == nil {
				m[name] = map[int64]float64{}
			}
		}
		k := (at - 1e9) / window
		missing[name][k] += f.lost
		seen[name][k]++
		f.lost, f.any = 0, true
		list = append(list, p)
	}
	return list, missing, seen
}

// TestCoverage: the interval that a finding prints of what one network loses, or of its share of the traffic, holds the exact number of the same window in .93 of all or more.
func TestCoverage(t *testing.T) {
	testutil.NeedRoot(t)
	const window, apart = int64(500e6), int64(100e3)
	held, all, width := map[finding.Symptom]float64{}, map[finding.Symptom]float64{}, map[finding.Symptom]float64{}
	for seed := range uint64(2) {
		list, missing, seen := uploads(seed, 50_000, apart, window)
		judge := func(l report.Line) error {
			k := (l.Window.Start - 1e9 + window/2) / window
			total := 0.
			for _, by := range seen {
				total += by[k]
			}
			for _, m := range Apply(l).Seen.Measures {
				exact := map[finding.Symptom]float64{finding.HolesFrom: missing[m.Subject.Name][k] / total, finding.PrefixShare: seen[m.Subject.Name][k] / total}[m.Symptom]
				if m.Symptom != finding.HolesFrom && m.Symptom != finding.PrefixShare || missing[m.Subject.Name] == nil || m.Weak != "" || math.IsNaN(m.Value.Low) || l.Window.Last {
					continue
				}
				all[m.Symptom]++
				width[m.Symptom] += (m.Value.High - m.Value.Low) / max(exact, 1e-4)
				if m.Value.Low <= exact && exact <= m.Value.High {
					held[m.Symptom]++
				} else if testing.Verbose() {
					t.Logf("%s %s window %d: %.4f (%.4f .. %.4f), exact %.4f", m.Symptom, m.Subject.Name, k, m.Value.Value, m.Value.Low, m.Value.High, exact)
				}
			}
			return nil
		}
		var chosen []algo.Selected
		for _, name := range []string{"lean", "hhh"} {
			d, err := algo.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			one, err := d.Select(nil, algo.Setup{})
			if err != nil {
				t.Fatal(err)
			}
			chosen = append(chosen, one)
		}
		cfg := session.Config{Algorithms: chosen, Seed: seed + 1, Window: time.Duration(window), Hash: algo.HashOf(false), Notice: t.Logf, Emit: judge}
		if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(traffic.InTime(list)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for s, n := range all {
		share := held[s] / n
		t.Logf("%s: %.0f of %.0f intervals hold the exact share (%.3f); they are %.2f of it wide", s, held[s], n, share, width[s]/n)
		if share < .93 {
			t.Errorf("%s: %.3f of the intervals hold the exact share, .93 are promised", s, share)
		}
	}
	if all[finding.HolesFrom] < 50 || all[finding.PrefixShare] < 50 {
		t.Errorf("too few intervals: %v", all)
	}
}
