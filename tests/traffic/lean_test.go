package traffic

import (
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

func smallLean(seed uint64) LeanOptions {
	return LeanOptions{Packets: 200_000, Flows: 20_000, Heavy: 100, Victims: 20, Span: 10 * time.Second,
		Delay: 50 * time.Millisecond, Loss: 0.04, Late: 0.04, Again: 0.01, Seed: seed}
}

// play reads a model to its end and checks that time does not decrease.
func play(t *testing.T, m *Lean, f func(p *packet.Packet)) (packets int) {
	t.Helper()
	last := int64(0)
	for p := (packet.Packet{}); m.Next(&p); packets++ {
		if p.Time < last {
			t.Fatalf("packet %d is at %d, after one at %d", packets, p.Time, last)
		}
		last = p.Time
		f(&p)
	}
	return packets
}

func leanModel(t *testing.T, o LeanOptions) *Lean {
	t.Helper()
	m, err := NewLean(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The model does what it states: as many packets as requested, in the time, from as many flows, acknowledged except for one
// per cent; and victims suffer at their rates.
func TestLeanShape(t *testing.T) {
	m := leanModel(t, smallLean(1))
	segments, acks, end := 0, 0, int64(0)
	n := play(t, m, func(p *packet.Packet) {
		end = p.Time
		if p.Payload > 0 {
			segments++
		} else {
			acks++
		}
	})
	if n < 198_000 || n > 202_000 {
		t.Errorf("%d packets, want about 200000", n)
	}
	if share := float64(acks) / float64(segments); share < 0.985 || share > 0.995 {
		t.Errorf("%d of %d segments are acknowledged", acks, segments)
	}
	if end > Start+int64(11*time.Second) {
		t.Errorf("the last packet is sent after %v", time.Duration(end-Start))
	}
	single := 0
	for i := range 20_000 {
		if m.Tally(i).Sent == 0 {
			t.Errorf("flow %d sent nothing", i)
		}
		if m.Tally(i).Sent == 1 {
			single++
		}
	}
	if single < 8000 || single > 16000 {
		t.Errorf("%d of 20000 flows have one segment, want about half", single)
	}
	for kind, want := range map[LeanKind]float64{LeanLoss: 0.04, LeanLate: 0.04, LeanAgain: 0.01} {
		sent, events := 0.0, 0.0
		for _, rank := range m.Victims(kind) {
			sent += float64(m.Tally(rank).Sent)
			events += float64(m.Tally(rank).Count[kind])
		}
		// Binomial: five standard deviations; the last segment of a train cannot be late, one in eight at most.
		low, high := want*sent-5*math.Sqrt(want*sent), want*sent+5*math.Sqrt(want*sent)
		if kind == LeanLate {
			low -= want * sent / 4
		}
		if len(m.Victims(kind)) != 20 || events < low || events > high {
			t.Errorf("kind %d: %.0f events of %.0f segments", kind, events, sent)
		}
	}
}

// The same seed makes the same packets, another one does not.
func TestLeanSeed(t *testing.T) {
	sum := func(seed uint64) (h uint64) {
		play(t, leanModel(t, smallLean(seed)), func(p *packet.Packet) {
			h = h*0x9e3779b97f4a7c15 + uint64(p.Time) ^ uint64(p.Seq)<<20 ^ uint64(p.IPID)
		})
		return h
	}
	if a, b, c := sum(3), sum(3), sum(4); a != b || a == c {
		t.Errorf("sums %x, %x, %x of seeds 3, 3, 4", a, b, c)
	}
}

// A scan is added to the rest of the trace, each of its SYNs to another address.
func TestLeanScan(t *testing.T) {
	o := smallLean(5)
	without := play(t, leanModel(t, o), func(*packet.Packet) {})
	o.Scan = 5000
	targets := map[string]bool{}
	with := play(t, leanModel(t, o), func(p *packet.Packet) {
		if p.TCPFlags == packet.SYN {
			targets[p.Dst.String()] = true
		}
	})
	if with != without+5000 || len(targets) != 5000 {
		t.Errorf("%d packets with the scan, %d without, %d targets", with, without, len(targets))
	}
}

// A mirror shows packets twice in a row.
func TestLeanMirror(t *testing.T) {
	o := smallLean(6)
	o.Mirror = 0.5
	var before packet.Packet
	n, twice := 0, 0
	n = play(t, leanModel(t, o), func(p *packet.Packet) {
		if *p == before {
			twice++
		}
		before = *p
	})
	if share := float64(twice) / float64(n-twice); share < 0.49 || share > 0.51 {
		t.Errorf("%d of %d packets are sent twice", twice, n-twice)
	}
}

func TestLeanImpossible(t *testing.T) {
	for _, o := range []LeanOptions{{Flows: -1}, {Flows: 1000, Packets: 1000}, {Loss: 2}, {Victims: 2000}, {Scan: 1 << 18}, {Span: -1}} {
		if _, err := NewLean(o); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}
