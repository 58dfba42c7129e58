package precision

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	refusedMost = .1
	fewestTotal = 500
)

// findings are whether one flow dominates the traffic, which others use together with a queue, and whether the table was large enough.
func findings(l report.Line) (seen finding.Seen) {
	total := finding.Num(l.Report, "total")
	if !(total >= fewestTotal) {
		return seen
	}
	m := finding.New(l, finding.FlowShare, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Estimate{Unit: report.Ratio}, "largest share of a flow", "precision.flows.share")
	finding.Rows(l.Report, "flows", func(r finding.Row) {
		unit := "packets"
		if math.IsNaN(r.Num(unit)) {
			unit = "bytes"
		}
		low, high := r.Num(unit+"_low")/total, r.Num(unit+"_high")/total
		if math.IsNaN(low) {
			low, high = r.Num("counted")/total, r.Num(unit+"_at_most")/total
		}
		m.Blames = append(m.Blames, finding.Blame{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText(), Part: r.Num(unit), Low: low, High: high})
		if share := r.Num("share"); share > m.Value.Value {
			m.Value = finding.Estimate{Value: share, Low: low, High: high, Unit: report.Ratio}
		}
	})
	m.Delta = .3
	refused := float64(l.Lost["recirculation_refused"])
	seen.Measures = append(seen.Measures, m, finding.Small(l, refused, total, refusedMost, "share of packets whose second pass was refused",
		"raise precision.recirculation or precision.initial (xdpmon plan precision)", "precision.lost.recirculation_refused"))
	return seen
}
