package traffic

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Bursty traffic is in order, fills the link as configured between bursts, and exceeds it in them.
func TestBursty(t *testing.T) {
	b, err := NewBursty(BurstyOptions{Packets: 200_000, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	const slot = 100_000 // ns
	bySlot, seen := map[int64]float64{}, map[flow]bool{}
	var last int64
	var p packet.Packet
	for b.Next(&p) {
		if p.Time < last {
			t.Fatalf("a packet at %d after one at %d", p.Time, last)
		}
		last = p.Time
		bySlot[p.Time/slot] += float64(p.Len) * 8
		seen[flowOf(&p)] = true
	}
	var above, below int
	for _, bits := range bySlot {
		switch load := bits / slot; { // bits a ns are Gb/s
		case load > 10:
			above++
		case load < 3:
			below++
		}
	}
	if n := len(bySlot); above < n/20 || above > n/2 || below < n/3 {
		t.Errorf("of %d slots %d are above the link's rate and %d below 3 Gb/s", n, above, below)
	}
	if len(seen) < 10_000 {
		t.Errorf("%d flows, want 10,000 and more", len(seen))
	}
	if _, err := NewBursty(BurstyOptions{Flows: 3, Senders: 4}); err == nil {
		t.Error("a burst of more flows than there are")
	}
}
