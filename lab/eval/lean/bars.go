package lean

import (
	"context"
	"fmt"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// seeds are models of one severity with seeds 1 to n.
func seeds(p *eval.Page, s severity, n int) []traffic.LeanOptions {
	list := make([]traffic.LeanOptions, n)
	for i := range list {
		list[i] = model(p, s, uint64(i+1))
	}
	return list
}

// demanded recall by memory.
var demanded = map[int]float64{base: 0.82, 4 * base: 0.90}

// tenSeeds of the bars.
func tenSeeds(p *eval.Page) []traffic.LeanOptions { return seeds(p, bar, eval.Pick(p, 10, 2)) }

// quiet keeps the bars' outcomes for the section that compares with them.
var quiet = map[contestant]outcome{}

func bars(ctx context.Context, p *eval.Page) error {
	warn(p)
	list := both(base, 4*base)
	outcomes, truths, err := run(ctx, p, tenSeeds(p), list)
	if err != nil {
		return err
	}
	for n, c := range list {
		quiet[c] = outcomes[n]
	}
	p.Text("Victims have 50 ms more delay, 4 %% loss, 4 %% out of order, 1 %% retransmissions.")
	table := &figure.Table{Columns: []string{"statistic", "form", "memory", "used", "mean recall", "median recall", "precision", "reported flows"}}
	for n, c := range list {
		o := outcomes[n]
		table.Add(c.statistic, c.form(), kilobytes(c.memory), bytes(o.memory()), figure.Percent(o.recall().mean), o.recall().String(),
			o.precision().String(), fmt.Sprintf("%.0f", o.candidates()))
		if !c.paper {
			met := o.recall().mean >= demanded[c.memory] && o.memory() <= float64(c.memory)
			p.Bar(fmt.Sprintf("%s: recall of the true top 100, %s in all, mean of ten seeds", c.statistic, kilobytes(c.memory)),
				figure.Percent(demanded[c.memory])+" or more", figure.Percent(o.recall().mean)+" in "+bytes(o.memory()), met)
		}
	}
	p.Table(table)
	describe(p, truths[0])
	return nil
}

func kilobytes(n int) string { return fmt.Sprintf("%d KB", n/1000) }

func bytes(n float64) string { return fmt.Sprintf("%.0f bytes", n) }

// describe states what the truth is like.
func describe(p *eval.Page, t *truth) {
	table := &figure.Table{Columns: []string{"truth of seed 1", "flows that have any", "sum", "rank 1", "10", "50", "100", "200"}}
	for _, s := range statistics {
		r, unit := t.of[s], 1.0
		label := map[string]string{"loss": "loss, bytes"}[s]
		if label == "" {
			label = s + ", packets"
		}
		if s == "latency" {
			label, unit = "latency, s", 1e9
		}
		sum := 0.0
		for _, v := range r.values {
			sum += v
		}
		cells := []string{label, fmt.Sprint(len(r.values)), fmt.Sprintf("%.0f", sum/unit)}
		for _, rank := range []int{1, 10, 50, 100, 200} {
			cells = append(cells, fmt.Sprintf("%.0f", r.at(rank)/unit))
		}
		table.Add(cells...)
	}
	p.Text("%d packets. What the true lists are made of:", t.packets)
	p.Table(table)
}

// at is the value of a rank from 1; 0 after the last.
func (r *ranking) at(rank int) float64 {
	if rank > len(r.values) {
		return 0
	}
	return r.values[rank-1]
}

// mostFall is by how much a scan may lower the recall.
const mostFall = 0.05

// shipped are the default variants in the paper's memory.
func shipped() (list []contestant) {
	for _, c := range both(base) {
		if !c.paper {
			list = append(list, c)
		}
	}
	return list
}

// withoutScan is what the bars have measured of these traces, or measures it.
func withoutScan(ctx context.Context, p *eval.Page, traces []traffic.LeanOptions, list []contestant) ([]outcome, error) {
	var outcomes []outcome
	for _, c := range list {
		if o, ok := quiet[c]; ok {
			outcomes = append(outcomes, o[:len(traces)])
		}
	}
	if len(outcomes) == len(list) {
		return outcomes, nil
	}
	outcomes, _, err := run(ctx, p, traces, list)
	return outcomes, err
}

func scan(ctx context.Context, p *eval.Page) error {
	warn(p)
	list, traces := shipped(), seeds(p, bar, eval.Pick(p, 5, 2))
	before, err := withoutScan(ctx, p, traces, list)
	if err != nil {
		return err
	}
	for i := range traces {
		traces[i].Scan = eval.Pick(p, 100_000, 7_000)
	}
	outcomes, _, err := run(ctx, p, traces, list)
	if err != nil {
		return err
	}
	p.Text("One source asks as many addresses for a connection, evenly spread over the minute, and nobody answers. The same %d seeds with and without it.", len(traces))
	table := &figure.Table{Columns: []string{"statistic", "form", "recall without", "recall with", "mean without", "with", "falls by, points"}}
	for n, c := range list {
		without, with := before[n].recall(), outcomes[n].recall()
		fall := without.mean - with.mean
		table.Add(c.statistic, c.form(), without.String(), with.String(), fmt.Sprintf("%.1f %%", 100*without.mean), fmt.Sprintf("%.1f %%", 100*with.mean),
			fmt.Sprintf("%.1f", 100*fall))
		p.Bar(fmt.Sprintf("%s: recall with a scan of 100,000 unanswered SYNs, 40 KB", c.statistic), "falls by 5 points or less",
			fmt.Sprintf("%.1f points", 100*fall), fall <= mostFall)
	}
	p.Table(table)
	return nil
}
