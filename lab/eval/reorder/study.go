// Package reorder evaluates reorder (Zheng, Yu, Rexford, "Detecting TCP Packet Reordering in the Data Plane", section 4) on a model of the paper's trace.
package reorder

import (
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
)

func init() {
	eval.Register(&eval.Study{Name: "reorder", Title: "Reordering: which prefixes are found", Intro: intro, Sections: []eval.Section{
		{Name: "workload", Title: "Section 4.1, figures 3 and 4: the traffic", Run: workload},
		{Name: "sampling", Title: "Figure 5: sampling, report reorder and report all", Run: sampling},
		{Name: "definition1", Title: "Figure 6a: all methods, definition 1", Run: allMethods(1)},
		{Name: "definition2", Title: "Figure 6b: all methods, definition 2", Run: allMethods(2)},
		{Name: "long", Title: "Figure 6a, a bucket for every prefix, where flows are as long as the paper's", Run: long},
		{Name: "parameters", Title: "Figure 7: T, C and d", Run: parameters},
		{Name: "captures", Title: "Real captures", Run: captures},
		{Name: "bounds", Title: "How wide are the bounds?", Run: bounds},
		coverage.Section(cells),
	}})
}

const intro = `
Figures of Zheng, Yu and Rexford, "Detecting TCP Packet Reordering in the Data Plane", through the bytecode that
` + "`xdpmon attach`" + ` loads. The paper's campus trace (82 million packets of 546,126 flows and 17,097 prefixes in five minutes) is not
public; the model (tests/traffic/reorder.go) keeps its prefixes and its rate, and has a fiftieth of its packets and a fifth of its flows.

**Accuracy**: of the prefixes with at least beta = 128 packets and more than epsilon of them out of order, the share that was
put out. **False positives**: prefixes put out that are not in trouble with more than alpha = 16 packets, over those that are.
**Communication**: reports a packet, with the records that are read at the end. epsilon is 0.01 for definition 1 and 0.02 for
definition 2. T = 2^-15 s, C = 16, R = 1 unless something else is said. Means over five seeds of model and hashes, and their standard
deviation.`
