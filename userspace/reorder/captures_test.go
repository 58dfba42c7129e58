package reorder

import (
	"errors"
	"io"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// eachPacket decodes a capture; missing is what the IP header promises beyond the frame, in bytes.
func eachPacket(t *testing.T, name string, f func(p *packet.Packet, missing int)) {
	t.Helper()
	src, err := capture.OpenAll([]string{testutil.Trace(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	defer all.Close()
	var d packet.Decoder
	for {
		var frame packet.Frame
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		var p packet.Packet
		d.Decode(&frame, packet.DecodeOptions{}, &p)
		f(&p, max(0, int(p.Len)-frame.Len))
	}
}

// outOfOrder counts a capture by definitions 1, 2, 3. bounded: no packet ends behind its frame.
func outOfOrder(t *testing.T, name string, bounded bool) (got [3]int) {
	tracker := NewTracker()
	eachPacket(t, name, func(p *packet.Packet, missing int) {
		if bounded {
			p.Payload -= min(p.Payload, uint32(missing))
		}
		v, _ := tracker.Packet(p)
		for d := range got {
			if v.Out[d+1] {
				got[d]++
			}
		}
	})
	return got
}

// The counts of an independent script over real captures, packet for packet. It reads a segment's length from the frame:
// composite_120s holds 735 packets whose frames were cut without a word in the capture, so that each seems to leave a
// gap. By their IP headers, which is how the data plane reads lengths, there are 527 gaps and not 1221.
func TestDefinitionsOnCaptures(t *testing.T) {
	for name, want := range map[string]struct{ script, header [3]int }{
		"composite_120s.pcap":   {[3]int{254, 1221, 604}, [3]int{255, 527, 607}},
		"laptop_wan_300s.pcap":  {[3]int{81, 8, 115}, [3]int{81, 8, 115}},
		"web_reordered.pcap":    {[3]int{13, 30, 84}, [3]int{13, 30, 84}},
		"speedtest_server.pcap": {[3]int{8, 36, 39}, [3]int{8, 36, 39}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outOfOrder(t, name, true); got != want.script {
				t.Errorf("definitions 1, 2, 3 by frame lengths: %v, want %v", got, want.script)
			}
			if got := outOfOrder(t, name, false); got != want.header {
				t.Errorf("definitions 1, 2, 3 by IP headers: %v, want %v", got, want.header)
			}
		})
	}
}
