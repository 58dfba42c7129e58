package rttarray

import (
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const rejectedMost = .1

// findings are whether the table was large enough; delays are judged by the fridge, since these are biased if the table is small.
func findings(l report.Line) (seen finding.Seen) {
	seen.Measures = append(seen.Measures, finding.Small(l, float64(l.Lost["rejected"]+l.Lost["evicted"]), finding.Num(l.Report, "requests"), rejectedMost, "share of requests that found no slot or lost it",
		"measure delays with fridge, which corrects for what its table loses", "rtt-array.lost.rejected", "rtt-array.lost.evicted"))
	return seen
}
