package conquest

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// standing is traffic that keeps a queue as full as it may be: one flow that sends as much as fits, one of a steady part of the rate, and mice.
type standing struct {
	*rand.Rand
	rate    float64 // bits a second
	part    float64 // of the steady flow
	packets int
	time    int64
}

func (s *standing) Next(p *packet.Packet) bool {
	if s.packets == 0 {
		return false
	}
	s.packets--
	const mice, greed = 0.02, 1.05
	flow, size := uint16(1), uint32(1514)
	if x := s.Float64() * greed; x < s.part {
		flow = 2
	} else if x < s.part+mice {
		flow, size = 100+uint16(s.IntN(50)), 200
	}
	s.time += int64(s.ExpFloat64() * float64(size) * 8e9 / (s.rate * greed))
	*p = packet.Packet{Time: 1e9 + s.time, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, Segs: 1, Len: size, Payload: size - 42, SrcPort: flow, DstPort: 53,
		Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2})}
	return true
}

// TestStandingQueues: of queues that stand at ten milliseconds to a second shares are known without a parameter, and are between their ends.
func TestStandingQueues(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct {
		rate   float64
		stands time.Duration
	}{{20e6, 15 * time.Millisecond}, {20e6, 40 * time.Millisecond}, {20e6, 150 * time.Millisecond}, {5e6, 600 * time.Millisecond}, {500e6, 12 * time.Millisecond}, {200e6, 100 * time.Millisecond}} {
		m := &standing{Rand: rand.New(rand.NewPCG(7, uint64(c.rate))), rate: c.rate, part: 0.15, packets: 20000}
		s := NewStream(m, Link{Rate: c.rate, Buffer: int64(c.rate / 8 * c.stands.Seconds()), Tau: 1e6})
		answers, err := s.Ask(map[string]string{"longest": "8ms"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		outside, known, waited, width := 0, map[uint16]int{}, map[uint16]int{}, 0.0
		for i, a := range answers {
			share := s.Truth[i].Share()
			port := uint16(s.Truth[i].Key[1] >> 48)
			waited[port]++
			width += (a.High - a.Low) / float64(len(answers))
			if share < a.Low-1e-9 || share > a.High+1e-9 {
				outside++
			}
			if a.Low >= 1.0/16 && a.High-a.Low <= a.Low {
				known[port]++
			}
		}
		of := func(port uint16) float64 { return float64(known[port]) / float64(max(1, waited[port])) }
		t.Logf("%.0f Mbit/s, %v: of %d shares %d are outside of their ends; mean width %.3f; known: %.2f of the largest flow's, %.2f of the other's", c.rate/1e6, c.stands, len(answers), outside, width, of(1), of(2))
		if 50*outside > len(answers) {
			t.Errorf("%.0f Mbit/s, %v: of %d shares %d are outside of their ends: 2 %% are allowed", c.rate/1e6, c.stands, len(answers), outside)
		}
		if of(1) < 0.15 {
			t.Errorf("%.0f Mbit/s, %v: the largest flow's share is known of %.2f of its packets", c.rate/1e6, c.stands, of(1))
		}
	}
}
