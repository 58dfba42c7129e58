package carpe

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const window = 2 * time.Second

// Flows over several hosts, light on each of them, are found by their sum; those of half the threshold are not. Hosts send a hello
// once per group, and are sent the number of observers.
func TestSpreadFlows(t *testing.T) {
	testutil.NeedRoot(t)
	const hosts, flows, heavy = 4, 60, 2400
	n, err := New(hosts, map[string]string{"threshold": "1600", "epsilon": "0.05", "s": "1/8", "group": "src/16", "top": "1000"}, window, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	const first = 1000
	if err := n.Begin(first); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 15))
	var packer builder.Packer
	for round := range 3 {
		var order []int
		for flow := range flows {
			for range heavy >> (flow % 2 * 2) { // every other one a quarter
				order = append(order, flow)
			}
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		start := (first + int64(round)) * int64(window)
		for i, flow := range order {
			now := start + int64(window)*int64(i)/int64(len(order))
			p := packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: uint16(flow), DstPort: 9, Segs: 1, Payload: 100, Len: 142,
				Src: netip.AddrFrom4([4]byte{10, byte(flow % 5), 1, 1}), Dst: netip.AddrFrom4([4]byte{20, 0, 0, 1})}
			var f packet.Frame
			if err := packer.Frame(&p, &f); err != nil {
				t.Fatal(err)
			}
			if err := n.Give(rng.IntN(hosts), &f); err != nil {
				t.Fatal(err)
			}
			if i%(len(order)/20) == 0 {
				if err := n.Talk(now); err != nil {
					t.Fatal(err)
				}
			}
		}
		r, windows, err := n.End()
		if err != nil {
			t.Fatal(err)
		}
		rows := r.Body.Tables[0].Rows
		right := 0
		for _, row := range rows {
			if row[1].(int64)%2 == 0 {
				right++
			}
		}
		// 20 reports with r = 1/4 have a deviation of 19 %: 2,400 are four of them above 1,600, and 600 six below
		if right < 28 || len(rows)-right > 1 {
			t.Errorf("window %d: %d of %d that are declared are elephants, of which there are 30", round, right, len(rows))
		}
		hellos := snapshottest.Value(r.Body, "hellos")
		if round == 0 && hellos != 5*hosts || round > 0 && hellos != 0 {
			t.Errorf("window %d: %v hellos of %d hosts and 5 groups", round, hellos, hosts)
		}
		for _, row := range rows {
			if round > 0 && row[len(row)-4].(int64) != hosts {
				t.Errorf("window %d: %v was reported as of %v observers", round, row[:5], row[len(row)-4])
			}
		}
		for _, s := range windows {
			if one := snapshottest.Report(t, s); len(one.Body.Tables) != 0 || one.Lost["reports"]+one.Lost["groups_full"] != 0 {
				t.Errorf("a host answers by itself, or has lost: %v", one.Lost)
			}
		}
	}
}
