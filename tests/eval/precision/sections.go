package precision

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/precision"
)

// bars of the recall, by size.
var bars = []float64{.53, .74, .88, .95, .99}

func recall(ctx context.Context, p *eval.Page) error {
	list := []contender{reference(),
		own("9/8, initial 1", map[string]string{"initial": "1", "recirculation": "1"}),
		own("pow2, initial 1", map[string]string{"initial": "1", "recirculation": "1", "admission": "pow2"}),
		own("exact, initial 100", map[string]string{"admission": "exact"}),
		own("9/8, initial 100", nil),
		own("pow2, initial 100", map[string]string{"admission": "pow2"}),
		own("deterministic, initial 100", map[string]string{"admission": "deterministic"}),
		hashpipe(2), hashpipe(4), hashpipe(6), cocosketch()}
	results, err := measure(ctx, p, list, precision.Issue, eval.Pick(p, 5, 1), false)
	if err != nil {
		return err
	}
	for s, bar := range bars {
		found := results[0][s].recall
		p.Bar(fmt.Sprintf("recall of the top 128, exact, initial 1, %d entries", sizes[s]), fmt.Sprintf("%.2f", bar), fmt.Sprintf("%.3f", found), found >= bar)
	}
	share := 0.0
	for s := range sizes {
		share = max(share, results[4][s].share)
	}
	p.Bar("recirculated share, 9/8, initial 100", "1 %", fmt.Sprintf("%.2f %%", 100*share), share <= .01)
	far := 0.0
	for s := range sizes {
		far = max(far, math.Abs(results[1][s].recall-results[0][s].recall)-results[0][s].spread-results[1][s].spread)
	}
	p.Bar("9/8 against exact, initial 1", "within the spread of seeds", fmt.Sprintf("%.3f beyond", max(far, 0)), far <= 0)
	p.Table(table(list, results, recallCell))
	p.Text("Standard deviation over the seeds, and share of packets that passed twice:")
	p.Table(table(list, results, func(r result) string { return fmt.Sprintf("%.3f; %.2f %%", r.spread, 100*r.share) }))
	return draw(p, "recall", "recall of the 128 largest flows", "recall", false, list, results, func(r result) float64 { return r.recall })
}

// tail is a heavier tail than the issue's: more flows, and less difference between them.
func tail(seed uint64) precision.Sizes {
	return precision.Sizes{Flows: 150000, Packets: 400000, Offset: 5, Skew: .8, Seed: seed}
}

func heavyTail(ctx context.Context, p *eval.Page) error {
	p.Text("150,000 flows, sizes proportional to 1/(rank + 5)^0.8, 400,000 packets: the 128 largest have 13 %% of the packets, above 24 %%.")
	list := []contender{reference(), own("9/8, initial 100", nil), hashpipe(2), hashpipe(4), hashpipe(6), cocosketch()}
	results, err := measure(ctx, p, list, tail, eval.Pick(p, 3, 1), false)
	if err != nil {
		return err
	}
	p.Table(table(list, results, recallCell))
	return draw(p, "heavytail", "recall of the 128 largest flows, heavier tail", "recall", false, list, results, func(r result) float64 { return r.recall })
}

func arrival(ctx context.Context, p *eval.Page) error {
	p.Text("Every packet is run by itself, and its flow's estimate compared with the flow's true count so far (equation 3.1). A flow " +
		"without an entry is estimated as 0; HashPipe's entries of a flow are added up.")
	list := []contender{reference(), own("9/8, initial 100", nil), hashpipe(2), cocosketch()}
	results, err := measure(ctx, p, list, precision.Issue, eval.Pick(p, 2, 1), true)
	if err != nil {
		return err
	}
	for s, entries := range sizes {
		times := results[2][s].mse / results[0][s].mse
		p.Bar(fmt.Sprintf("error on arrival against HashPipe d = 2, exact, initial 1, %d entries", entries), "2 times lower",
			fmt.Sprintf("%.1f times", times), times >= 2)
	}
	p.Table(table(list, results, func(r result) string { return fmt.Sprintf("%.0f", r.mse) }))
	return draw(p, "arrival", "mean square error on arrival", "packets squared", true, list, results, func(r result) float64 { return r.mse })
}

// variants of one parameter, everything else at its default, with a table that has room for its initial value.
func variants(key string, values ...string) func(context.Context, *eval.Page) error {
	return func(ctx context.Context, p *eval.Page) error {
		var list []contender
		for _, v := range values {
			set := map[string]string{key: v}
			if key == "initial" && v == "0" || key == "ways" {
				set["recirculation"] = "1"
			}
			list = append(list, multiple(key+" = "+v, set))
		}
		results, err := measure(ctx, p, list, precision.Issue, eval.Pick(p, 3, 1), false)
		if err != nil {
			return err
		}
		p.Table(table(list, results, recallCell))
		p.Text("Share of packets that passed twice:")
		p.Table(table(list, results, func(r result) string { return fmt.Sprintf("%.2f %%", 100*r.share) }))
		return draw(p, key, "recall of the 128 largest flows", "recall", false, list, results, func(r result) float64 { return r.recall })
	}
}

// multiple is own with the entries rounded down to a multiple of the ways.
func multiple(name string, set map[string]string) contender {
	c := own(name, set)
	if set["ways"] == "3" {
		make := c.make
		c.make = func(entries int) (*precision.Contender, error) { return make(entries / 3 * 3) }
	}
	return c
}
