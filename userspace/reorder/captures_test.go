package reorder

import (
	"errors"
	"io"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// eachFrame reads a capture.
func eachFrame(t *testing.T, name string, f func(frame *packet.Frame)) {
	t.Helper()
	src, err := capture.OpenAll([]string{testutil.Trace(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	defer all.Close()
	for {
		var frame packet.Frame
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		f(&frame)
	}
}

// outOfOrder counts a capture by definitions 1, 2, 3, as if it held no more than snap bytes of each packet.
func outOfOrder(t *testing.T, name string, snap int) (got [3]int) {
	tracker := NewTracker()
	var d packet.Decoder
	eachFrame(t, name, func(frame *packet.Frame) {
		var p packet.Packet
		frame.Data = frame.Data[:min(snap, len(frame.Data))]
		d.Decode(frame, packet.DecodeOptions{}, &p)
		v, _ := tracker.Packet(&p)
		for d := range got {
			if v.Out[d+1] {
				got[d]++
			}
		}
	})
	return got
}

// The counts of an independent script over real captures, packet for packet. A payload ends where the IP header states, but
// not after the packet's length on the wire: composite_120s holds 735 packets that are shorter than their header
// states, and each leaves a gap. What was captured of a packet changes nothing: speedtest_server holds 94 bytes of each,
// and a snap length of 160 (headers with tags, tunnels and options) leaves the others as they are. In composite_120s a port is
// used again, and the first packet after its SYN is no gap.
func TestDefinitionsOnCaptures(t *testing.T) {
	for name, want := range map[string][3]int{
		"composite_120s.pcap": {254, 1220, 604}, "laptop_wan_300s.pcap": {81, 8, 115},
		"web_reordered.pcap": {13, 30, 84}, "speedtest_server.pcap": {8, 36, 39},
	} {
		for _, snap := range []int{1 << 20, 160} {
			if got := outOfOrder(t, name, snap); got != want {
				t.Errorf("%s with %d bytes of a packet: definitions 1, 2, 3 count %v, want %v", name, snap, got, want)
			}
		}
	}
}
