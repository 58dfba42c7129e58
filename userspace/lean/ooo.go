package lean

import (
	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// oooWidths are the statistic's own arrays with the bytes of an entry. lean_twin, the last packets of flows by which a mirror
// port's copies are recognised, is shared by ooo and retrans and counted in both.
var oooWidths = map[string]int{"lean_ooo_way0": 4, "lean_ooo_way1": 4, "lean_ooo_max": 8, "lean_ooo_mg": 8, "lean_twin": 4}

// twins are the entries of lean_twin: flows whose last packet is remembered.
const twins = 128

// reorderings finds packets that arrive below their flow's maximum within 3 ms of it.
type reorderings struct {
	bytes      bool
	misraGries bool
}

func newOOO(v algo.Values) (statistic, error) {
	return &reorderings{bytes: v.Text("count") == "bytes", misraGries: v.Text("ooo") == "misra-gries"}, nil
}

// layout: at 40 kB, records of 12 bytes for 1,024 flows, three times the packets that arrive in 3 ms at 117,000 a second. The
// counts take the rest: a sketch of 5 x 1024 cells, or 2,048 keyed counters.
func (o *reorderings) layout(scale float64) layout {
	way := power(512 * scale)
	l := layout{filter: power(256 * scale), widths: oooWidths, tables: map[string]int{
		"lean_ooo_way0": way, "lean_ooo_way1": way, "lean_ooo_max": 2 * way, "lean_twin": twins}}
	if o.misraGries {
		l.tables["lean_ooo_mg"] = power(2048 * scale)
	} else {
		l.columns = power(1024 * scale)
	}
	return l
}

func (o *reorderings) constants(layout) map[constant.Name]any {
	return map[constant.Name]any{constant.LeanOooMgOn: o.misraGries}
}

func (o *reorderings) unit() float64 { return 1 }

func (o *reorderings) value() report.Column {
	return report.Column{Name: "out_of_order", Unit: eventUnit(o.bytes), Metric: true, Help: "packets below the flow's largest number, within 3 ms of it"}
}

func (o *reorderings) estimate(sketch float64) float64 { return sketch }

// of is one of the statistic's counters.
func (o *reorderings) of(n counts, c bpf.LeanOooCounter) uint64 {
	return n.at(bpf.LeanLeanCounterLEAN_OOO + bpf.LeanLeanCounter(c))
}

func (o *reorderings) values(n counts) []report.Value {
	return []report.Value{
		counter("ooo_examined", o.of(n, bpf.LeanOooCounterOOO_SEGMENTS), report.PacketUnit, "TCP packets with payload, copies of a mirror port not counted"),
		counter("ooo_compared", o.of(n, bpf.LeanOooCounterOOO_COMPARED), report.PacketUnit, "TCP packets with payload of a flow that was in memory"),
		counter("out_of_order", o.of(n, bpf.LeanOooCounterOOO_EVENTS), report.PacketUnit, "packets out of order, of all flows"),
		counter("ooo_behind", o.of(n, bpf.LeanOooCounterOOO_BEHIND), report.PacketUnit, "packets below their flow's maximum that arrived later than 3 ms: retransmissions"),
		counter("ooo_copies", o.of(n, bpf.LeanOooCounterOOO_COPIES), report.Count, "packets that a mirror port showed twice"),
	}
}

// movesShare: events that are missed because their flow moves to way 0.
const movesShare = 0.02

// missed implements countable. A flow that moves to way 0 loses its maximum and starts over.
func (o *reorderings) missed(n counts) (share, size float64) {
	return movesShare + shareOf(o.of(n, bpf.LeanOooCounterOOO_REFUSED), o.of(n, bpf.LeanOooCounterOOO_SEGMENTS)), n.eventSize(ooo)
}

func (o *reorderings) notes(counts) []string {
	return []string{"out of order is what the paper calls so, below the maximum and within 3 ms of it: a fast retransmission inside of a running train is, too; lean.stat=retrans counts retransmissions"}
}

func (o *reorderings) lost(n counts) map[string]uint64 {
	return map[string]uint64{"ooo_not_watched": o.of(n, bpf.LeanOooCounterOOO_REFUSED)}
}

// decodeKeyed reads the Misra-Gries counters of the reported flows; ok is false when the sketch holds the counts. The noise is
// the mean decrement of a counter by other flows: counts are too small by about that, never too large.
func (o *reorderings) decodeKeyed(array func(name string) []uint64, places []place, n counts) (d sketch.Decoded, ok bool) {
	if !o.misraGries {
		return d, false
	}
	words := array(keyedRegister)
	d.Values = make([]float64, len(places))
	for k, p := range places {
		d.Values[k] = keyedCount(words, p)
	}
	d.Plain, d.Noise = d.Values, keyedDeficit(words, float64(n.total(ooo)))/expect.MedianError
	return d, true
}

const keyedRegister = "lean_ooo_mg"

// keyedArrays implements keyed.
func (o *reorderings) keyedArrays() []string {
	if o.misraGries {
		return []string{keyedRegister}
	}
	return nil
}

// keyedCount is a flow's counter, 0 if another flow owns it: ooo_tally() of bpf/lean/ooo.h.
func keyedCount(words []uint64, p place) float64 {
	word := words[int(uint32(p.Rows))&(len(words)-1)]
	if word>>32 != p.Rows>>32 {
		return 0
	}
	return float64(uint32(word))
}

// keyedDeficit is the mean decrement of a counter: each event of another flow decrements the owner's counter and is itself not
// counted.
func keyedDeficit(words []uint64, events float64) float64 {
	var counted float64
	for _, w := range words {
		counted += float64(uint32(w))
	}
	return max(0, events-counted) / 2 / float64(len(words))
}

// followed implements partial.
func (o *reorderings) followed(counts) (share, missed float64) { return 1, movesShare }
