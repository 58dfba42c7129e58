package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// timeline plays 40 windows of 60 s of an algorithm with an incident in ten of them, beside windows of another one, of which there are several in each.
// It returns in which windows of the first findings start and end.
func timeline(e *Engine, several int) string {
	got := ""
	for n := range 40 * several {
		l := opened(n, false)
		length := int64(60e9) / int64(several)
		l.Window.Start, l.Window.End = int64(n)*length, int64(n+1)*length
		lines := []report.Line{l}
		if long := n / several; n%several == several-1 {
			p50 := 20e6
			if long >= 20 && long < 30 {
				p50 = 90e6
			}
			l = handshakes(long, p50)
			l.Window.Start, l.Window.End = int64(long)*60e9, int64(long+1)*60e9
			lines = append(lines, l)
		}
		for _, l := range lines {
			for _, f := range e.Line(l) {
				got += fmt.Sprintf("%v %s at %d ", f.State, f.Kind, n/several)
			}
		}
	}
	return strings.TrimSpace(got)
}

// Where another algorithm of the instance has shorter windows, a finding starts and ends with the same windows as where it has not, once each, and no round
// waits for the longer windows but those that end with them.
func TestLongerWindows(t *testing.T) {
	alike, beside := New(), New()
	want, got := timeline(alike, 1), timeline(beside, 6)
	if got != want || strings.Count(want, "begins") != 1 || strings.Count(want, "ends") != 1 {
		t.Errorf("%q, of windows of one length %q", got, want)
	}
	if beside.partial > 1 { // the first of the longer windows, which nothing was known of
		t.Errorf("%d of %d rounds lacked a window", beside.partial, beside.Rounds())
	}
}
