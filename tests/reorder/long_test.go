package reorder

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/tests/loaded"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/reorder"
)

// A record counts 24 bits. A flow with more packets than that in a window loses none of them: its record is reported
// before it is full, and another one continues.
func TestMorePacketsThanARecordCounts(t *testing.T) {
	testutil.NeedRoot(t)
	const packets = 1<<24 + 1<<18
	for _, method := range []string{"sampling", "precision"} {
		on := loaded.Load(t, reorder.Name, map[string]string{"method": method, "buckets": "4", "report": "all", "recirculate": "1"})
		for _, n := range []int{0, 1} { // the second is below the first
			if _, err := on.Entry.Run(&ebpf.RunOptions{Data: frameOf(t, 0, 0, 1-n)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := on.Entry.Run(&ebpf.RunOptions{Data: frameOf(t, 0, 0, 2), Repeat: packets}); err != nil {
			t.Fatal(err)
		}
		result := on.Window(t)
		want := float64(packets + 1) // the first one has no predecessor
		for _, name := range []string{"watched", "reported"} {
			if got := number(t, result.Body, name); got != want {
				t.Errorf("%s: %s %.0f packets, want %.0f", method, name, got, want)
			}
		}
		if out, torn := number(t, result.Body, "reported_out_of_order"), result.Lost["torn"]; torn != 0 || out != 1 {
			t.Errorf("%s: %.0f packets out of order in the reports, want 1; %d records torn, want none", method, out, torn)
		}
		if second := number(t, result.Body, "second_passes"); second < 1 || second > 2 {
			t.Errorf("%s: %.0f second passes, want one for the record and for precision one to enter", method, second)
		}
	}
}
