package session

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	_ "github.com/xdpmon/xdpmon/userspace/rttarray" // an algorithm to replay
)

type halfRead struct{ capture.Source }

func (halfRead) Progress() (read, total int64) { return 50, 100 }

// Progress is packets per second since the start.
func TestProgress(t *testing.T) {
	var got []Progress
	r := &replayer{progress: func(p Progress) { got = append(got, p) }, source: halfRead{}, packets: 1000, started: time.Now().Add(-10 * time.Second)}
	r.report()
	if len(got) != 1 {
		t.Fatalf("called %d times", len(got))
	}
	p := got[0]
	if p.Packets != 1000 || p.Bytes != 50 || p.TotalBytes != 100 || p.Elapsed < 10*time.Second || p.Rate*p.Elapsed.Seconds() < 999.9 || p.Rate*p.Elapsed.Seconds() > 1000.1 {
		t.Errorf("%+v", p)
	}
	r.progress = nil
	r.report()
}

// skipping is a capture with one packet, and some that are none.
type skipping struct {
	capture.Source
	left int
}

func (s *skipping) Next(f *packet.Frame) error {
	if s.left == 0 {
		return io.EOF
	}
	s.left--
	f.Time, f.Data, f.Len = 1e9, make([]byte, 60), 60
	return nil
}

func (*skipping) Skipped() map[string]uint64    { return map[string]uint64{"wifi": 3} }
func (*skipping) Progress() (read, total int64) { return 0, 0 }

// Frames of a capture that are no packets are counted as lost, and a replay at full speed has no progress to report.
func TestReplayReportsWhatItSkipped(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup("rtt-array")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []report.Line
	cfg := Config{Algorithms: []Selected{{Descriptor: d, Values: v}}, Proven: true,
		Emit:   func(l report.Line) error { lines = append(lines, l); return nil },
		Notice: func(format string, args ...any) { t.Errorf("logged: "+format, args...) }}
	if err := ReplaySource(t.Context(), cfg, "it", &skipping{left: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || lines[0].Lost["link_wifi"] != 3 {
		t.Errorf("lines %+v", lines)
	}
}

// short is packets that end within their IP header.
type short struct{ skipping }

func (s *short) Next(f *packet.Frame) error {
	err := s.skipping.Next(f)
	if err == nil {
		f.Data = append(make([]byte, 12), 8, 0, 0x45, 0, 0, 46)
	}
	return err
}

// A capture whose packets are too short to be measured is reported with the remedy, once.
func TestReplayReportsShortPackets(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup("rtt-array")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	var logged []string
	cfg := Config{Algorithms: []Selected{{Descriptor: d, Values: v}}, Proven: true, Emit: func(report.Line) error { return nil },
		Notice: func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }}
	if err := ReplaySource(t.Context(), cfg, "it", &short{skipping{left: 3}}, nil); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 1 || !strings.HasPrefix(logged[0], "3 of 3 packets end within their headers") {
		t.Errorf("logged %q", logged)
	}
}
