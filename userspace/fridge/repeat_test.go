package fridge

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

const msec = int64(time.Millisecond)

// syn makes the request of flow n, or its response.
func syn(at int64, n int, answer bool) packet.Packet {
	p := packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: uint32(n) * 7,
		Src: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		SrcPort: uint16(40000 + n>>24), DstPort: 443}
	if answer {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
		p.TCPFlags, p.Seq, p.Ack = packet.SYN|packet.ACK, 1, p.Seq+1
	}
	return p
}

// deaf makes traffic in which most requests are never answered and sent again five times, as to hosts that are down: the
// answered ones have delays up to longest.
func deaf(seed uint64, gap, longest int64) (packets []packet.Packet, answered int) {
	const requests, perRequest = 30_000, 50_000 // ns
	rng := rand.New(rand.NewPCG(seed, 11))
	for n := range requests {
		at := int64(1e9) + int64(n)*perRequest
		packets = append(packets, syn(at, n, false))
		if n%3 == 0 {
			packets = append(packets, syn(at+1000+rng.Int64N(longest), n, true))
			answered++
			continue
		}
		for k := int64(1); k <= 5; k++ {
			packets = append(packets, syn(at+k*gap, n, false))
		}
	}
	return packets, answered
}

// never is a fridge in which repeated requests do not count as insertions.
type never struct{ algo.Instance }

func (n never) Configure(spec *ebpf.CollectionSpec) error {
	if err := n.Instance.Configure(spec); err != nil {
		return err
	}
	return maps.SetConstant(spec, "fridge_repeat", ^uint32(0))
}

// TestRepeated: requests that are sent again after 200 ms take the slots of those that came in between like any other,
// and must count as insertions for them. Without that the estimate falls short, in both modes.
func TestRepeated(t *testing.T) {
	for _, mode := range []string{"keep", "restart"} {
		set := map[string]string{"fridges": "8192@1", "legs": "false", "retransmit": mode}
		estimate := func(d *algo.Descriptor) float64 {
			packets, answered := deaf(1, 200*msec, 150*msec)
			l := trial{set: set, model: inTime(packets), seed: 2, descriptor: d}.last(t)
			return find(t, l.Report, "delay_ns").Count / float64(answered)
		}
		right := estimate(nil)
		if math.Abs(right-1) > 0.035 {
			t.Errorf("%s: estimate is %.3f of the truth", mode, right)
		}
		if mode == "restart" {
			continue
		}
		d := descriptor()
		d.New = func(v algo.Values, env algo.Env) (algo.Instance, error) {
			i, err := newInstance(v, env)
			return never{i}, err
		}
		wrong := estimate(d)
		t.Logf("%s: estimate/truth %.3f, without counting repetitions %.3f", mode, right, wrong)
		if wrong > 0.95 {
			t.Errorf("%s: not counting repetitions gives %.3f: the test has no power", mode, wrong)
		}
	}
}

// TestRepeatedSoon: what is repeated at once, as by a mirror port that shows every packet twice, is one insertion.
func TestRepeatedSoon(t *testing.T) {
	var packets []packet.Packet
	rng := rand.New(rand.NewPCG(1, 12))
	const requests = 20_000
	for n := range requests {
		at := int64(1e9) + int64(n)*25_000
		packets = append(packets, syn(at, n, false), syn(at+10, n, false))
		back := at + 1000 + rng.Int64N(100*msec)
		packets = append(packets, syn(back, n, true), syn(back+10, n, true))
	}
	l := trial{set: map[string]string{"fridges": "4096@1", "legs": "false"}, model: inTime(packets), seed: 3}.last(t)
	if got := find(t, l.Report, "delay_ns").Count / requests; math.Abs(got-1) > 0.03 {
		t.Errorf("estimate is %.3f of the truth", got)
	}
	if got := valueOf(t, l.Report, "repeated"); got != requests {
		t.Errorf("%g requests were repeated, want %d", got, requests)
	}
}

// TestRepeatedClock: keep measures what the user felt, restart the last try.
func TestRepeatedClock(t *testing.T) {
	for mode, want := range map[string]float64{"keep": 310e6, "restart": 10e6} {
		packets := []packet.Packet{syn(1e9, 1, false), syn(1e9+300*msec, 1, false), syn(1e9+310*msec, 1, true)}
		l := trial{set: map[string]string{"retransmit": mode}, model: inTime(packets), seed: 1, truth: true}.last(t)
		for _, d := range []float64{find(t, l.Report, "delay_ns").Mean, find(t, *l.Truth, "delay_ns").Mean} {
			if math.Abs(d/want-1) > 0.02 {
				t.Errorf("%s: delay %g ns, want %g", mode, d, want)
			}
		}
	}
}
