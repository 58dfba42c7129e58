// Package findings measures losses, reordering and retransmissions in lean's reports, for package diagnose.
package findings

import (
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Minimum evidence for a finding of losses, and the increases over the usual that count as a change.
const (
	fewestSegments = 200
	fewestEvents   = 5
	moreEvents     = .003 // share of the segments
	timesEvents    = 2.5
	eventScatter   = .002 // scatter of that share between windows: single losses are usual
	notFollowed    = .3   // share of segments whose flow has no table entry: above it, losses of many flows are missed
	sizing         = "raise lean.memory (xdpmon plan lean --rate SEGMENTS/s)"
	// perMissing is how many repeated segments one missing segment explains: a loss before this point is repeated once, and a lost ACK
	// downstream repeats data that passed here.
	perMissing = 1.5
	// placeBytes of window_memory are one place of the table of losses with all four statistics; with fewer on there are more places.
	placeBytes  = 37
	wantedTwice = .5
	// Networks from which less is missing, as a share of all segments of the interface, are not listed. From fewestFrom segments on, moreFrom more and timesFrom times as much as
	// usual count as a change: less than moreEvents, because one network is compared with its own past.
	unlistedFrom = .0005
	fewestFrom   = 20
	moreFrom     = .0015
	timesFrom    = 4
	fromScatter  = .0003
	// segmentBytes is the payload of an Ethernet frame of 1,500 bytes: a larger gap was made by several segments.
	segmentBytes = 1460
)

// Of measures losses, reordering and retransmissions of a window.
func Of(l report.Line) (seen finding.Seen) {
	b := l.Report
	num := func(name string) float64 { v := finding.Num(b, name); return v }
	examined, compared := num("loss_examined"), num("retrans_examined")
	holes := num("loss_gaps") - num("loss_given_back")
	add := func(s finding.Symptom, events, of float64, what, table, column string, evidence ...string) {
		if math.IsNaN(events) || math.IsNaN(of) {
			return
		}
		m := finding.New(l, s, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Share(max(0, events), of), what, evidence...)
		m.Trials, m.Delta, m.Factor, m.Scatter = of, moreEvents, timesEvents, eventScatter
		m.Blames = blames(b, table, column)
		switch {
		case of < fewestSegments:
			m.Weak = "fewer than 200 segments"
		case events < fewestEvents:
			m.Value.Low = 0
		}
		seen.Measures = append(seen.Measures, m)
	}
	add(finding.Holes, holes, examined, "share of segments that are missing", "loss", "lost", "lean.loss_gaps", "lean.loss_given_back", "lean.loss")
	seen.Measures = append(seen.Measures, holesFrom.measures(l, examined, nil)...)
	add(finding.Resent, num("retransmitted")-perMissing*missing(b), compared, "share of segments that are sent again though they had passed here", "retrans", "retransmitted",
		"lean.retransmitted", "lean.retrans")
	missingTo := holesFrom
	missingTo.end = "dst"
	seen.Measures = append(seen.Measures, resentTo.measures(l, compared, missingTo.segments(b))...)
	add(finding.OutOfOrder, num("out_of_order")+num("loss_given_back"), num("ooo_examined"), "share of segments that arrive out of order", "ooo", "out_of_order",
		"lean.out_of_order", "lean.loss_given_back", "lean.ooo")
	if n := num("ooo_examined"); !math.IsNaN(n) {
		m := finding.New(l, finding.DataSegments, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Estimate{Value: n, Low: n, High: n, Unit: report.Segments},
			"segments with data", "lean.ooo_examined")
		m.Lower, m.Ratio, m.Factor = true, true, 3
		seen.Measures = append(seen.Measures, m)
	}
	withData := firstOf(num("ooo_examined"), num("retrans_examined"), examined)
	if withData >= fewestSegments {
		seen.Measures = append(seen.Measures, finding.Small(l, unfollowed(l, examined, withData), withData, notFollowed, "share of segments with data whose flow found no place", sizing,
			"lean.lost.loss_not_followed"))
	} else if !math.IsNaN(examined) {
		seen.Unable = append(seen.Unable, "fewer than 200 TCP segments with data on "+l.Place()+": losses cannot be judged")
	}
	return seen
}

// byNetwork is a measure of networks that one of the tables of the most affected flows has: reports have no number of segments by network. The share of a busy interface may stay
// below what counts as a change, while one network loses a large part of what it sends or is sent.
type byNetwork struct {
	symptom       finding.Symptom
	table, column string
	end           string // of a flow, that is in the network
	what          string // of all segments on the interface
	evidence      []string
}

var (
	holesFrom = byNetwork{finding.HolesFrom, "loss", "lost", "src", "that are missing and were sent from there", []string{"lean.loss", "lean.loss_examined"}}
	resentTo  = byNetwork{finding.ResentTo, "retrans", "retransmitted", "dst", "that are sent there again though they had passed here", []string{"lean.retrans", "lean.retrans_examined"}}
)

// segments are how many of an interface's there are of each network, less what other explains, in segments too.
func (n byNetwork) segments(b report.Body) map[netip.Prefix]from {
	networks := map[netip.Prefix]from{}
	finding.Rows(b, n.table, func(r finding.Row) {
		a, err := netip.ParseAddr(r.Text(n.end))
		events, low := r.Num(n.column), r.Num(n.column+"_at_least")
		if err != nil || !(events > 0) || math.IsNaN(low) { // lean.loss=walk has no bounds
			return
		}
		size := sizeOf(b, n.table, n.column)
		p := finding.NetworkOf(a)
		f := networks[p]
		f.segments, f.low = f.segments+events/size, f.low+min(low, events)/size
		f.blames = append(f.blames, finding.Blame{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText(), Part: events})
		networks[p] = f
	})
	return networks
}

// sizeOf is what a column has for one segment: of what is missing always bytes, of what is sent again by lean.count.
func sizeOf(b report.Body, table, column string) float64 {
	for _, t := range b.Tables {
		for _, c := range t.Columns {
			if t.Name == table && c.Name == column && (c.Unit == report.Bytes || table == holesFrom.table) {
				return segmentBytes
			}
		}
	}
	return 1
}

// measures of each network how many segments, of all of the interface. A segment that is missing to a network explains perMissing that are sent there again.
func (n byNetwork) measures(l report.Line, examined float64, explained map[netip.Prefix]from) (list []finding.Measure) {
	others := finding.New(l, n.symptom, finding.Subject{Type: finding.Prefix}, finding.Estimate{High: unlistedFrom, Unit: report.Ratio}, "")
	others.Absent = unlistedFrom // of whom nothing is missing for long has a past, too
	if !(examined >= fewestSegments) {
		others.Weak = "fewer than 200 segments"
		return []finding.Measure{others}
	}
	list = append(list, others)
	networks := n.segments(l.Report)
	for _, p := range slices.SortedFunc(maps.Keys(networks), netip.Prefix.Compare) {
		f := networks[p]
		f.segments, f.low = max(0, f.segments-perMissing*explained[p].segments), max(0, f.low-perMissing*explained[p].segments)
		if f.segments < unlistedFrom*examined {
			continue
		}
		value := finding.Share(f.segments, examined)
		if value.Low = 0; f.segments >= fewestFrom {
			value.Low = finding.Share(f.low, examined).Low
		}
		m := finding.New(l, n.symptom, finding.Subject{Type: finding.Prefix, Name: p.String()}, value, "share of all segments on "+l.Place()+" "+n.what, n.evidence...)
		m.Trials, m.Delta, m.Factor, m.Scatter, m.Absent, m.Blames = examined, moreFrom, timesFrom, fromScatter, unlistedFrom, f.blames
		list = append(list, m)
	}
	return list
}

// from is what is missing from a network, or sent there again, in segments: at least so many, since a gap of a full-sized one has segmentBytes.
type from struct {
	segments, low float64
	blames        []finding.Blame
}

// unfollowed is how many segments with data found no place at least: SYN and FIN of a connection without data find none as often, but nothing can be missing between
// them, and so no answer is worse for it. Nor is one where few of the places are wanted twice in a window: short connections meet flows that have ended, in a table of
// any size, and those that last keep their places.
func unfollowed(l report.Line, examined, withData float64) float64 {
	refused := float64(l.Lost["loss_not_followed"])
	if places := finding.Num(l.Report, "window_memory") / placeBytes; refused < wantedTwice*places {
		return 0
	}
	return max(0, refused-max(0, examined-withData))
}

// firstOf is the first number that is there.
func firstOf(list ...float64) float64 {
	for _, v := range list {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// missing is how many segments the gaps of a window are at least: a queue that overflows drops several in a row.
func missing(b report.Body) float64 {
	gaps, filled, bytes := finding.Num(b, "loss_gaps"), finding.Num(b, "loss_given_back"), finding.Num(b, "loss_missing")
	if !(gaps > filled) {
		return 0
	}
	if math.IsNaN(bytes) { // lean.loss=walk has none
		return gaps - filled
	}
	return max(gaps, bytes/segmentBytes) * (1 - filled/gaps)
}

// blames are the worst flows of a table.
func blames(b report.Body, table, column string) (list []finding.Blame) {
	finding.Rows(b, table, func(r finding.Row) {
		if part := r.Num(column); part > 0 {
			list = append(list, finding.Blame{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText(), Part: part})
		}
	})
	return list
}
