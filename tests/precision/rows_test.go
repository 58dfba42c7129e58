package precision

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// No row overestimates without a remark: a value called counted is never above the truth, and a row of more than
// twice its truth has a remark, and bounds instead of an interval. Intervals and bounds contain the truth; lab/eval/precision has the table.
func TestRowsMarkUncertainCounts(t *testing.T) {
	testutil.NeedRoot(t)
	for name, set := range map[string]map[string]string{
		"defaults": {"top": "200"}, "little memory": {"top": "200", "entries": "128"}, "initial": {"top": "200", "initial": "100"},
	} {
		rows, intervals, held, bounded, twice := 0, 0, 0, 0, 0
		for seed := range uint64(3) {
			stream := Sizes{Flows: 5000, Packets: 30000, Offset: 5, Skew: 0.9, Drawn: true, Seed: seed}.New()
			for _, r := range rowsOf(t, set, stream, seed+1) {
				rows++
				switch {
				case r.remark == "":
					intervals++
					held += yes(r.low <= r.truth && r.truth <= r.high)
				case !math.IsNaN(r.low) || !math.IsNaN(r.high):
					t.Errorf("%s: %+v: doubtful, with an interval", name, r)
				default:
					bounded += yes(r.counted <= r.truth && r.truth <= r.most)
				}
				if math.IsNaN(r.most) != (r.remark == "") {
					t.Errorf("%s: %+v", name, r)
				}
				if r.counted > r.truth {
					t.Errorf("%s: %v are called counted, and there were %v", name, r.counted, r.truth)
				}
				if r.estimate > 2*r.truth {
					twice++
					if r.remark == "" {
						t.Errorf("%s: %v represent %v without a remark", name, r.estimate, r.truth)
					}
				}
			}
		}
		share, bound := float64(held)/float64(intervals), float64(bounded)/float64(rows-intervals)
		t.Logf("%s: %d rows, %d intervals, %.3f hold, %.3f of the bounds, %d of more than twice their truth", name, rows, intervals, share, bound, twice)
		if share < 0.91 || bound < 0.95 {
			t.Errorf("%s: %.3f of %d intervals hold the truth, %.3f of %d bounds", name, share, intervals, bound, rows-intervals)
		}
	}
}

func yes(so bool) int {
	if so {
		return 1
	}
	return 0
}

type row struct {
	estimate, low, high, counted, most, truth float64
	remark                                    string
}

func rowsOf(t *testing.T, set map[string]string, stream *Stream, seed uint64) (list []row) {
	t.Helper()
	var line report.Line
	cfg := session.Config{Algorithms: []session.Selected{chosen(t, set)}, Seed: seed, Truth: true,
		Emit: func(l report.Line) error { line = l; return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(stream.Model()), nil); err != nil {
		t.Fatal(err)
	}
	est, truth := line.Report.Tables[0], line.Truth.Tables[0]
	column := func(name string) int {
		for i, c := range est.Columns {
			if c.Name == name {
				return i
			}
		}
		t.Fatalf("no column %s", name)
		return 0
	}
	packets := column("packets")
	known := map[string]float64{}
	for _, r := range truth.Rows {
		known[fmt.Sprint(r[:packets])] = r[packets].(float64)
	}
	for _, r := range est.Rows {
		list = append(list, row{r[packets].(float64), r[column("packets_low")].(float64), r[column("packets_high")].(float64),
			r[column("counted")].(float64), r[column("packets_at_most")].(float64), known[fmt.Sprint(r[:packets])], r[column("remark")].(string)})
	}
	return list
}
