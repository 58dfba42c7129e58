// Package fridge evaluates the fridge (Zheng et al., "Unbiased Delay Measurement in the Data Plane", sections 4 to 6) against the truth and against the arrays that it
// is meant to replace.
package fridge

import (
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	_ "github.com/xdpmon/xdpmon/userspace/fridge" // registers what is evaluated
	_ "github.com/xdpmon/xdpmon/userspace/rttarray"
)

func init() {
	eval.Register(&eval.Study{Name: "fridge", Title: "Fridge: how exact it is", Intro: intro, Sections: []eval.Section{
		{Name: "cdf", Title: "Figure 2: the distribution, 65,536 entries", Run: cdf},
		{Name: "probability", Title: "Figure 3: the entry probability", Run: probability},
		{Name: "memory", Title: "Figures 4 and 5: error against memory", Run: memory},
		{Name: "table", Title: "Section 6.3: correction from a table", Run: table},
		{Name: "unbiased", Title: "Is it unbiased?", Run: unbiased},
		{Name: "repeats", Title: "Requests that are sent again", Run: repeats},
		{Name: "cascade", Title: "Section 4.1: why a fridge has one stage", Run: cascade},
		{Name: "combine", Title: "Section 4.2: how two fridges are combined", Run: combine},
		{Name: "counter", Title: "Section 3.3: insertions recorded or inferred", Run: counter},
		{Name: "several", Title: "Section 5.3: three and four fridges", Run: several},
		{Name: "follow", Title: "Section 5.2: a setting that follows load and delays", Run: follow},
		coverage.Section(cells),
	}})
}

const intro = `
Figures of Zheng, Braverman, Chen and Rexford, "Unbiased Delay Measurement in the Data Plane", through the bytecode that
` + "`xdpmon attach`" + ` loads. Nothing is simulated: packets of a traffic model with known truth run through parser, chain and
program in the kernel, and Go reads the registers as it does live. ` + "`make eval`" + ` makes this document; every section says when,
from which commit, with which command and where it was made.

**Error** is the paper's: the horizontal distance of two CDFs on a logarithmic axis, |log2(estimate / truth)|, in per cent:
8 % is 0.08 octaves, a factor of 1.06; 168 % is a factor of 3.2. *Maximum* is the largest of the 5th to the 95th percentile in
steps of one. *Combined* is the error of the average of the CDFs of ten runs with different hash seeds, as in the paper: it
shows bias, since luck averages out. *One run* is the root of the mean squared error of a single run: what a user has to expect.

Traffic is the log-uniform trace of section 5.2, or a model of the ISP trace of section 5 (61 % requests, 13 % of them
answered, mean 57.8 ms; our body: p50 20 ms, p95 250 ms, p99 510 ms, at 535,000 requests a second). The ISP trace
itself is not public, so the shape of the truth, and with it the height of some curves, is ours. An *entry* is one record:
12 bytes in a fridge (id, time, insertions), 8 in a naive array (id, time).`
