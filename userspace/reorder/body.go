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
func (c *config) body(n counts, t *tally, out map[uint64]*sum) report.Body {
	packets, compared := n.at(bpf.ReorderReorderCounterREORDER_PACKETS), n.at(bpf.ReorderReorderCounterREORDER_COMPARED)
	disordered := n.at(bpf.ReorderReorderCounterREORDER_OUT)
	b := report.Body{
		Values: []report.Value{
			gauge("prefixes_reordered", len(out), report.Count, "prefixes reported as heavily reordered"),
			gauge("prefixes_reported", len(t.byName), report.Count, "prefixes with at least one report"),
			counter("packets", packets, report.PacketUnit, "TCP packets with payload"),
			counter("watched", compared, report.PacketUnit, "packets that were compared with their predecessor"),
			gauge("watched_share", ratio(compared, packets), report.Ratio, "share of the packets that were compared"),
			counter("out_of_order", disordered, report.PacketUnit, "out-of-order packets among those watched"),
			shareOf(disordered, compared, packets),
			counter("repeated", n.at(bpf.ReorderReorderCounterREORDER_REPEATED), report.PacketUnit,
				"packets with their predecessor's number: duplicates of a mirror port, or immediate retransmissions; not out of order"),
			counter("aggregates", n.at(bpf.ReorderReorderCounterREORDER_AGGREGATES), report.Count, "packets that stand for several segments (GSO, GRO)"),
			counter("reports", t.reports, report.Count, "reports to userspace, records read at the end of the window included"),
			counter("reported", t.n, report.PacketUnit, "watched packets of the records that were reported"),
			counter("reported_out_of_order", t.o, report.PacketUnit, "out-of-order packets in the reports"),
			gauge("reports_per_packet", ratio(t.reports, packets), report.Ratio, "reports a packet (section 4.2)"),
			counter("second_passes", n.at(bpf.ReorderReorderCounterREORDER_SECOND), report.Count, "packets that passed twice"),
			gauge("second_pass_share", ratio(n.at(bpf.ReorderReorderCounterREORDER_SECOND), packets), report.Ratio, "share of the packets that passed twice"),
			gauge("buckets", c.buckets(), report.Count, "records there is room for"),
		},
		Tables: []report.Table{c.table(out, packets, t.n)},
	}
	b.Notes = c.notes(n, t, len(out))
	return b.Answering("out_of_order_share", "prefixes_reordered")
}

// shareOf is the share of out-of-order packets among those that were watched, with bounds of the share of all.
func shareOf(out, watched, packets uint64) report.Value {
	v := gauge("out_of_order_share", ratio(out, watched), report.Ratio, "share of the watched packets that were out of order; its bounds are those of all packets' share")
	v.Promise = report.Bound
	if packets > 0 {
		v.Low, v.High = bounds(out, watched, packets-min(watched, packets))
	}
	return v
}

// columns of the table, for estimate and truth. Without report=all the watched packets are those of flows with reordering, so
// only report=all can be compared with the truth.
func (c *config) columns() []report.Column {
	return []report.Column{
		{Name: "prefix", Label: true, Help: "source network"},
		{Name: "packets", Unit: report.PacketUnit, Help: "packets of reported records; in the truth, all"},
		{Name: "out_of_order", Unit: report.PacketUnit, Metric: !c.all, Help: "out-of-order packets among them"},
		{Name: "share", Unit: report.Ratio, Metric: c.all, Low: "share_at_least", High: "share_at_most", Promise: report.Bound,
			Help: "out_of_order / packets"},
		{Name: "share_at_least", Unit: report.Ratio, Help: "share of all packets of the prefix, at least"},
		{Name: "share_at_most", Unit: report.Ratio, Help: "share of all packets of the prefix, at most"},
		{Name: "flows", Unit: report.Count, Help: "different flows in the reports"},
		{Name: "reports", Unit: report.Count, Help: "reports that named it"},
	}
}

// table of the prefixes, most out-of-order packets first, of packets of which some were reported; the others may have been of any of them.
func (c *config) table(prefixes map[uint64]*sum, packets, reported uint64) report.Table {
	reported = min(reported, packets)
	unseen, unwatched := packets-reported, float64(packets-reported)/float64(max(reported, 1))
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
		low, high := c.rowBounds(s.o, s.n, unseen, unwatched)
		t.Rows = append(t.Rows, []any{c.unpack(name).String(), s.n, s.o, ratio(s.o, s.n), low, high, uint64(len(s.flows)), s.reports})
	}
	return t
}

// notes for the operator on this window.
func (c *config) notes(n counts, t *tally, out int) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if lost := n.at(bpf.ReorderReorderCounterREORDER_REPORTS_LOST); lost > 0 {
		add("%d reports were lost because the ring was full: raise reorder.ring", lost)
	}
	if n.at(bpf.ReorderReorderCounterREORDER_PACKETS) == 0 {
		add("no TCP packet with payload was seen: nothing can be estimated")
		return notes
	}
	if wanted, second := n.at(bpf.ReorderReorderCounterREORDER_WANTED), n.at(bpf.ReorderReorderCounterREORDER_SECOND); wanted > second {
		add("%d of %d second passes were refused, so records stayed longer: raise reorder.recirculate or reorder.C", wanted-second, wanted)
	}
	if out > c.top {
		add("%d prefixes were reported, the table shows %d: raise reorder.top", out, c.top)
	}
	if packets, watched := n.at(bpf.ReorderReorderCounterREORDER_PACKETS), n.at(bpf.ReorderReorderCounterREORDER_COMPARED); watched < packets {
		add("%d packets were not watched: shares have bounds, and no confidence interval; raise reorder.buckets to watch more", packets-watched)
	}
	if !c.all && t.reports > 0 {
		add("shares are of flows with reordering, and too large for their prefixes: reorder.report=all measures the prefixes' share")
	}
	return notes
}
