package lean

import (
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	latencyTick    = 1 << 16 // ns: LAT_TICK
	latencyHistory = 256
	logUnits       = 64 // of a logarithm in the tables, an octave
	expBins        = 2048
)

// Bins of latency.h.
var (
	delayBins  = maps.Bins{Bits: 17, Mantissa: 5}
	weightBins = maps.Bins{Bits: 24, Mantissa: 5}
)

// weightOctaves bounds a delay's weight: 2^9, beyond 6.2 M insertions.
const weightOctaves = 9

// latencies is the statistic latency.
type latencies struct {
	signed bool
	chance *chance
}

func newLatency(v algo.Values) (statistic, error) {
	c, err := newChance(v)
	if err != nil {
		return nil, err
	}
	return &latencies{signed: v.Text("latency") == "signed", chance: c}, nil
}

func (l *latencies) layout(scale float64) layout {
	if l.signed {
		return layout{columns: power(2048 * scale), filter: power(256 * scale), // the sketch alone, as the paper counts
			tables: map[string]int{"lean_lat_fr": 1, "lean_lat_ins": 1, "lean_lat_hist": 1}, widths: latencyWidths}
	}
	return layout{columns: power(1024 * scale), filter: power(1024 * scale),
		tables: map[string]int{"lean_lat_fr": power(2048 * scale), "lean_lat_ins": 1, "lean_lat_hist": latencyHistory}, widths: latencyWidths}
}

var latencyWidths = map[string]int{"lean_lat_fr": 4, "lean_lat_ins": 4, "lean_lat_hist": 4}

func (l *latencies) constants(layout) map[string]any {
	return map[string]any{"lean_lat_signed": l.signed}
}

// tables are logarithms in 1/64 octave: of the delay in ticks, of the weight (1 - 1/M)^-x, and back.
func (l *latencies) tables(at layout) map[string][]uint64 {
	logs := make([]uint64, delayBins.Len())
	for i := range logs {
		low, high := delayBins.Range(i)
		logs[i] = logarithm(float64(low+high-1) / 2)
	}
	weights := make([]uint64, weightBins.Len())
	m := float64(at.tables["lean_lat_fr"])
	for i := range weights {
		low, high := weightBins.Range(i)
		octaves := min(-float64(low+high-1)/2*math.Log2(1-1/max(m, 2)), weightOctaves)
		weights[i] = uint64(math.Round(octaves * logUnits))
	}
	exps := make([]uint64, expBins)
	for i := range exps {
		exps[i] = uint64(min(math.Round(math.Exp2(float64(i)/logUnits)), math.MaxInt32))
	}
	return map[string][]uint64{"lean_lat_log": logs, "lean_lat_weight": weights, "lean_lat_exp": exps}
}

func logarithm(x float64) uint64 { return uint64(math.Round(math.Log2(max(x, 1)) * logUnits)) }

// walks implements walker.
func (l *latencies) walks() bool { return l.signed }

func (l *latencies) unit() float64 { return latencyTick }

func (l *latencies) value() report.Column {
	return report.Column{Name: "total_ns", Unit: report.Nanosecond, Metric: true, Help: "sum of the delays between segments and their ACKs"}
}

func (l *latencies) estimate(sketch float64) float64 { return sketch }

// sampling: a delay d stands for d / q with probability q. A flow of total V has V / d of them, so the variance is V (d / q),
// with the mean of what one sample added to the sketch for d / q.
func (l *latencies) sampling(estimate float64, n counts) float64 {
	events := n.of(bpf.LeanLeanCounterLEAN_EVENTS, latency)
	if events == 0 || l.signed {
		return 0
	}
	return max(0, estimate) * float64(n.total(latency)) / float64(events)
}

func (l *latencies) values(n counts) []report.Value {
	requests, unlucky := n.at(bpf.LeanLeanCounterLEAN_REQUESTS), n.at(bpf.LeanLeanCounterLEAN_UNLUCKY)
	return []report.Value{
		counter("latency_segments", requests, report.PacketUnit, "segments that ask for an ACK"),
		gauge("latency_p", l.chance.p, report.Ratio, "share of the segments that are followed, at the end of the window"),
		counter("latency_sampled", requests-min(unlucky, requests), report.PacketUnit, "... that were admitted (p)"),
		counter("latency_repeated", n.at(bpf.LeanLeanCounterLEAN_REPEATED), report.PacketUnit, "... sent again: the first clock goes on"),
		counter("latency_evicted", n.at(bpf.LeanLeanCounterLEAN_EVICTED), report.PacketUnit, "... overwritten before their ACK came; corrected for"),
		counter("latency_acks", n.at(bpf.LeanLeanCounterLEAN_RESPONSES), report.PacketUnit, "packets that may acknowledge one"),
	}
}

func (l *latencies) notes(n counts) []string {
	if l.signed {
		return []string{"lean.latency=signed leaves the time of every segment without an ACK in the sketch: on real traffic its list means nothing"}
	}
	if stale := n.at(bpf.LeanLeanCounterLEAN_STALE); stale > 0 {
		return []string{"some ACKs came more than 4.29 s after their segments, which is the longest delay that can be told: they are not in the totals"}
	}
	return nil
}

func (l *latencies) lost(n counts) map[string]uint64 {
	return map[string]uint64{"latency_stale": n.at(bpf.LeanLeanCounterLEAN_STALE)}
}
