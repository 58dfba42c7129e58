package precision

import (
	"context"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// flood is one packet per microsecond, each of another flow, followed by an equal time with a packet in a hundred.
type flood struct {
	stream Stream
	windows, window,
	sent int
	time int64
}

// Next implements traffic.Model.
func (f *flood) Next(p *packet.Packet) bool {
	at := int(f.time) / 1000 / f.window // windows of f.window microseconds
	if at == 2*f.windows {
		return false
	}
	*p = f.stream.Packet(int32(f.sent), traffic.Start+f.time)
	f.sent++
	f.time += 1000
	if at >= f.windows {
		f.time += 99_000
	}
	return true
}

// The initial value follows the load: from the third window of a flood on there are no more second passes than precision.passes
// allows, nothing is refused, and after the flood the initial value returns to 1.
func TestSecondPassesFollowTheLoad(t *testing.T) {
	const window, windows, allowed = 50_000, 6, 10_000 // us, of either kind, a second
	set := map[string]string{"entries": "1024", "passes": "10000"}
	var lines []report.Line
	cfg := session.Config{Algorithms: []session.Selected{chosen(t, set)}, Seed: 4, Window: window * time.Microsecond,
		Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
	testutil.NeedRoot(t)
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(&flood{windows: windows, window: window}), nil); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 2*windows {
		t.Fatalf("%d windows, want %d", len(lines), 2*windows)
	}
	const most = allowed * window / 1e6
	if first := valueOf(t, lines[0], "recirculated"); first < 5*most {
		t.Errorf("%.0f second passes in the first window: the flood is none", first)
	}
	for n := 2; n < windows; n++ {
		if got := valueOf(t, lines[n], "recirculated"); got > 1.2*most || got < most/2 {
			t.Errorf("window %d: %.0f second passes, want %.0f", n, got, float64(most))
		}
	}
	if last := valueOf(t, lines[2*windows-1], "initial"); last != 1 {
		t.Errorf("the initial value is %.0f when the flood is over", last)
	}
	for n, l := range lines {
		if l.Lost["recirculation_refused"] != 0 {
			t.Errorf("window %d: %d second passes were refused", n, l.Lost["recirculation_refused"])
		}
	}
}

func valueOf(t *testing.T, l report.Line, name string) float64 {
	t.Helper()
	for _, v := range l.Report.Values {
		if f, ok := report.Number(v.Value); ok && v.Name == name {
			return f
		}
	}
	t.Fatalf("the report has no number %s", name)
	return 0
}
