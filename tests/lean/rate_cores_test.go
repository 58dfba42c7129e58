package lean

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/loaded"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// All cores count packets and losses of their flows by rate at once, in cells that some of them share: the bounds of every rate hold it, and no flow has more packets than it sent.
func TestCoresByRate(t *testing.T) {
	testutil.NeedRoot(t)
	on := loaded.Load(t, lean.Name, map[string]string{"stat": "loss", "loss.id": "ipid", "by": "rate", "top": "1000"})
	var lost float64
	on.AllCores(t, func(core int) [][][]byte {
		frames := make([][][]byte, sharingFlows)
		for flow := range frames {
			frames[flow], lost = gaps(t, core, flow)
		}
		return frames
	})
	table := on.Window(t).Body.Tables[0]
	column := func(row []any, name string) float64 {
		for i, c := range table.Columns {
			if c.Name == name {
				n, _ := report.Number(row[i])
				return n
			}
		}
		t.Fatalf("no column %s", name)
		return 0
	}
	if got, want := len(table.Rows), loaded.Cores()*sharingFlows; got != want {
		t.Errorf("%d flows in the list, want %d", got, want)
	}
	share := lost / coresRounds
	for _, row := range table.Rows {
		if low, high := column(row, "share_at_least"), column(row, "share_at_most"); low > share || high < share {
			t.Errorf("%v: %g lost, bounds are %g to %g", row, share, low, high)
		}
		// what follows a flow's first event and the packet that took its place: each packet, and the loss before it
		if packets, events := column(row, "packets"), column(row, "events"); packets != events || packets > coresRounds-3 || packets < coresRounds-5 {
			t.Errorf("%v: %g packets and %g events", row, packets, events)
		}
	}
}
