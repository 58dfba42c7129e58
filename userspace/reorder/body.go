package reorder

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func counter(name string, n uint64, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: unit, Kind: report.Counter, Help: help}
}

func gauge(name string, v any, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: v, Unit: unit, Help: help}
}

// ratio of two counts; NaN when there is nothing to divide by.
func ratio(part, whole uint64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

// body is the report of a window.
func (i *instance) body(n counts, t *tally) report.Body {
	packets, compared := n.at(bpf.ReorderReorderCounterREORDER_PACKETS), n.at(bpf.ReorderReorderCounterREORDER_COMPARED)
	out := n.at(bpf.ReorderReorderCounterREORDER_OUT)
	b := report.Body{
		Values: []report.Value{
			gauge("prefixes_out", len(i.last), report.Count, "prefixes that are put out as heavily reordered"),
			gauge("prefixes_reported", len(t.byName), report.Count, "prefixes that any report names"),
			counter("packets", packets, report.PacketUnit, "TCP packets with payload"),
			counter("watched", compared, report.PacketUnit, "packets that were compared with their predecessor"),
			gauge("watched_share", ratio(compared, packets), report.Ratio, "share of the packets that were compared"),
			counter("out_of_order", out, report.PacketUnit, "out-of-order packets among those watched"),
			i.shareOf(out, compared),
			counter("repeated", n.at(bpf.ReorderReorderCounterREORDER_REPEATED), report.PacketUnit,
				"packets with their predecessor's number: duplicates of a mirror port, or sent again at once; not out of order"),
			counter("aggregates", n.at(bpf.ReorderReorderCounterREORDER_AGGREGATES), report.PacketUnit, "packets that stand for several segments (GSO, GRO)"),
			counter("reports", t.reports, report.Count, "reports to userspace, records read at the end of the window included"),
			counter("reported", t.n, report.PacketUnit, "watched packets of the records that were reported"),
			counter("reported_out_of_order", t.o, report.PacketUnit, "out-of-order packets in the reports"),
			gauge("communication", ratio(t.reports, packets), report.Ratio, "reports a packet (section 4.2)"),
			counter("second_passes", n.at(bpf.ReorderReorderCounterREORDER_SECOND), report.PacketUnit, "packets that passed twice"),
			gauge("recirculation", ratio(n.at(bpf.ReorderReorderCounterREORDER_SECOND), packets), report.Ratio, "share of the packets that passed twice"),
			gauge("buckets", i.buckets(), report.Count, "records there is room for"),
		},
		Tables: []report.Table{i.table(i.last)},
	}
	b.Notes = i.notes(n, t)
	return b
}

// shareOf is the share of out-of-order packets among all that were watched, with the interval of Wilson.
func (i *instance) shareOf(out, watched uint64) report.Value {
	low, high := wilson(out, watched)
	v := gauge("out_of_order_share", ratio(out, watched), report.Ratio, "share of the watched packets that were out of order; as if packets were independent")
	v.Low, v.High = low, high
	return v
}

// wilson is the 95 % interval of a share.
func wilson(part, whole uint64) (low, high float64) {
	if whole == 0 {
		return 0, 1
	}
	const z = 1.96
	n, p := float64(whole), float64(part)/float64(whole)
	center := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, center-half), min(1, center+half)
}

// columns of the table, of estimate and truth alike. Without report=all the watched packets are those of flows with
// trouble, so that only report=all can be compared with the truth.
func (c *config) columns() []report.Column {
	return []report.Column{
		{Name: "prefix", Label: true, Help: "source network"},
		{Name: "packets", Unit: report.PacketUnit, Help: "packets of reported records; in the truth, all"},
		{Name: "out_of_order", Unit: report.PacketUnit, Metric: !c.all, Help: "out-of-order packets among them"},
		{Name: "share", Unit: report.Ratio, Metric: c.all, Help: "out_of_order / packets"},
		{Name: "share_low", Unit: report.Ratio, Help: "lower end of its 95 % interval, as if packets were independent"},
		{Name: "share_high", Unit: report.Ratio, Help: "upper end"},
		{Name: "flows", Unit: report.Count, Help: "different flows in the reports"},
		{Name: "reports", Unit: report.Count, Help: "reports that named it"},
	}
}

// table of the prefixes, most out-of-order packets first.
func (c *config) table(prefixes map[uint64]*sum) report.Table {
	names := make([]uint64, 0, len(prefixes))
	for name := range prefixes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(prefixes[b].o, prefixes[a].o), cmp.Compare(a, b))
	})
	t := report.Table{Name: "prefixes", Title: "Reordered prefixes", Columns: c.columns(), Limit: c.top,
		Help: "source prefixes with heavy reordering, most out-of-order packets first"}
	for _, name := range names[:min(len(names), c.top)] {
		s := prefixes[name]
		low, high := wilson(s.o, s.n)
		t.Rows = append(t.Rows, []any{c.unpack(name).String(), s.n, s.o, ratio(s.o, s.n), low, high, uint64(len(s.flows)), s.reports})
	}
	return t
}

// notes are what an operator should know of this window.
func (i *instance) notes(n counts, t *tally) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if lost := n.at(bpf.ReorderReorderCounterREORDER_REPORTS_LOST); lost > 0 {
		add("%d reports were lost because the ring was full: raise reorder.ring", lost)
	}
	if n.at(bpf.ReorderReorderCounterREORDER_PACKETS) == 0 {
		add("no TCP packet with payload came by: nothing can be said")
		return notes
	}
	if wanted, second := n.at(bpf.ReorderReorderCounterREORDER_WANTED), n.at(bpf.ReorderReorderCounterREORDER_SECOND); wanted > second {
		add("%d of %d second passes were refused, so records stayed longer: raise reorder.recirculate or reorder.C", wanted-second, wanted)
	}
	if len(i.last) > i.top {
		add("%d prefixes were put out, the table shows %d: raise reorder.top", len(i.last), i.top)
	}
	if !i.all && t.reports > 0 {
		add("shares are of flows that had trouble, and too large for their prefixes: reorder.report=all tells the prefixes' share")
	}
	return notes
}
