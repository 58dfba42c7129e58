package lean

import (
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// countable is a statistic whose tables may miss events: another flow holds the entry, or the flow's earlier packets were not
// seen. Its counts are therefore lower bounds, apart from the sketch's noise.
type countable interface {
	// missed is the share of a flow's events that may be missed, and what one event counts on average.
	missed(n counts) (share, size float64)
}

// refutable is a statistic whose tables also count false events.
type refutable interface {
	// refuted is the share of the counted events that may be false.
	refuted(n counts) float64
}

const boundNoise = 3 // standard errors of the sketch

// bounds of a flow's value, both in the sketch's unit; NaN where the statistic has none.
func (i *estimator) bounds(s stat, value, noise float64, n counts) (low, high float64) {
	c, ok := i.statistics[s].(countable)
	if !ok || i.walks(s) {
		return math.NaN(), math.NaN()
	}
	share, size := c.missed(n)
	size = max(size, 1)
	low = value
	if r, ok := c.(refutable); ok {
		low = size * expect.Lower(value/size, r.refuted(n))
	}
	return max(0, low-boundNoise*noise), size*expect.Upper(value/size, share) + boundNoise*noise
}

// shareOf is part / whole; 0 when whole is 0.
func shareOf(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// affected is a share of the packets that could be compared, with bounds of the share of all that were looked at.
func affected(name string, events, compared, examined uint64, help string) report.Value {
	v := gauge(name, math.NaN(), report.Ratio, help+", of those that could be compared; its bounds are those of all packets' share")
	v.Promise = report.Bound
	if compared > 0 {
		v.Value, v.Low, v.High = expect.Share(events, compared, examined)
	}
	return v
}

// eventSize is the mean value of a statistic's events.
func (c counts) eventSize(s stat) float64 {
	return float64(c.total(s)) / max(1, float64(c.of(bpf.LeanLeanCounterLEAN_EVENTS, s)))
}
