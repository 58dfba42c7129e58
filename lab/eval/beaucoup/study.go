// Package beaucoup evaluates BeauCoup (dissertation, chapter 4) against the exact distribution of coupon collectors, the exact
// count, and other ways to count what is distinct.
package beaucoup

import (
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
)

func init() {
	eval.Register(&eval.Study{Name: "beaucoup", Title: "BeauCoup: how far off its alerts are", Intro: intro, Sections: []eval.Section{
		{Name: "collector", Title: "One collector, 1000 sets of hashes: many coupons a packet", Run: collectors(trials[0])},
		{Name: "sparse", Title: "One collector: a coupon in 16 packets", Run: collectors(trials[1])},
		{Name: "sparser", Title: "One collector: a coupon in 64 packets", Run: collectors(trials[2])},
		{Name: "configurations", Title: "Figure 4.5: n out of m", Run: configurations},
		{Name: "coupons", Title: "Figure 4.6: how many coupons", Run: coupons},
		{Name: "access", Title: "Figure 4.7: error against accesses", Run: accesses},
		{Name: "many", Title: "26 queries together and alone, other fields new in every packet", Run: together},
		{Name: "budget", Title: "Figures 4.8 to 4.10: the 26 shipped queries under different budgets", Run: budgets},
		{Name: "tables", Title: "Several tables, and a second place: the 26 shipped queries at equal accesses", Run: divided},
		{Name: "total", Title: "How many there were after the alert", Run: totals},
		{Name: "memory", Title: "Figure 4.11: collectors and window", Run: memory},
		{Name: "limit", Title: "Figure 4.12: what queries need", Run: limits},
		{Name: "ordinary", Title: "Alerts from ordinary traffic", Run: ordinary},
		coverage.Section(cells),
	}})
}

const intro = `
Figures of chapter 4 of Chen's dissertation. BeauCoup runs as the bytecode that ` + "`xdpmon attach`" + ` loads: packets pass
parser, chain and program in the kernel, and userspace reads its tables and its ring as it does live. Theory is the exact
distribution of a collector's draws, worked out here and not by the program's own code. HyperLogLog, UnivMon with NitroSketch
and packet sampling are plain Go.

**Error** is the mean of |T' - T| / T, T' being the exact number of distinct attributes when the alert is raised and T the
threshold (section 4.3.1). **Bias** is the same with its sign. The paper's CAIDA trace is not public: what it stands for is
replaced by models and by a capture (XDPMON_TRACES), each section says which.`
