package carpe

import (
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const collidedMost = .05

// findings measures the largest elephants, which a finding of a flood names, and the share of packets that found no free entry.
func findings(l report.Line) (seen finding.Seen) {
	total := finding.Num(l.Report, "total")
	if !(total > 0) {
		return seen
	}
	m := finding.New(l, finding.FlowShare, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Estimate{Unit: report.Ratio}, "largest share of a flow", "carpe.elephants_top")
	finding.Rows(l.Report, "elephants_top", func(r finding.Row) {
		low, high := r.Num("packets_low")/total, r.Num("packets_high")/total
		m.Blames = append(m.Blames, finding.Blame{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText(), Part: r.Num("packets"), Low: low, High: high})
		if share := r.Num("packets") / total; share > m.Value.Value {
			m.Value = finding.Estimate{Value: share, Low: low, High: high, Unit: report.Ratio}
		}
	})
	m.Delta = .3
	seen.Measures = append(seen.Measures, m, finding.Small(l, float64(l.Lost["collisions"]), total, collidedMost, "share of packets that found no place",
		"raise carpe.entries, or set carpe.handover=true (xdpmon plan carpe)", "carpe.lost.collisions"))
	return seen
}
