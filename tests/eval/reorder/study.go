// Package reorder evaluates reorder (tcp-reordering.txt, section 4) on a model of the paper's trace.
package reorder

import (
	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

func init() {
	eval.Register(&eval.Study{Name: "reorder", Title: "Reordering: which prefixes are found", Intro: intro, Sections: []eval.Section{
		{Name: "model", Title: "Section 4.1: the traffic", Run: model},
		{Name: "memory", Title: "Figures 5 and 6: accuracy, false positives and reports against memory", Run: memory},
		{Name: "parameters", Title: "Figure 7: T, C and d", Run: parameters},
	}})
}

const intro = `
Figures of Zheng, Yu and Rexford, "Detecting TCP Packet Reordering in the Data Plane", through the bytecode that
` + "`xdpmon attach`" + ` loads. The paper's campus trace (82 million packets of 546,126 flows and 17,097 prefixes in five minutes) is not
public; the model keeps its prefixes and its rate, and has a fiftieth of its packets and a fifth of its flows.

**Accuracy**: of the prefixes with at least beta = 128 packets and more than epsilon of them out of order, the share that was
put out. **False positives**: prefixes put out that are not in trouble with more than alpha = 16 packets, over those that are.
**Communication**: reports a packet, with the records that are read at the end. epsilon is 0.01 for definition 1 and 0.02 for
definition 2. One hash seed and one seed of the model: the curves are not smoothed.`

// options of the model, the paper's trace scaled.
func options(p *eval.Page) traffic.ReorderOptions {
	return traffic.ReorderOptions{
		Packets: eval.Pick(p, 1_640_000, 60_000), Flows: eval.Pick(p, 109_000, 4_000), Prefixes: eval.Pick(p, 17_097, 400),
		Span: eval.Pick(p, 6*second, second), Seed: 1,
	}
}
