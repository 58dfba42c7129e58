package beaucoup

import (
	"fmt"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// One collector errs as theory says. A key's destinations are its own, so every key is a draw of its own: keys stand for
// seeds.
func TestOneCollector(t *testing.T) {
	const keys = 1000
	for _, c := range []struct {
		threshold    int
		budget, word string
		bound        float64
	}{
		{43, "1", "32", 0.125}, {86, "1/2", "32", 0.153}, {87, "1", "64", 0.125}, {686, "1", "32", 0.174},
	} {
		if testing.Short() && c.threshold > 500 {
			continue
		}
		n := keys
		if c.threshold > 500 {
			n = 300 // the eval has more: tests/eval/beaucoup
		}
		m := &scans{keys: n, each: 3 * c.threshold, gap: 100}
		set := map[string]string{"queries": fmt.Sprintf("spread: count distinct dst by src > %d in 10m", c.threshold),
			"budget": c.budget, "coupons": c.word, "entries": "65536"}
		l := replay(t, traffic.Frames(m), session.Config{Seed: testutil.Seed(t)}, set)[0]
		collector := beaucoup.Collector{M: int(column(t, &l.Report, "queries", "spread", "m")),
			N: int(column(t, &l.Report, "queries", "spread", "n")), P: pOf(t, &l)}
		alerts := number(t, l.Truth, "alerts_judged")
		got, bias := number(t, l.Truth, "mean_relative_error"), number(t, l.Truth, "bias")
		want, draws := collector.Error(float64(c.threshold)), collector.Draws()
		mean := (1 + bias) * float64(c.threshold)
		t.Logf("T = %d, %+v: %g alerts, mean relative error %.4f (theory %.4f), draws %.1f (theory %.1f)", c.threshold, collector,
			alerts, got, want, mean, draws)
		if alerts < 0.98*float64(n) {
			t.Errorf("T = %d: %g of %d keys alerted", c.threshold, alerts, n)
		}
		slack := 3 * want / math.Sqrt(float64(n)) // of the mean over so many keys; their deviation is below their mean
		if math.Abs(got-want) > slack || want > c.bound {
			t.Errorf("T = %d: mean relative error %.4f, theory %.4f, want within %.4f, and at most %.3f", c.threshold, got, want, slack, c.bound)
		}
		if math.Abs(mean/draws-1) > 4*want/math.Sqrt(float64(n)) {
			t.Errorf("T = %d: %.1f draws, CC(m, p, n) is %.1f", c.threshold, mean, draws)
		}
	}
}

func pOf(t *testing.T, l *report.Line) float64 { return column(t, &l.Report, "queries", "spread", "p") }
