package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

func slicesOf(rows ...[]any) Line {
	return Line{Algorithm: "shares", Identity: Identity{Instance: "eth0", Interfaces: []string{"eth0"}}, Report: Body{Tables: []Table{{Name: "slices", Title: "slices", Limit: 9, Columns: []Column{
		{Name: "slice", Label: true}, {Name: "limit", Unit: BitRate, History: true}, {Name: "used", Unit: BitRate, History: true}, {Name: "dropped", Unit: PacketUnit},
	}, Rows: rows}}}}
}

// A live table draws the history of columns that ask for it, on one scale a row; a window without a number is blank, a row that is missing is forgotten, and
// what is remembered is bounded.
func TestHistory(t *testing.T) {
	term := &fakeTerminal{width: 80, height: 40, now: time.Unix(1000, 0)}
	s := newFakeScreen(term, nil)
	if err := s.Start(fixtureRun()); err != nil {
		t.Fatal(err)
	}
	show := func(rows ...[]any) string {
		t.Helper()
		term.take()
		if err := s.Line(slicesOf(rows...)); err != nil {
			t.Fatal(err)
		}
		return term.take()
	}
	if frame := show([]any{"a", 8e6, uint64(1e6), uint64(0)}); strings.Contains(frame, "history, one character") {
		t.Errorf("one window is no history: %q", frame)
	}
	show([]any{"a", math.NaN(), uint64(4e6), uint64(0)}, []any{"b", 1e6, uint64(0), uint64(0)})
	frame := show([]any{"b", 2e6, uint64(2e6), uint64(0)}, []any{"a", 4e6, uint64(8e6), uint64(0)})
	for _, want := range []string{"a  limit  # +  of 8", "   used   .+#  of 8", "b  limit  +#"} {
		if !strings.Contains(strings.ReplaceAll(frame, endLine, ""), want) {
			t.Errorf("%q is missing in %q", want, frame)
		}
	}
	for n := range 3 * historyWindows {
		frame = show([]any{"c", float64(n), uint64(n), uint64(0)})
	}
	if h := s.past["shares\x00eth0"]; len(h.rows) != 1 || len(h.list[0].past[0]) != historyWindows {
		t.Errorf("%d rows are remembered, %d windows", len(h.rows), len(h.list[0].past[0]))
	}
	for line := range strings.SplitSeq(frame, "\r\n") {
		if n := typeset.Length(strings.NewReplacer(beginFrame, "", endFrame, "", endLine, "").Replace(line)); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(fmt.Errorf("close: %w", err))
	}
}
