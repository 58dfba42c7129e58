package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// An event stays on a live table when its window is over, with its age, until it is old; the same event later replaces it.
func TestEventsStay(t *testing.T) {
	for _, brief := range []bool{false, true} {
		term := &fakeTerminal{width: 100, height: 40, now: time.Unix(1000, 0)}
		s := newFakeScreen(term, &bytes.Buffer{})
		s.opt.Style.Brief = brief
		if err := s.Start(Run{Command: "attach", Interfaces: []string{"eth0"}, Algorithms: []RunAlgorithm{{Name: "scans"}}}); err != nil {
			t.Fatal(err)
		}
		window := func(used uint64, rows ...[]any) string {
			l := Line{Algorithm: "scans", Identity: Identity{Instance: "eth0", Interfaces: []string{"eth0"}}, Window: Window{End: 1e9}, Packets: Packets{Seen: used, Parsed: used, Used: used},
				Report: Body{Tables: []Table{{Name: "alerts", Title: "Alerts", Events: true, Columns: []Column{{Name: "key", Label: true}, {Name: "count", Unit: Count}}, Rows: rows}}}}
			term.take()
			if err := s.Line(l); err != nil {
				t.Fatal(err)
			}
			return term.take()
		}
		contains := func(frame string, want ...string) {
			t.Helper()
			for _, w := range want {
				if !strings.Contains(strings.Join(strings.Fields(frame), " "), w) {
					t.Errorf("brief %v: %q is missing in %q", brief, w, frame)
				}
			}
		}
		contains(window(5, []any{"198.51.100.1", 100}, []any{"198.51.100.2", 200}), "the last 10 min", "198.51.100.2 0 s 200", "198.51.100.1 0 s 100")
		term.now = term.now.Add(90 * time.Second)
		contains(window(0, []any{"198.51.100.1", 300}), "198.51.100.1 0 s 300", "198.51.100.2 1:30 min 200")
		term.now = term.now.Add(9 * time.Minute)
		frame := window(0)
		contains(frame, "198.51.100.1 9:00 min 300")
		if strings.Contains(frame, "198.51.100.2") {
			t.Errorf("brief %v: an event of ten minutes and a half is in sight: %q", brief, frame)
		}
		term.now = term.now.Add(2 * time.Minute)
		if frame := window(0); strings.Contains(frame, "198.51.100") {
			t.Errorf("brief %v: %q", brief, frame)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
