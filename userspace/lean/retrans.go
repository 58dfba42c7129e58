package lean

import (
	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// retransWidths are the statistic's own arrays with the bytes of an entry.
var retransWidths = map[string]int{"lean_ret_way0": 8, "lean_ret_way1": 8, "lean_ret_time": 2, "lean_ret_max": 4, "lean_ret_cuts": 8,
	"lean_ret_list": 8, "lean_ret_rank": 2, "lean_twin": 4}

// repetitions finds packets that repeat bytes which their flow had sent more than 3 ms before.
type repetitions struct {
	bytes    bool
	distinct bool // Algorithm 4
}

func newRetrans(v algo.Values) (statistic, error) {
	r := &repetitions{bytes: v.Text("count") == "bytes", distinct: v.Text("retrans") == "distinct"}
	if r.distinct && r.bytes {
		return nil, v.Error("count", "with retrans=distinct, packets: different packets are counted, not different bytes")
	}
	return r, nil
}

// layout: at 40 kB, records of 22 bytes for 1,536 flows. Records take most of the memory, because of 370,000 flows those with
// many packets must keep their record from one train to the next. Events are few, so a small sketch holds them.
func (r *repetitions) layout(scale float64) layout {
	if r.distinct {
		return distinctLayout(scale)
	}
	way0, way1 := power(1024*scale), power(512*scale)
	both := way0 + way1
	return layout{columns: power(256 * scale), filter: power(64 * scale), widths: retransWidths, tables: map[string]int{
		"lean_ret_way0": way0, "lean_ret_way1": way1, "lean_ret_time": both, "lean_ret_max": both, "lean_ret_cuts": both,
		"lean_twin": twins}}
}

func (r *repetitions) constants(layout) map[constant.Name]any {
	return map[constant.Name]any{constant.LeanRetDistinct: r.distinct}
}

func (r *repetitions) unit() float64 { return 1 }

func (r *repetitions) value() report.Column {
	return report.Column{Name: "retransmitted", Unit: eventUnit(r.bytes), Metric: true, Help: "packets of which a byte had been passed more than 3 ms before"}
}

func (r *repetitions) estimate(sketch float64) float64 { return sketch }

// of is one of the statistic's counters.
func (r *repetitions) of(n counts, c bpf.LeanRetransCounter) uint64 {
	return n.at(bpf.LeanLeanCounterLEAN_RETRANS + bpf.LeanLeanCounter(c))
}

func (r *repetitions) values(n counts) []report.Value {
	if r.distinct {
		return nil
	}
	return []report.Value{
		counter("retrans_examined", r.of(n, bpf.LeanRetransCounterRET_SEGMENTS), report.PacketUnit, "TCP packets with payload, copies of a mirror port not counted"),
		counter("retrans_compared", r.of(n, bpf.LeanRetransCounterRET_COMPARED), report.PacketUnit, "TCP packets with payload of a flow that was in memory"),
		counter("retransmitted", r.of(n, bpf.LeanRetransCounterRET_EVENTS), report.PacketUnit, "packets sent again, of all flows"),
		affected("retransmitted_share", r.of(n, bpf.LeanRetransCounterRET_EVENTS), r.of(n, bpf.LeanRetransCounterRET_COMPARED), r.of(n, bpf.LeanRetransCounterRET_SEGMENTS), "share of packets sent again"),
		counter("retrans_probes", r.of(n, bpf.LeanRetransCounterRET_PROBES), report.Count, "repeated packets of one byte: keep-alives and window probes, not counted"),
		counter("retrans_copies", r.of(n, bpf.LeanRetransCounterRET_COPIES), report.Count, "packets that a mirror port showed twice, not counted"),
	}
}

// soonShare: bytes repeated 3 to 9 ms after they were first sent may be missed.
const soonShare = 0.15

// missed implements countable. Bytes repeated 3 to 9 ms after they were first sent may be newer than the recorded cuts (bpf/lean/retrans.h).
func (r *repetitions) missed(n counts) (share, size float64) {
	return soonShare + shareOf(r.of(n, bpf.LeanRetransCounterRET_REFUSED), r.of(n, bpf.LeanRetransCounterRET_SEGMENTS)), n.eventSize(retrans)
}

func (r *repetitions) notes(counts) []string {
	if r.distinct {
		return []string{"retrans=distinct subtracts different packets, known to 13 %, from packets: it shows elephants (docs/lean.md); the default looks at sequence numbers"}
	}
	return nil
}

func (r *repetitions) lost(n counts) map[string]uint64 {
	return map[string]uint64{"retrans_not_watched": r.of(n, bpf.LeanRetransCounterRET_REFUSED)}
}

// followed implements partial.
func (r *repetitions) followed(n counts) (share, missed float64) {
	return max(leastFollowed, shareOf(r.of(n, bpf.LeanRetransCounterRET_COMPARED), r.of(n, bpf.LeanRetransCounterRET_SEGMENTS))), soonShare
}
