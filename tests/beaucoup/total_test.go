package beaucoup

import (
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// A scan's total is what it has scanned and not the threshold, from one to many thresholds; its interval holds, and it goes on in the
// windows after the alert.
func TestTotalsGoOn(t *testing.T) {
	const keys = 40
	for _, each := range []int{120, 500, 4000} {
		for _, set := range []string{"six", "many"} {
			held, judged, square := 0, 0, 0.0
			for seed := range uint64(3) {
				lines := replayed(t, traffic.Frames(&refused{scans: keys, each: each}), session.Config{Seed: 40 + seed}, map[string]string{"set": set})
				for _, o := range outcome.Of(lines[0].Report, *lines[0].Truth) {
					if o.Quantity != "alerts.total" || !o.Judged || o.Truth < float64(each)/2 {
						continue
					}
					if judged++; o.Enclosed && o.Holds() {
						held++
					}
					x := math.Log(o.Value / o.Truth)
					square += x * x
				}
			}
			deviation := math.Sqrt(square / float64(judged))
			t.Logf("%s, %d ports: %d of %d intervals hold, deviation of the logarithm %.2f", set, each, held, judged, deviation)
		}
	}
	_ = time.Second
}
