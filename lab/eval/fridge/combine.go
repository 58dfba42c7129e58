package fridge

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
)

// combinations are the ways of userspace/fridge to join fridges.
var combinations = []string{"inverse-variance", "fixed", "sample-variance"}

// combine compares them on two fridges, of lifetimes 2^15 and 2^18 requests.
func combine(ctx context.Context, p *eval.Page) error {
	sizes := eval.Pick(p, []int{512, 2048, 8192, 32768}, []int{512})
	var configs []bytecode.Config
	for _, entries := range sizes {
		for _, c := range combinations {
			configs = append(configs, fridges(pair(entries, 15, 18), "tcp-data", "combine", c))
		}
	}
	m, err := measure(ctx, isp(eval.Pick(p, 2_000_000, 300_000)), seeds(eval.Pick(p, 20, 2), 9), configs)
	if err != nil {
		return err
	}
	p.Text("ISP model, %d answered requests, two fridges of half the entries each with lifetimes of 2^15 and 2^18 requests, %d hash seeds; errors of one run.",
		len(m.truth), len(m.outcomes[0].runs))
	t := &figure.Table{Columns: append(append([]string{"entries, combination"}, errorNames[:]...), "sum of weights / truth", "standard error")}
	score := make([]float64, len(combinations))
	for i, o := range m.outcomes {
		ratio, se := o.ratio(m.truth)
		cells := append([]string{fmt.Sprintf("%d, %s", sizes[i/len(combinations)], combinations[i%len(combinations)])}, o.single(m.truth).percents()...)
		t.Add(append(cells, fmt.Sprintf("%.4f", ratio), fmt.Sprintf("%.4f", se))...)
		score[i%len(combinations)] += math.Log(m.score(i)) / float64(len(sizes))
	}
	p.Table(t)
	p.Text("Errors over those of inverse-variance (geometric mean over sizes and the three percentiles): fixed %.2f, sample-variance %.2f.",
		math.Exp(score[1]-score[0]), math.Exp(score[2]-score[0]))
	p.Text("%s", combineText)
	return nil
}

const combineText = `**inverse-variance** (the default) weighs the fridges for every delay by the probability to come back that p, M and the rate of
insertions predict. The weights do not depend on the samples, so they add no bias. **fixed** weighs by share times p for every delay:
unbiased as well, but the short-lived fridge's few and heavy samples get into the tail. **sample-variance** is the paper's
estimate, 1 over the sum of squared weights of the samples in a bin. It is biased: a fridge that by chance has few samples in a bin has a
small sum of squares and counts for more, so bins come out too small where both have samples, and too large where only one has any, since
its estimate is then taken as it stands; more memory does not cure it, as the table shows.`
