package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// pipeSizes are HashPipe's: enough for what PRECISION finds in sizes.
var pipeSizes = []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}

// memory finds how many entries HashPipe with d = 2 needs for the recall that PRECISION has with some.
func memory(ctx context.Context, p *eval.Page) error {
	p.Text("Entries that HashPipe with d = 2 needs for the recall of the top 128 that PRECISION (exact, initial value 1) has, over PRECISION's: ten " +
		"seeds, straight lines between the sizes (powers of two, 256 to 65,536) of HashPipe. An entry is a key and a counter in both.")
	t := &figure.Table{Columns: []string{"PRECISION's entries"}}
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	fig := &figure.Figure{}
	for _, m := range []model{issueModel, heavyModel, massModel} {
		seeds := eval.Pick(p, 10, 1)
		ours, pipes := setup{model: m, list: []contender{demanded()}, sizes: sizes, seeds: seeds}, setup{model: m, list: []contender{hashpipe(2)}, sizes: pipeSizes, seeds: seeds}
		us, err := ours.measure(ctx, p)
		if err != nil {
			return err
		}
		them, err := pipes.measure(ctx, p)
		if err != nil {
			return err
		}
		savings(p, t, m, us[0], them[0])
		a, b := ours.panel(m.name+": recall of the 128 largest", "recall", figure.BottomRight, us, meanRecall), pipes.panel("", "", 0, them, meanRecall)
		a.Series = append(a.Series, b.Series...)
		fig.Panels = append(fig.Panels, a)
	}
	p.Table(t)
	for _, m := range []model{issueModel, heavyModel, massModel} {
		p.Text("*%s*: %s.", m.name, m.what)
	}
	p.Text("With few entries both lack the same thing: of 400,000 packets, each of 256 entries meets 1,600, six times what the 128th flow has, so that no admission tells it from " +
		"the rest. HashPipe finds more here than the issue says of it (its figures lead to 1.4, 2.0 and 3.0 times for 256, 512 and 1,024 entries).")
	return p.Figure(fig, "memory", "recall of PRECISION and HashPipe, by entries")
}

// savings writes one model's row of factors, and its bars.
func savings(p *eval.Page, t *figure.Table, m model, us, them []result) {
	row, best := []string{m.name}, 0.0
	for i, r := range us {
		needs, more := needed(them, mean(r.recall))
		factor := needs / float64(sizes[i])
		best = max(best, factor)
		cell := fmt.Sprintf("%.1f (recall %.3f)", factor, mean(r.recall))
		if more {
			cell = "more than " + cell
		}
		row = append(row, cell)
		if m.name == issueModel.name {
			p.Bar(fmt.Sprintf("memory of HashPipe d = 2 for the recall of %d entries, %s", sizes[i], m.name), "2 times", cell, factor >= 2)
		}
	}
	t.Add(row...)
	if m.name == heavyModel.name {
		p.Bar("memory of HashPipe d = 2 for equal recall, "+m.name+", at best", "up to 8 times", fmt.Sprintf("%.1f times", best), best >= 8)
	}
}

// needed entries for a recall, between the sizes in the logarithm; true when even the largest size has less.
func needed(list []result, recall float64) (float64, bool) {
	for i, r := range list {
		if mean(r.recall) < recall {
			continue
		}
		if i == 0 {
			return float64(pipeSizes[0]), false
		}
		low, high := mean(list[i-1].recall), mean(r.recall)
		part := (recall - low) / (high - low)
		return float64(pipeSizes[i-1]) * math.Pow(float64(pipeSizes[i])/float64(pipeSizes[i-1]), part), false
	}
	return float64(pipeSizes[len(pipeSizes)-1]), true
}
