package reorder

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/loaded"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
)

const (
	coresFlows  = 64 // of a core
	coresRounds = 300
)

// frameOf is packet n of a flow of a core; all cores share the prefixes, and with them the buckets.
func frameOf(tb testing.TB, core, flow, n int) []byte {
	tb.Helper()
	f, err := builder.Build(&builder.Spec{
		IP:      builder.IP{Src: netip.AddrFrom4([4]byte{10, 0, byte(flow % 16), byte(flow)}), Dst: netip.AddrFrom4([4]byte{198, 18, 0, byte(core)})},
		TCP:     &builder.TCP{SrcPort: uint16(1000 + flow), DstPort: 80, Seq: uint32(n) * 100, Flags: packet.ACK},
		Payload: make([]byte, 100)})
	if err != nil {
		tb.Fatal(err)
	}
	return append([]byte(nil), f.Data...)
}

// With all cores in the same few buckets, packets that are in order are not called anything else, and no report mixes flows.
func TestCoresShareBuckets(t *testing.T) {
	testutil.NeedRoot(t)
	for _, definition := range []string{"1", "2", "3"} {
		on := loaded.Load(t, reorder.Name, map[string]string{"buckets": "4", "T": "0s", "C": "4", "definition": definition, "report": "all", "recirculate": "1"})
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
		packets, out := number(t, result.Body, "packets"), number(t, result.Body, "out_of_order")
		if packets != float64(loaded.Cores()*coresFlows*coresRounds) {
			t.Errorf("%g packets were seen, %d were sent", packets, loaded.Cores()*coresFlows*coresRounds)
		}
		if out > packets/10_000 {
			t.Errorf("definition %s: %g of %g packets that were all in order are called out of order", definition, out, packets)
		}
		if watched, reported := number(t, result.Body, "watched"), number(t, result.Body, "reported"); reported > watched {
			t.Errorf("definition %s: reports hold %g packets, %g were watched", definition, reported, watched)
		}
		t.Logf("definition %s: %g packets, %g out of order, torn %d", definition, packets, out, result.Lost["torn"])
	}
}
