package lean

import (
	"math"

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
	// perHole is how many repeated segments one hole explains: a loss before this point is repeated once, and a lost ACK downstream
	// repeats data that passed here.
	perHole = 1.5
)

// findings measures losses, reordering and retransmissions of a window.
func findings(l report.Line) (seen finding.Seen) {
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
	add(finding.Resent, num("retransmitted")-perHole*max(0, holes), compared, "share of segments that are sent again though they had passed here", "retrans", "retransmitted",
		"lean.retransmitted", "lean.retrans")
	add(finding.OutOfOrder, num("out_of_order")+num("loss_given_back"), num("ooo_examined"), "share of segments that arrive out of order", "ooo", "out_of_order",
		"lean.out_of_order", "lean.loss_given_back", "lean.ooo")
	if n := num("ooo_examined"); !math.IsNaN(n) {
		m := finding.New(l, finding.DataSegments, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Estimate{Value: n, Low: n, High: n, Unit: report.Segments},
			"segments with data", "lean.ooo_examined")
		m.Lower, m.Ratio, m.Factor = true, true, 3
		seen.Measures = append(seen.Measures, m)
	}
	if examined >= fewestSegments {
		seen.Measures = append(seen.Measures, finding.Small(l, float64(l.Lost["loss_not_followed"]), examined, notFollowed, "share of segments whose flow found no place", sizing,
			"lean.lost.loss_not_followed"))
	} else if !math.IsNaN(examined) {
		seen.Unable = append(seen.Unable, "fewer than 200 TCP segments with data on "+l.Place()+": losses cannot be judged")
	}
	return seen
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
