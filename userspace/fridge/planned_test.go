package fridge

import (
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
)

// TestPlanHolds: the errors that a plan predicts are those that its configuration then has, through the real program.
func TestPlanHolds(t *testing.T) {
	const (
		rate    = 200_000.0
		window  = 200 * time.Millisecond
		longest = 64 * time.Millisecond
		seeds   = 4
	)
	b, err := planFor(t, rate, longest, 96<<10, map[string]string{"legs": "false", "correction": "table", "resolution": "16"},
		map[string]string{"window": window.String(), "cpus": "1"})
	if err != nil {
		t.Fatal(err)
	}
	ratios := 0.0
	for n, row := range b.Tables[0].Rows {
		square := plannedErrors(t, row[0].(string), rate, window, longest, seeds)
		for i := range square {
			predicted := math.Log1p(row[len(row)-3+i].(float64)) / 1.96
			t.Logf("option %d (%v), percentile %g: standard error %.3f, predicted %.3f", n, row[0], planned[i], math.Sqrt(square[i]), predicted)
			ratios += square[i] / (predicted * predicted) / float64(3*len(b.Tables[0].Rows))
		}
	}
	// Over 24 seeds the two agreed to 12 %; with few of them the mean of the squares is within a factor of 3.
	if ratios > 3 || ratios < 1.0/3 {
		t.Errorf("the squared errors are %.2f of the plan's", ratios)
	}
}

// plannedErrors are the mean squares of the logarithmic errors of the planned percentiles.
func plannedErrors(t *testing.T, fridges string, rate float64, window, longest time.Duration, seeds uint64) (square [3]float64) {
	t.Helper()
	set := map[string]string{"fridges": fridges, "legs": "false", "correction": "table", "resolution": "16"}
	for seed := range seeds {
		m := logUniform(t, traffic.LogUniformOptions{Requests: int(rate * window.Seconds()), Rate: rate, Max: longest, Seed: seed + 1})
		l := trial{set: set, model: m, seed: seed + 1, truth: true}.last(t)
		d, truth := find(t, l.Report, "delay_ns"), find(t, *l.Truth, "delay_ns")
		for i, name := range []string{"p50", "p95", "p99"} {
			off := math.Log(quantile(d, name).Value / quantile(truth, name).Value)
			square[i] += off * off / float64(seeds)
		}
	}
	return square
}
