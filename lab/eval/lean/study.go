// Package lean evaluates the lean algorithms (Liu et al., "Memory-Efficient Performance Monitoring on Programmable Switches with Lean Algorithms", section 6) on a model of a backbone minute.
package lean

import (
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	_ "github.com/xdpmon/xdpmon/userspace/lean" // registers what is evaluated
)

func init() {
	eval.Register(&eval.Study{Name: "lean", Title: "Lean: which flows suffer most", Intro: intro, Sections: []eval.Section{
		{Name: "bars", Title: "Recall of the true top 100, ten seeds", Run: bars},
		{Name: "scale", Title: "The paper's minute: 3.7 million flows, 70 million packets", Run: scale},
		{Name: "scan", Title: "A scan of 100,000 unanswered SYNs", Run: scan},
		{Name: "severity", Title: "Figures 6 a, c and 7 a, c: severity", Run: severities},
		{Name: "memory", Title: "Figures 6 b, d and 7 b, d: memory", Run: memories},
		{Name: "rate", Title: "By rate", Run: rates},
		{Name: "identifiers", Title: "Loss by IPv4 IDs and by bytes", Run: identifiers},
		{Name: "variance", Title: "Why the paper's forms end where they do", Run: variance},
		{Name: "captures", Title: "Real captures", Run: captures},
		coverage.Section(cells),
	}})
}

const intro = `
Figures of Liu, Zhou, Rottenstreich, Braverman and Rexford, "Memory-Efficient Performance Monitoring on Programmable Switches with
Lean Algorithms", through the bytecode that ` + "`xdpmon attach`" + ` loads. Nothing is simulated: packets of a traffic model with known
truth run through parser, chain and program in the kernel, and Go reads the registers as it does live.

**Traffic.** CAIDA's traces are not public, so this is a model of a tenth of one (of all of it in "The paper's minute"): 7 million packets of 370,000 connections in a
minute. The flow of rank r has a share of the segments in proportion to 1/(r+10)^1.1: the largest 48,000, the hundredth
3,800, the thousandth 335, and 232,000 flows have a single one. Segments come in trains, 0.1 ms from one to the next; every
segment is acknowledged one round trip later (log-normal, median 40 ms, 2 to 300 ms), but for one per cent that is never
answered. IPv4 IDs count packets for 85 % of the flows, are 0 for 10 % and random for 5 %; 5 % of the flows are IPv6. Of each kind of
trouble 100 flows of the 1,000 heaviest suffer, and 0.02 % of everybody's segments are lost, late or sent again.

**Truth** is the actual top 100 of an exact count of the same packets, not the list of victims; flows that have as much as the
hundredth are right in the list. **Recall** is the share of the true list that is in the report's, **precision** the share of the
report's list that is right; a list has at most 100 flows, so both are the same unless it is shorter. Only flows that the data
plane reported can be in it. A cell is the median of the runs, and in brackets the lowest and the highest. **Memory** is all that a
statistic has: tables, sketch and Bloom filter of one bank (the paper's 40 KB are the sketch alone).`
