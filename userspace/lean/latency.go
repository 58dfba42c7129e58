package lean

import (
	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	latencyTick = 1 << 13 // ns: LAT_TICK
	sixteenths  = 16      // unit of the second sketch: struct lean_worth
)

// delayBins are the bins of the table lean_lat_worth.
var delayBins = maps.Bins{Bits: 20, Mantissa: 5}

// latencies is the statistic latency.
type latencies struct {
	signed bool
	mean   bool
	chance *chance
}

func newLatency(v algo.Values) (statistic, error) {
	c, err := newChance(v)
	if err != nil {
		return nil, err
	}
	l := &latencies{signed: v.Text("latency") == "signed", mean: v.Bool("mean"), chance: c}
	if l.mean && l.signed {
		return nil, v.Error("mean", "false with latency=signed, which finishes no delay")
	}
	return l, nil
}

func (l *latencies) layout(scale float64) layout {
	if l.signed {
		return layout{columns: power(2048 * scale), filter: power(1024 * scale), // the sketch alone, as the paper counts
			tables: map[string]int{"lean_lat_fr": 1}, widths: latencyWidths}
	}
	return layout{columns: power(1024 * scale), filter: power(1024 * scale),
		tables: map[string]int{"lean_lat_fr": power(2048 * scale)}, widths: latencyWidths}
}

var latencyWidths = map[string]int{"lean_lat_fr": 4}

func (l *latencies) constants(layout) map[constant.Name]any {
	return map[constant.Name]any{constant.LeanLatSigned: l.signed, constant.LeanMeanOn: l.mean}
}

// walks implements walker.
func (l *latencies) walks() bool { return l.signed }

func (l *latencies) unit() float64 { return latencyTick }

func (l *latencies) value() report.Column {
	return report.Column{Name: "total_ns", Unit: report.Nanosecond, Metric: true, Help: "sum of the delays between segments and their ACKs"}
}

func (l *latencies) estimate(sketch float64) float64 { return sketch }

// sampling: a delay d is sampled with probability q and then adds d/q, so the variance is the sum of d (d/q) (1 - q) over the
// flow's delays: its total times the mean of d/q, weighted by d, times the mean of 1 - q. Both means are taken once over all
// flows (sum of squared contributions over their sum; sum of delays over sum of contributions) and once from the flow's one
// reported delay; the larger product counts. The first ignores the flow, the second rests on a single delay. A delay is measured
// in whole ticks: with a fraction f of a tick beyond the whole ones it is rounded up with probability f, which adds a variance of
// 1/6 averaged over f. The number of the flow's delays follows from the reported one.
func (l *latencies) sampling(estimate, event float64, n counts) float64 {
	total := float64(n.total(latency))
	if total == 0 || l.signed {
		return 0
	}
	size := float64(n.at(bpf.LeanLeanCounterLEAN_SQUARES)) * squareUnit / total
	q := min(1, float64(n.at(bpf.LeanLeanCounterLEAN_DELAY))/total)
	if event <= 0 {
		event = total / float64(n.of(bpf.LeanLeanCounterLEAN_EVENTS, latency))
	}
	estimate = max(0, estimate)
	delay, weight := l.chance.split(event)
	evicted := 1 - min(1, q/max(l.chance.p, l.chance.most))
	uneven := burst * estimate * evicted * evicted
	return estimate*max(size*(1-q), delay*(weight-1)) + estimate/event*weight*weight/6 + uneven*uneven
}

// burst is the relative error that an uneven rate causes in the correction for overwritten records, as a factor of the correction
// squared: one bulk connection, whose packet trains overwrite each other's records, gave 0.10 to 0.33 (0.6 % at a correction of
// 23 %, 5.4 % at 41 %).
const burst = 0.2

func (l *latencies) values(n counts) []report.Value {
	requests, unlucky := n.at(bpf.LeanLeanCounterLEAN_REQUESTS), n.at(bpf.LeanLeanCounterLEAN_UNLUCKY)
	return []report.Value{
		counter("latency_examined", requests, report.Segments, "segments that ask for an ACK"),
		gauge("latency_sampling_probability", l.chance.p, report.Ratio, "share of the segments that are followed, at the end of the window"),
		counter("latency_sampled", requests-min(unlucky, requests), report.Segments, "segments that ask for an ACK and were drawn to be followed"),
		counter("latency_repeated", n.at(bpf.LeanLeanCounterLEAN_REPEATED), report.Segments, "segments sent again: their first time stays"),
		counter("latency_evicted", n.at(bpf.LeanLeanCounterLEAN_EVICTED), report.Segments, "segments whose record was overwritten before their ACK arrived; the estimate is corrected for them"),
		counter("latency_acks", n.at(bpf.LeanLeanCounterLEAN_RESPONSES), report.Count, "packets that may acknowledge one"),
	}
}

func (l *latencies) notes(n counts) []string {
	if l.signed {
		return []string{"lean.latency=signed leaves the time of every segment without an ACK in the sketch: on real traffic its list means nothing"}
	}
	if stale := n.at(bpf.LeanLeanCounterLEAN_STALE); stale > 0 {
		return []string{"some ACKs arrived more than 4.29 s after their segments, which is the longest delay that can be measured: they are not in the totals"}
	}
	return nil
}

func (l *latencies) lost(n counts) map[string]uint64 {
	return map[string]uint64{"latency_stale": n.at(bpf.LeanLeanCounterLEAN_STALE)}
}
