package hhh

import (
	"math"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	fewestTotal = 2000
	moreShare   = .1
	timesShare  = 3
	unlisted    = .01 // hhh.threshold: what is not listed had less
	shortest    = 16  // bits; shorter prefixes are no network that anybody runs
	refusedMost = .1
)

// findings are shares of networks of which no host or smaller network makes up most.
func findings(l report.Line) (seen finding.Seen) {
	total := finding.Num(l.Report, "total")
	if !(total >= fewestTotal) {
		return seen
	}
	finding.Rows(l.Report, "prefixes", func(r finding.Row) {
		p, err := netip.ParsePrefix(r.Text("prefix"))
		if err != nil || p.Bits() < shortest || p.IsSingleIP() || p.Addr().Is6() && p.Bits() > 64 {
			return
		}
		share, scatter := r.Num("conditioned")/total, report.Normal95*r.Num("standard_error")/total // of the estimate: the bounds are those of the worst case
		low, high := max(0, share-scatter), min(1, share+scatter)
		if math.IsNaN(low) {
			return
		}
		m := finding.New(l, finding.PrefixShare, finding.Subject{Type: finding.Prefix, Name: p.String()}, finding.Estimate{Value: r.Num("conditioned") / total, Low: low, High: high, Unit: report.Ratio},
			"share of the traffic, without hosts and networks in it that are heavy by themselves", "hhh.prefixes.conditioned")
		m.Delta, m.Factor, m.Absent = moreShare, timesShare, unlisted
		seen.Measures = append(seen.Measures, m)
	})
	seen.Measures = append(seen.Measures, finding.Small(l, float64(l.Lost["recirculation_refused"]), total, refusedMost, "share of packets whose second pass was refused",
		"raise hhh.recirculation or hhh.entries (xdpmon plan hhh)", "hhh.lost.recirculation_refused"))
	return seen
}
