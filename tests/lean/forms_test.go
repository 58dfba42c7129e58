package lean

import "testing"

// The paper's own forms also give answers: their candidates have no finished events.
func TestPapersForms(t *testing.T) {
	for _, set := range []map[string]string{{"stat": "latency", "latency": "signed"}, {"stat": "loss", "loss": "walk"}} {
		o := small(6)
		o.Packets, o.Flows = 30_000, 1_500
		lines := through(t, o, 0, set)
		if len(lines) != 1 || len(lines[0].Report.Tables[0].Rows) == 0 {
			t.Errorf("%v: no rows", set)
		}
	}
}
