package ahab

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Who is left alone, and sends to the byte of every epoch what there is, gets back the room that a burst has: twice the capacity.
func TestExactly(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup("ahab")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"capacity": "7629376bit"}) // 1000 bytes in 2^20 ns
	if err != nil {
		t.Fatal(err)
	}
	var list []packet.Packet
	for n := range int64(600) {
		p := packet.Packet{Time: traffic.Start + n<<20, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: 1000, DstPort: 9, Segs: 1, Len: 1000, Payload: 958,
			Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{20, 0, 0, 1})}
		if list = append(list, p); n < 200 {
			p.Src, p.Time = netip.AddrFrom4([4]byte{10, 0, 0, 2}), p.Time+1<<19
			list = append(list, p)
		}
	}
	var limits []uint64
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Window: 200 << 20, Snapshots: true, Seed: 1, Emit: func(l report.Line) error {
		s, err := snapshot.Decode(l.Snapshot)
		if err == nil {
			limits = append(limits, s.Words["limit"][1])
		}
		return err
	}}
	if err := session.ReplaySource(context.Background(), cfg, "exact", traffic.Frames(traffic.InTime(list)), nil); err != nil {
		t.Fatal(err)
	}
	all := ahab.Units{Tau: 4 * time.Millisecond, Norm: 1 << 16}.Limit(7629376 / 8)
	if len(limits) < 3 || float64(limits[0]) > .8*all || float64(limits[2]) < 1.99*all {
		t.Errorf("limits of %d, the capacity is one of %.0f", limits, all)
	}
}
