package ahab

import (
	"math"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Beside a file of slices the truth knows whose packets are whose: two users of slice a share 8 Mbit/s, b is below its own, others are in none.
func TestTruthOfSlices(t *testing.T) {
	v, err := algo.NewValues(Name, params, map[string]string{"config": `{"slices":[{"name":"a","ceiling":"8Mbit","user":"source","match":{"sources":["10.0.0.0/16"]}},` +
		`{"name":"b","ceiling":"80Mbit","match":{"vlans":[7]}}]}`, "tau": "40ms"})
	if err != nil {
		t.Fatal(err)
	}
	i, err := descriptor().New(v, algo.Env{Setup: algo.Setup{Replay: true}})
	if err != nil {
		t.Fatal(err)
	}
	o := i.(algo.OracleProvider).Oracle()
	if o == nil {
		t.Fatal("no truth")
	}
	const second = int64(1e9)
	for at := int64(0); at < second; at += 1e6 { // 1000 bytes a millisecond: 8 Mbit/s
		for _, p := range []packet.Packet{
			{Src: netip.MustParseAddr("10.0.0.1")}, {Src: netip.MustParseAddr("10.0.0.2")},
			{Src: netip.MustParseAddr("10.9.0.1"), Valid: packet.VLAN, VLAN: 7},
			{Src: netip.MustParseAddr("10.9.0.2")},
		} {
			p.Valid |= packet.IP
			p.Time, p.Len, p.Dst = second+at, 1000, netip.MustParseAddr("192.0.2.1")
			o.Packet(&p)
		}
	}
	b := o.Window(report.Window{Start: second, End: 2 * second})
	rows := b.Tables[0].Rows
	if len(rows) != 2 || rows[0][0] != "a" || rows[1][0] != "b" {
		t.Fatalf("%v", rows)
	}
	if demand := rows[0][2].(float64); demand != 16e6 {
		t.Errorf("a wants %v", demand)
	}
	if limit := rows[0][3].(float64); math.Abs(limit-4e6) > 0.02*4e6 {
		t.Errorf("a user of a may send %v, want 4 Mbit/s", limit)
	}
	if above, due := rows[0][4].(uint64), rows[0][5].(uint64); above != 2 || math.Abs(float64(due)-1e6) > 0.1e6 {
		t.Errorf("%d users of a are above their limit and lose %d bytes, want 2 and about 1e6", above, due)
	}
	if demand, due := rows[1][2].(float64), rows[1][5].(uint64); demand != 8e6 || due != 0 {
		t.Errorf("b wants %v and loses %d", demand, due)
	}
}
