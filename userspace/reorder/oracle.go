package reorder

import (
	"fmt"
	"maps"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{instance: i, tracker: NewTracker(), byName: map[uint64]*sum{}}
}

// oracle is the truth of a window: every packet of every flow, by all three definitions. Flow state persists over windows.
type oracle struct {
	instance *instance
	tracker  *Tracker
	byName   map[uint64]*sum
	byDef    [4]uint64 // out-of-order packets, by Definition
	packets  uint64
	repeated uint64
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	v, used := o.tracker.Packet(p)
	if !used {
		return
	}
	name := o.instance.pack(p.Src)
	s := o.byName[name]
	if s == nil {
		s = &sum{flows: map[uint32]struct{}{}}
		o.byName[name] = s
	}
	segments := uint64(max(p.Segs, 1))
	o.packets += segments
	s.n += segments
	s.flows[v.Flow] = struct{}{}
	if v.Repeated {
		o.repeated += segments
	}
	for d, out := range v.Out {
		if out {
			o.byDef[d]++
		}
	}
	if v.Out[o.instance.definition] {
		s.o++
	}
}

// heavy lists the prefixes with at least least packets of which a share above epsilon was out of order: the ground truth of
// section 2.2.1. (Section 4.2 compares with epsilon times the total, which only the largest prefixes can reach.)
func (o *oracle) heavy(least uint64) map[uint64]*sum {
	heavy := map[uint64]*sum{}
	for name, s := range o.byName {
		if s.n >= least && float64(s.o) > o.instance.epsilon*float64(s.n) {
			heavy[name] = s
		}
	}
	return heavy
}

// Window implements algo.Oracle. It compares the prefixes that the instance has reported for the same window with the truth.
func (o *oracle) Window(report.Window) report.Body {
	truth, allowed := o.heavy(o.instance.beta), o.heavy(o.instance.alpha+1)
	found := 0
	for name := range truth {
		if o.instance.last[name] != nil {
			found++
		}
	}
	wrong := 0
	for name := range o.instance.last {
		if allowed[name] == nil {
			wrong++
		}
	}
	out := o.byDef[o.instance.definition]
	b := report.Body{
		Values: []report.Value{
			gauge("prefixes_heavy", len(truth), report.Count, "prefixes of at least beta packets, more than epsilon of them out of order"),
			gauge("found", found, report.Count, "of these, the prefixes that were reported"),
			gauge("accuracy", ratio(uint64(found), uint64(len(truth))), report.Ratio, "share of them that was reported (section 4.2)"),
			gauge("false_positives", wrong, report.Count, "prefixes reported that are not heavily reordered with more than alpha packets"),
			gauge("false_positive_rate", ratio(uint64(wrong), uint64(len(allowed))), report.Ratio, "false_positives over the heavily reordered prefixes with more than alpha packets (section 4.2)"),
			gauge("prefixes_seen", len(o.byName), report.Count, "prefixes that sent anything"),
			counter("packets", o.packets, report.PacketUnit, "TCP packets with payload"),
			counter("all_out_of_order", out, report.PacketUnit, "out-of-order packets, watched or not"),
			gauge("out_of_order_share", ratio(out, o.packets), report.Ratio, "share of all packets that were out of order"),
			counter("all_repeated", o.repeated, report.PacketUnit, "packets with their predecessor's numbers"),
			counter("definition_1", o.byDef[Below], report.PacketUnit, "packets below their predecessor"),
			counter("definition_2", o.byDef[Gap], report.PacketUnit, "packets after the expected one"),
			counter("definition_3", o.byDef[BelowMax], report.PacketUnit, "packets below the largest number so far"),
		},
		Tables: []report.Table{o.instance.table(o.asked(truth), 0, 0)},
		Notes:  o.notes(len(truth), found, wrong),
	}
	o.byName, o.byDef, o.packets, o.repeated = map[uint64]*sum{}, [4]uint64{}, 0, 0
	return b
}

// asked are the heavily reordered prefixes, and those that were reported.
func (o *oracle) asked(truth map[uint64]*sum) map[uint64]*sum {
	all := map[uint64]*sum{}
	maps.Copy(all, truth)
	for name := range o.instance.last {
		if s := o.byName[name]; s != nil {
			all[name] = s
		}
	}
	return all
}

// notes are the results that do not fit the table of a terminal.
func (o *oracle) notes(heavy, found, wrong int) []string {
	c := o.instance.config
	result := fmt.Sprintf("%d of %d heavily reordered prefixes (%d packets or more, above %g %% of them out of order) were reported", found, heavy,
		c.beta, 100*c.epsilon)
	if heavy == 0 {
		result = fmt.Sprintf("no prefix is heavily reordered (%d packets or more, above %g %% of them out of order)", c.beta, 100*c.epsilon)
	}
	return []string{
		fmt.Sprintf("%s; of the %d reported, %d are false: not heavily reordered, or with %d packets or fewer", result, len(o.instance.last), wrong, c.alpha),
		fmt.Sprintf("of %d packets, %d, %d and %d are out of order by definitions 1, 2 and 3", o.packets, o.byDef[Below], o.byDef[Gap], o.byDef[BelowMax]),
	}
}
