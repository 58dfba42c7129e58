package hhh

import (
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	fewestTotal = 1000 // below it every fifth packet of a level or more is counted at random: a share of .05 has an error of .015 and more
	moreShare   = .1
	timesShare  = 3
	unlisted    = .01 // hhh.threshold: unlisted networks have less
	smallShare  = .05 // of a network in a larger one: below, it is one of many
	shortest6   = 48
	shortest    = 16 // bits; shorter prefixes are not operated networks
	between     = 20 // bits; hhh has no level there, and networks that consist of many small ones often have this size
	refusedMost = .1
)

// findings are shares of networks in which no host or smaller network dominates.
func findings(l report.Line) (seen finding.Seen) {
	total := finding.Num(l.Report, "total")
	if !(total >= fewestTotal) { // that no network is listed does not mean that none has traffic
		m := finding.New(l, finding.PrefixShare, finding.Subject{Type: finding.Prefix}, finding.Estimate{Unit: report.Ratio}, "")
		m.Weak = "fewer than 1,000 packets"
		return finding.Seen{Measures: []finding.Measure{m}}
	}
	shares := sharesOf(l.Report, total)
	for _, p := range slices.SortedFunc(maps.Keys(shares), netip.Prefix.Compare) {
		s := shares[p]
		scatter := report.Normal95 * math.Sqrt(s.variance) // of the estimate: the bounds are those of the worst case
		m := finding.New(l, finding.PrefixShare, finding.Subject{Type: finding.Prefix, Name: p.String()}, finding.Estimate{Value: s.value, Low: max(0, s.value-scatter), High: min(1, s.value+scatter), Unit: report.Ratio},
			"share of the traffic, without hosts and networks in it that are heavy by themselves", "hhh.prefixes.conditioned")
		m.Delta, m.Factor, m.Absent = moreShare, timesShare, unlisted
		seen.Measures = append(seen.Measures, m)
	}
	seen.Measures = append(seen.Measures, finding.Small(l, float64(l.Lost["recirculation_refused"]), total, refusedMost, "share of packets whose second pass was refused",
		"raise hhh.recirculation or hhh.entries (xdpmon plan hhh)", "hhh.lost.recirculation_refused"))
	return seen
}

// part is the share of a network, with the variance of its estimate.
type part struct{ value, variance float64 }

// sharesOf reads the networks of a window. A network whose traffic is spread over many smaller ones, each just above hhh.threshold and listed by
// itself, has little of its own: such small listed ones also belong to the larger network.
func sharesOf(b report.Body, total float64) map[netip.Prefix]part {
	shares := map[netip.Prefix]part{}
	add := func(p netip.Prefix, s part) {
		old := shares[p]
		shares[p] = part{min(1, old.value+s.value), old.variance + s.variance}
	}
	finding.Rows(b, "prefixes", func(r finding.Row) {
		p, err := netip.ParsePrefix(r.Text("prefix"))
		if err != nil || p.Bits() < shortest || p.IsSingleIP() || p.Addr().Is6() && p.Bits() > 64 {
			return
		}
		s, err1 := r.Num("conditioned")/total, r.Num("standard_error")/total
		if math.IsNaN(s - err1) {
			return
		}
		add(p, part{s, err1 * err1})
		for _, wider := range larger(p) {
			if s < smallShare {
				add(wider, part{s, err1 * err1})
			}
		}
	})
	return shares
}

// larger are the networks that a smaller one may be a part of: /20 and /16, or /48. What is usual in the rest of a /16 hides what a /20 of it begins to send.
func larger(p netip.Prefix) (list []netip.Prefix) {
	bits := []int{between, shortest}
	if p.Addr().Is6() {
		bits = []int{shortest6}
	}
	for _, n := range bits {
		if n < p.Bits() {
			list = append(list, netip.PrefixFrom(p.Addr(), n).Masked())
		}
	}
	return list
}
