package reorder

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// segment of a flow from a host of one of two networks.
func segment(network, host byte, seq, payload uint32, segs uint16) *packet.Packet {
	return &packet.Packet{Time: 1, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: segs, TCPFlags: packet.ACK, Seq: seq, Payload: payload,
		Src: netip.AddrFrom4([4]byte{10, 0, network, host}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 1}), SrcPort: 443, DstPort: 5000}
}

// The truth of a window, number by number; the next window begins with none of it but with the flows.
func TestOracle(t *testing.T) {
	v, err := algo.NewValues(Name, params, map[string]string{"beta": "4", "alpha": "2", "epsilon": "0.1", "definition": "3"})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := descriptor().New(v, algo.Env{})
	if err != nil {
		t.Fatal(err)
	}
	o := inst.(algo.OracleProvider).Oracle()
	for _, p := range []*packet.Packet{
		segment(1, 1, 1000, 100, 1), segment(1, 1, 1200, 100, 1), segment(1, 1, 1100, 100, 1), segment(1, 1, 1100, 100, 1), // a hole, filled late, twice
		segment(1, 2, 1000, 3000, 3), segment(1, 2, 4000, 100, 0), // in order, one of three segments
		segment(2, 1, 1000, 100, 1), segment(2, 1, 900, 100, 1), segment(2, 1, 1000, 0, 1), // too few
	} {
		o.Packet(p)
	}
	for n, want := range []map[string]float64{
		{"prefixes_heavy": 1, "found": 0, "accuracy": 0, "false_positives": 0, "prefixes_seen": 2, "packets": 10, "all_out_of_order": 3, "out_of_order_share": 0.3,
			"all_repeated": 1, "definition_1": 2, "definition_2": 1, "definition_3": 3},
		{"prefixes_heavy": 0, "prefixes_seen": 1, "packets": 1, "all_out_of_order": 1, "all_repeated": 0, "definition_1": 1, "definition_2": 0, "definition_3": 1},
	} {
		b := o.Window(report.Window{})
		got := map[string]float64{}
		for _, v := range b.Values {
			got[v.Name], _ = report.Number(v.Value)
		}
		for name, x := range want {
			if got[name] != x {
				t.Errorf("window %d: %s is %g, want %g", n, name, got[name], x)
			}
		}
		if n == 0 && (len(b.Tables[0].Rows) != 1 || b.Tables[0].Rows[0][0] != "10.0.1.0/24") {
			t.Errorf("in trouble are %v", b.Tables[0].Rows)
		}
		o.Packet(segment(2, 1, 800, 100, 1))
	}
}
