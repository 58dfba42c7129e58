package findings

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// TestOf: what is a finding of one window, and what is not.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		cause               string
		waited, waits, legs float64
		rows                int
		peers               float64
		want                int
	}{
		"closed for a fifth":           {"receiver", 1e9, 4, 1e6, 1, 0, 1},
		"closed for a moment":          {"receiver", 1e8, 4, 1e6, 1, 0, 0},
		"a slow path":                  {"path", 3e9, 20, 150e6, 1, 20, 1},
		"a slow path, nobody beside":   {"path", 3e9, 20, 150e6, 1, 9, 0},
		"as slow as others nearly":     {"path", 2e8, 20, 10e6, 1, 20, 0},
		"a SYN was lost":               {"path", 1e9, 1, 0, 1, 20, 0},
		"a slow server":                {"server", 3e9, 10, 2e6, 1, 20, 1},
		"three slow ones":              {"server", 3e9, 10, 2e6, 3, 20, 3},
		"most connections are like it": {"server", 3e9, 10, 2e6, 4, 20, 0},
		"nobody knows":                 {"undecided", 3e9, 10, 2e6, 1, 20, 0},
	} {
		l := report.Line{Algorithm: "waits", Window: report.Window{End: 5e9}, Report: report.Body{Tables: []report.Table{{Name: "causes"}}}}
		for _, leg := range []string{"server_leg", "client_leg", "answer"} {
			l.Report.Values = append(l.Report.Values, report.Value{Name: leg + "s", Value: c.peers}, report.Value{Name: leg + "_p50_ns", Value: 4e6})
		}
		table := &l.Report.Tables[0]
		for _, column := range []string{"src", "sport", "dst", "dport", "proto", "cause", "waited_ns", "waited_at_least_ns", "waited_at_most_ns", "waits", "server_leg_ns"} {
			table.Columns = append(table.Columns, report.Column{Name: column})
		}
		for n := range c.rows {
			table.Rows = append(table.Rows, []any{"10.1.0.1", int64(n), "10.2.0.1", int64(443), "tcp", c.cause, c.waited, c.waited, c.waited, c.waits, c.legs})
		}
		found := Of(l).Measures
		if len(found) != c.want {
			t.Errorf("%s: %d findings, want %d", name, len(found), c.want)
		}
		for n, m := range found {
			if want := fmt.Sprintf("10.1.0.1:%d > 10.2.0.1:443/tcp", n); n > 0 && m.Subject != (finding.Subject{Type: finding.Flow, Name: want}) || !m.Certain || !(m.Value.Low > m.Bound) {
				t.Errorf("%s: %v, %v above %v", name, m.Subject, m.Value, m.Bound)
			}
		}
	}
}
