package reorder

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	fewestPackets = 200
	moreReordered = .01
	timesUsual    = 3
)

// findings measures out-of-order packets by source network.
func findings(l report.Line) (seen finding.Seen) {
	watched, behind := finding.Num(l.Report, "watched"), finding.Num(l.Report, "out_of_order")
	m := finding.New(l, finding.OutOfOrder, finding.Subject{Type: finding.Interface, Name: l.Place()}, finding.Share(behind, watched),
		"share of watched packets that arrive out of order", "reorder.out_of_order", "reorder.watched", "reorder.prefixes")
	m.Trials, m.Delta, m.Factor = watched, moreReordered, timesUsual
	if !(watched >= fewestPackets) {
		m.Weak = "fewer than 200 watched packets"
	}
	finding.Rows(l.Report, "prefixes", func(r finding.Row) {
		if n := r.Num("out_of_order"); n > 0 && !math.IsNaN(n) {
			m.Blames = append(m.Blames, finding.Blame{Source: r.Text("prefix"), Part: n})
		}
	})
	seen.Measures = append(seen.Measures, m)
	return seen
}
