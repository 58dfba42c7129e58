package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// hold plays 30 windows of two algorithms with an incident from window 20 on. order says in which order the windows of the algorithms
// "beaucoup" and "fridge" are delivered: it is given all in the usual order and returns another. at is the window that was delivered last
// when the finding began.
func hold(t *testing.T, order func([]report.Line) []report.Line) (e *Engine, at string) {
	t.Helper()
	e = New()
	var lines []report.Line
	for n := range 30 {
		p50 := 20e6
		if n >= 20 {
			p50 = 90e6
		}
		lines = append(lines, opened(n, false), handshakes(n, p50))
	}
	for _, l := range order(lines) {
		for _, f := range e.Line(l) {
			if f.State == finding.Begins {
				at += fmt.Sprintf("%s of %s %d ", f.Kind, l.Algorithm, l.Window.Start/10e9)
			}
		}
	}
	return e, strings.TrimSpace(at)
}

// moved delivers a window so many places later.
func moved(lines []report.Line, algorithm string, n, later int) []report.Line {
	at := slices.IndexFunc(lines, func(l report.Line) bool { return l.Algorithm == algorithm && l.Window.Start == int64(n)*10e9 })
	w := lines[at]
	return slices.Insert(slices.Delete(lines, at, at+1), at+later, w)
}

// Windows that are not in order do not delay a finding further than until the late one is there.
func TestLateWindow(t *testing.T) {
	for name, c := range map[string]struct {
		order   func([]report.Line) []report.Line
		want    string
		partial int
	}{
		"in time": {func(l []report.Line) []report.Line { return l }, "slow-network of fridge 21", 0},
		"the other is late by more than a window": {func(l []report.Line) []report.Line { return moved(moved(l, "beaucoup", 22, 1), "beaucoup", 21, 2) }, "slow-network of beaucoup 21", 0},
		"its own is late by more than a window":   {func(l []report.Line) []report.Line { return moved(l, "fridge", 21, 1) }, "slow-network of fridge 21", 0},
		"one after another is late by more than a window": {func(l []report.Line) []report.Line {
			for n := 10; n < 29; n++ {
				l = moved(l, "fridge", n, 1)
			}
			return l
		}, "slow-network of fridge 21", 0},
		"one window of two": {func(l []report.Line) []report.Line {
			l = slices.DeleteFunc(l, func(l report.Line) bool { return l.Algorithm == "beaucoup" && l.Window.Start == 100e9 })
			for i := range l {
				if l[i].Algorithm == "beaucoup" && l[i].Window.Start == 110e9 {
					l[i].Window.Start = 100e9
				}
			}
			return l
		}, "windows-late of fridge 11 slow-network of fridge 21", 1},
		"one was stretched, and is later than the other": {func(l []report.Line) (list []report.Line) {
			for i := 0; i < len(l); i += 2 {
				list = append(list, l[i+1])
				switch other := l[i]; other.Window.Start {
				case 100e9, 110e9:
				case 120e9:
					other.Window.Start, other.Window.Stretched = 100e9, true
					list = append(list, other)
				default:
					list = append(list, other)
				}
			}
			return list
		}, "slow-network of beaucoup 21", 4},
		"one is missing": {func(l []report.Line) []report.Line {
			return slices.DeleteFunc(l, func(l report.Line) bool { return l.Algorithm == "beaucoup" && l.Window.Start == 210e9 })
		}, "slow-network of fridge 22", 1},
		"one has ended": {func(l []report.Line) []report.Line {
			return slices.DeleteFunc(l, func(l report.Line) bool { return l.Algorithm == "beaucoup" && l.Window.Start >= 190e9 })
		}, "slow-network of fridge 22", 2},
	} {
		e, at := hold(t, c.order)
		if at != c.want || e.partial != c.partial || len(e.held) > 0 {
			t.Errorf("%s: %q, want %q; %d rounds without a window, want %d; %d windows are held", name, at, c.want, e.partial, c.partial, len(e.held))
		}
		if e.Flush(); len(e.held) > 0 {
			t.Errorf("%s: %d windows are held at the end", name, len(e.held))
		}
		if named := strings.Contains(strings.Join(e.Unable(), "\n"), "was too busy to read"); named != (c.partial > 0) {
			t.Errorf("%s: %q", name, e.Unable())
		}
	}
}

// Windows of a source whose clock is behind, as of captures that are read one after the other, do not wait for sources that have ended.
func TestEarlierTime(t *testing.T) {
	e := New()
	for n := range 10 {
		e.Line(opened(1000+n, false))
	}
	found := 0
	for n := range 30 {
		p50 := 20e6
		if n >= 20 {
			p50 = 90e6
		}
		for _, f := range e.Line(handshakes(n, p50)) {
			if f.Kind == finding.SlowNetwork && f.State == finding.Begins {
				found++
			}
		}
	}
	if len(e.held) > 1 || found != 1 {
		t.Errorf("%d windows are held, %d findings", len(e.held), found)
	}
}
