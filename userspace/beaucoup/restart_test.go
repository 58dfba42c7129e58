package beaucoup

import (
	"math/bits"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// one is a key's only collector in the registers.
type one struct {
	*instance
	feed *replay.Replayer
	port uint16
	slot uint32
}

// nearly collects until one coupon is missing for an alert.
func nearly(t *testing.T, coupons string) *one {
	t.Helper()
	i, feed := loaded(t, map[string]string{"queries": "q: count distinct sport by src > 43 in 1s", "budget": "1", "coupons": coupons, "entries": "16"})
	o := &one{instance: i, feed: feed}
	for bits.OnesCount64(o.collected(t)) < i.program.Queries[0].Collector.N-1 {
		o.packet(t, 1_000_000_000)
		if o.port > 1000 {
			t.Fatalf("1000 packets collected %x", o.collected(t))
		}
	}
	if n := o.alerts(t); n != 0 {
		t.Fatalf("%d alerts with a coupon missing", n)
	}
	return o
}

// packet of the key, with an attribute that it has not had.
func (o *one) packet(t *testing.T, time int64) {
	t.Helper()
	o.port++
	f := builder.MustBuild(&builder.Spec{Time: time, IP: builder.IP{Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
		Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2})}, TCP: &builder.TCP{SrcPort: o.port, DstPort: 2, Flags: packet.SYN}})
	if err := o.feed.Feed(&f); err != nil {
		t.Fatal(err)
	}
	if err := o.feed.Flush(); err != nil {
		t.Fatal(err)
	}
}

// collected are the coupons, and where they are.
func (o *one) collected(t *testing.T) (coupons uint64) {
	t.Helper()
	all, err := o.units[0].vectors.Read(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for slot, v := range all {
		if o.dated() {
			v &= 1<<32 - 1
		}
		if v != 0 {
			o.slot, coupons = uint32(slot), v
		}
	}
	return coupons
}

func (o *one) alerts(t *testing.T) int {
	t.Helper()
	if err := o.poll(); err != nil {
		t.Fatal(err)
	}
	alerts, _ := o.alerted(t)
	return len(alerts)
}

// A collector whose window is over restarts with the next coupon and no other.
func TestRestartedCollectorHasOneCoupon(t *testing.T) {
	for _, coupons := range []string{"32", "64"} {
		o := nearly(t, coupons)
		before := o.collected(t)
		const later = 3_000_000_000
		for n := 0; o.collected(t) == before; n++ { // until a packet draws: with 64 coupons of 1/64 every one does
			o.packet(t, later)
			if n > 100 {
				t.Fatalf("coupons %s: nothing was collected in a second window", coupons)
			}
		}
		if got := o.collected(t); bits.OnesCount64(got) != 1 {
			t.Errorf("coupons %s: %d coupons after the first packet of a new window, want 1", coupons, bits.OnesCount64(got))
		}
		for range 12 { // far fewer than it takes
			o.packet(t, later)
		}
		if n := o.alerts(t); n != 0 {
			t.Errorf("coupons %s: %d alerts of coupons of two windows", coupons, n)
		}
	}
}

// Another core has started the collector in stage 1 and has not reached stage 3 yet: what is still in the vector is of the window
// before. A coupon that arrives now is lost and counted, and makes no alert.
func TestCouponsOfTheWindowBeforeDoNotCount(t *testing.T) {
	o := nearly(t, "32")
	const later = 3_000_000_000
	begun := uint32(later>>compile.Tick+int64(compile.Ticks(o.program.Queries[0].Window))) | 1
	before := o.collected(t)
	if err := o.units[0].ends.Map().Put(o.slot, begun); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		o.packet(t, later+1000)
	}
	if got := o.collected(t); got != before {
		t.Errorf("coupons %x became %x before their collector started", before, got)
	}
	if n := o.alerts(t); n != 0 {
		t.Errorf("%d alerts of coupons of the window before", n)
	}
	counts, err := o.counts.ReadReset(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if raced := lost(counts, 0)["raced"]; raced == 0 {
		t.Error("no coupon was counted as lost")
	}
}
