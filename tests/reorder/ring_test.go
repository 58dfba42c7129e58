package reorder

import (
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// A ring of 4 KiB holds 128 reports of 24 bytes with a header of 8. It is emptied ten times a second of the capture, so
// that a slow trace loses nothing and one that is faster than 1,280 reports a second does, in a replay as live.
// A loss is counted and reported; counted and received reports add up to all.
func TestFullRing(t *testing.T) {
	set := map[string]string{"buckets": "32", "report": "all", "ring": "4KiB"}
	for _, c := range []struct {
		span time.Duration
		lost bool
	}{{500 * time.Millisecond, true}, {time.Hour, false}} {
		o := traffic.ReorderOptions{Packets: 20_000, Flows: 2_000, Prefixes: 100, Span: c.span, Seed: 1}
		l := replay(t, model(t, o), session.Config{}, set)[0]
		set["ring"] = "64MiB"
		whole := replay(t, model(t, o), session.Config{}, set)[0]
		set["ring"] = "4KiB"
		lost, got, all := l.Lost["reports"], number(t, l.Report, "reports"), number(t, whole.Report, "reports")
		if (lost > 0) != c.lost || whole.Lost["reports"] != 0 {
			t.Errorf("flows start within %v: %d reports were lost with a ring of 4 KiB, %d with one of 64 MiB", c.span, lost, whole.Lost["reports"])
		}
		if got+float64(lost) != all {
			t.Errorf("flows start within %v: %g reports arrived and %d were lost of %g", c.span, got, lost, all)
		}
		if noted := strings.Contains(strings.Join(l.Report.Notes, "\n"), "raise reorder.ring"); noted != c.lost {
			t.Errorf("flows start within %v: notes %q", c.span, l.Report.Notes)
		}
		t.Logf("flows start within %v: %g reports, %d lost", c.span, got, lost)
	}
}
