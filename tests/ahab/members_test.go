package ahab

import (
	"context"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// A packet belongs to the first slice whose fields all match: tag, mark, source and destination.
func TestMembersByField(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup("ahab")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"config": `{"capacity":"1Gbit","slices":[{"name":"marked","match":{"marks":[9]}},{"name":"five","match":{"vlans":[5]}},
		{"name":"tagged","match":{"vlans":[6,7],"destinations":["20.0.0.0/8"]}},{"name":"unmarked","match":{"marks":[0],"sources":["10.0.0.7/32"]}},{"name":"others","match":{"sources":["0.0.0.0/0"]}}]}`})
	if err != nil {
		t.Fatal(err)
	}
	var list []packet.Packet
	for n, c := range []struct {
		vlan    uint16
		packets int
		src     byte
		dst     byte
	}{{5, 10, 1, 20}, {6, 20, 1, 20}, {7, 30, 1, 20}, {6, 40, 1, 21}, {8, 50, 1, 20}, {0, 60, 1, 20}, {0, 70, 7, 20}} {
		for i := range c.packets {
			p := packet.Packet{Time: traffic.Start + int64(100*n+i)*1e6, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: 1000, DstPort: 9, Segs: 1, Len: 1000, Payload: 958, Src: netip.AddrFrom4([4]byte{10, 0, 0, c.src}), Dst: netip.AddrFrom4([4]byte{c.dst, 0, 0, 1})}
			if c.vlan > 0 {
				p.VLAN, p.Valid = c.vlan, p.Valid|packet.VLAN
			}
			list = append(list, p)
		}
	}
	got := map[string]float64{}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Window: time.Hour, Seed: 1, Emit: func(l report.Line) error {
		for _, table := range l.Report.Tables {
			if table.Name != "slices" {
				continue
			}
			for _, row := range table.Rows {
				for i, c := range table.Columns {
					if c.Name == "segments_passed" {
						got[row[0].(string)], _ = report.Number(row[i])
					}
				}
			}
		}
		return nil
	}}
	if err := session.ReplaySource(context.Background(), cfg, "members", traffic.Frames(traffic.InTime(list)), nil); err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"marked": 0, "five": 10, "tagged": 50, "unmarked": 70, "others": 150}; !maps.Equal(got, want) {
		t.Errorf("packets by slice: %v, want %v", got, want)
	}
}
