package lean

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/loaded"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

const sharingFlows = 16 // of a core

// gaps are frames of a flow that leaves out every second identifier, after three in a row that prove it.
func gaps(tb testing.TB, core, flow int) (frames [][]byte, lost float64) {
	tb.Helper()
	id := uint16(100)
	for n := range coresRounds {
		f := builder.MustBuild(&builder.Spec{
			IP:  builder.IP{Src: netip.AddrFrom4([4]byte{10, 1, byte(core), byte(flow)}), Dst: netip.AddrFrom4([4]byte{198, 18, 0, 1}), ID: id},
			TCP: &builder.TCP{SrcPort: 443, DstPort: uint16(1000 + flow), Seq: uint32(n) * 100, Flags: packet.ACK}, Payload: make([]byte, 100)})
		frames = append(frames, append([]byte(nil), f.Data...))
		if id++; n >= 2 {
			id++
			lost++
		}
	}
	return frames, lost - 1 // nothing arrives after the last gap
}

// Every core adds to the same sums, rows and filter at the same time, and some flows share cells: no addition is
// lost and no flow is reported twice or not at all. What is read back for each flow is exact, since all of them are known.
func TestCoresShareSketches(t *testing.T) {
	testutil.NeedRoot(t)
	on := loaded.Load(t, lean.Name, map[string]string{"stat": "loss", "loss.id": "ipid", "top": "1000"})
	var lost float64
	on.AllCores(t, func(core int) [][][]byte {
		frames := make([][][]byte, sharingFlows)
		for flow := range frames {
			frames[flow], lost = gaps(t, core, flow)
		}
		return frames
	})
	result := on.Window(t)
	flows := float64(loaded.Cores() * sharingFlows)
	if missing, followed := count(t, &result.Body, "loss_missing"), count(t, &result.Body, "loss_followed"); missing != lost*flows || followed != flows*coresRounds {
		t.Fatalf("%g missing in %g packets that were followed, want %g in %g: flows share records of the table", missing, followed, lost*flows, flows*coresRounds)
	}
	list := listed(t, &result.Body, "loss")
	if float64(len(list)) != flows {
		t.Errorf("%d flows in the list, want %g", len(list), flows)
	}
	for name, got := range list {
		if got != lost {
			t.Errorf("%v: %g lost, want %g", name, got, lost)
		}
	}
}
