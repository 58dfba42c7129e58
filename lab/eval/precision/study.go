// Package precision evaluates the heavy-hitter algorithms (dissertation, chapter 3) against the truth, the baselines that
// run as bytecode too, and plain Go references.
package precision

import (
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
)

func init() {
	eval.Register(&eval.Study{Name: "precision", Title: "PRECISION: how exact it is", Intro: intro, Sections: []eval.Section{
		{Name: "recall", Title: "Recall of the 128 largest flows, beside HashPipe", Run: recall},
		{Name: "defaults", Title: "By default parameters, against the exact form", Run: defaults},
		{Name: "unseen", Title: "Has a flow above unseen_below an entry?", Run: unseen},
		{Name: "arrival", Title: "Mean square error on arrival against HashPipe", Run: arrival},
		{Name: "tail", Title: "Mean square error on arrival against HashPipe, heavier tail", Run: tail},
		{Name: "memory", Title: "Memory for equal recall, against HashPipe", Run: memory},
		{Name: "ways", Title: "Figure 3.3: associativity", Run: associativity},
		{Name: "delay", Title: "Figure 3.4: delay of the second pass", Run: variants("delay", "0", "10", "100")},
		{Name: "initial", Title: "Figure 3.5, a and b: initial value", Run: variants("initial", "0", "10", "100", "1000")},
		{Name: "convergence", Title: "Figure 3.5, c: recall over time", Run: convergence},
		{Name: "admission-tailed", Title: "Figure 3.6, a and c: approximated probabilities", Run: admission(caida)},
		{Name: "admission-skewed", Title: "Figure 3.6, b and d: approximated probabilities", Run: admission(uwisc)},
		{Name: "skew-caida", Title: "Figure 3.7, a and d: comparison, heavy-tailed", Run: skew(caida)},
		{Name: "skew-ucla", Title: "Figure 3.7, b and e: comparison, skewed", Run: skew(ucla)},
		{Name: "skew-uwisc", Title: "Figure 3.7, c and f: comparison, very skewed", Run: skew(uwisc)},
		{Name: "hhh", Title: "Figure 3.8: hierarchical heavy hitters", Run: hierarchy},
		{Name: "levels", Title: "Figure 3.8: errors by prefix length", Run: levels},
		{Name: "bits", Title: "Hierarchical heavy hitters by bit: whole keys beside drawn levels and stacks", Run: bits},
		{Name: "deterministic", Title: "Figure 3.9: deterministic admission", Run: deterministic},
		{Name: "captures", Title: "Real captures", Run: captures},
		coverage.Section(coverageCells),
	}})
}

const intro = `
Figures of chapter 3 of Chen's dissertation, through the bytecode that ` + "`xdpmon attach`" + ` loads: packets of a model run through
parser, chain and program in the kernel, and Go reads the registers as it does live. HashPipe and CocoSketch are programs too
(tests/precision/hashpipe breaks the memory rules and is loaded for this only); Space-Saving, RAP, RHHH and MST are plain Go. What the program
does is what ` + "`tests/precision/plain.go`" + ` does, entry for entry (` + "`TestPlain`" + `).

*The issue's model* has 54,334 flows with sizes proportional to 1/(rank + 5)^0.9, 400,000 packets in random order. *Entries* are all
ways together: a key and a counter. *Recall* is equation 3.2: of the k flows that are listed first, those with at least as many
packets as the k-th largest, over k; so flows of equal size count for each other. *Error on arrival* is equation 3.1: what is said
about a packet's flow when the packet has been counted, against the packets that the flow has had. A flow without an entry is
estimated as **0**, by every algorithm; HashPipe's several entries of a flow are added up, as its control plane would.`
