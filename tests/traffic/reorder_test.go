package traffic

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// The model's packets are in time order, from as many prefixes as requested, and most flows are in order.
func TestReorder(t *testing.T) {
	m, err := NewReorder(ReorderOptions{Packets: 50_000, Flows: 4_000, Prefixes: 200, Span: time.Second, V6: 0.2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	prefixes, last := map[string]bool{}, map[string]uint32{}
	var p packet.Packet
	var now int64
	packets, below := 0, 0
	for m.Next(&p) {
		if p.Time < now {
			t.Fatalf("packet %d is %d ns before its predecessor", packets, now-p.Time)
		}
		now = p.Time
		packets++
		bits := 24
		if p.Src.Is6() {
			bits = 48
		}
		prefix, err := p.Src.Prefix(bits)
		if err != nil {
			t.Fatal(err)
		}
		prefixes[prefix.String()] = true
		flow := p.Src.String() + p.Dst.String()
		if seq, ok := last[flow]; ok && int32(p.Seq-seq) < 0 {
			below++
		}
		last[flow] = p.Seq
	}
	if packets < 40_000 || packets > 60_000 || len(prefixes) != 200 {
		t.Errorf("%d packets of %d prefixes, want about 50,000 of 200", packets, len(prefixes))
	}
	if share := float64(below) / float64(packets); share < 0.001 || share > 0.02 {
		t.Errorf("%.4f of the packets are below their predecessor, want 0.001 to 0.02", share)
	}
	if _, err := NewReorder(ReorderOptions{Flows: 10, Prefixes: 20}); err == nil {
		t.Error("fewer flows than prefixes are accepted")
	}
}
