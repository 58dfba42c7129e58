package parser

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

var traces = []string{"laptop_wan_300s.pcap", "speedtest_server.pcap", "web_reordered.pcap", "composite_120s.pcap"}

// Every packet of the small odd captures, on every way to the parser.
func TestCornerCaptures(t *testing.T) {
	paths := testutil.CornerCaptures(t)
	for _, decap := range []bool{false, true} {
		p := newProbe(t, decap, live, tc, egress, tunXDP, tunTC)
		packets := 0
		for _, path := range paths {
			packets += p.capture(t, path, decap, 1)
		}
		t.Logf("decap %t: %d packets of %d captures", decap, packets, len(paths))
		if packets < 1000 {
			t.Errorf("only %d packets in %d captures", packets, len(paths))
		}
	}
}

// The large captures, replayed; in a short run every tenth packet of the largest.
func TestTraces(t *testing.T) {
	for _, decap := range []bool{false, true} {
		p := newProbe(t, decap)
		for _, name := range traces {
			step := 1
			if testing.Short() && name == traces[3] {
				step = 10
			}
			p.capture(t, testutil.Trace(t, name), decap, step)
		}
	}
}

// capture verifies every step-th packet of a file and returns their number. It stops a file after ten differences.
func (p *probe) capture(t *testing.T, path string, decap bool, step int) int {
	t.Helper()
	n, bad := 0, 0
	forFrames(t, path, func(number int, f *packet.Frame) bool {
		if number%step != 0 {
			return true
		}
		n++
		for w := range ways {
			if _, loaded := p.programs[w]; (w != replayed && !loaded) || !passable(w, f) {
				continue
			}
			if diff := p.check(w, f, decap); diff != "" {
				bad++
				t.Errorf("%s, packet %d (%s, decap %t):\n%s%s", filepath.Base(path), number+1, w, decap, diff, dump(f))
			}
		}
		return bad < 10
	})
	return n
}

// forFrames hands out the frames of a capture until visit returns false. A capture that is cut off ends early.
func forFrames(tb testing.TB, path string, visit func(number int, f *packet.Frame) bool) {
	tb.Helper()
	r, err := capture.Open(path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var f packet.Frame
	for n := 0; ; n++ {
		err := r.Next(&f)
		if errors.Is(err, io.EOF) || errors.Is(err, capture.ErrTruncated) {
			return
		}
		if err != nil {
			tb.Fatalf("%s: %v", filepath.Base(path), err)
		}
		if !visit(n, &f) {
			return
		}
	}
}
