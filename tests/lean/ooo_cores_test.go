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

const (
	coresFlows  = 128 // of a core
	coresRounds = 200
)

// frameOf is packet n of a flow of a core; first numbers are scattered as those of connections are.
func frameOf(tb testing.TB, core, flow, n int) []byte {
	tb.Helper()
	first := uint32(core*coresFlows+flow) * 0x9e3779b1
	f, err := builder.Build(&builder.Spec{
		IP:      builder.IP{Src: netip.AddrFrom4([4]byte{10, 0, byte(core), byte(flow)}), Dst: netip.AddrFrom4([4]byte{198, 18, 0, 1})},
		TCP:     &builder.TCP{SrcPort: 443, DstPort: uint16(1000 + flow), Seq: first + uint32(n)*100, Flags: packet.ACK},
		Payload: make([]byte, 100)})
	if err != nil {
		tb.Fatal(err)
	}
	return append([]byte(nil), f.Data...)
}

// All cores send flows in order through tables that are far too small for them. Two flows in one record on two cores can mix
// their words, and a number of another flow is within the 64 MiB that are compared in one case of 64: if that happened to
// every packet, one in 64 would be called late or sent again. It happens to few.
func TestCoresShareRecords(t *testing.T) {
	testutil.NeedRoot(t)
	on := loaded.Load(t, lean.Name, map[string]string{"stat": "ooo,retrans", "memory": "2500"})
	on.AllCores(t, func(core int) [][][]byte {
		frames := make([][][]byte, coresFlows)
		for flow := range frames {
			for n := range coresRounds {
				frames[flow] = append(frames[flow], frameOf(t, core, flow, n))
			}
		}
		return frames
	})
	result := on.Window(t)
	packets := float64(loaded.Cores() * coresFlows * coresRounds)
	for _, name := range []string{"ooo", "retrans"} {
		got, copies := count(t, &result.Body, name+"_examined"), count(t, &result.Body, name+"_copies")
		if got+copies != packets {
			t.Errorf("%s: %g packets and %g copies, %g were sent", name, got, copies, packets)
		}
		// the digest of another packet by chance, with probability 2^-16: 0.8 on average, more than 9 once in 10^7 runs
		if copies > 9 {
			t.Errorf("%s: %g copies of %g packets that were all different", name, copies, packets)
		}
		t.Logf("%s: %g copies", name, copies)
	}
	for _, name := range []string{"out_of_order", "retransmitted"} {
		got := count(t, &result.Body, name)
		t.Logf("%s: %g of %g packets that were in order", name, got, packets)
		if got > packets/64 {
			t.Errorf("%s: %g of %g packets that were all in order, want at most one in 64", name, got, packets)
		}
	}
}
