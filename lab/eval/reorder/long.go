package reorder

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// A quarter of the paper's prefixes and buckets, and a twentieth of its flows, with 15 and with its 150 packets each.
const (
	longBuckets, longPrefixes, longFlows = 4096, 4274, 27_000
	shortFlow, longFlow                  = 15, 150
)

// ofLength is the model with flows of so many packets on average, as many a second as before.
func ofLength(p *eval.Page, packets int, seed uint64) (*trace, error) {
	o := traffic.ReorderOptions{Packets: packets * longFlows, Flows: longFlows, Prefixes: longPrefixes, Span: time.Duration(packets) * 100 * time.Millisecond, Seed: seed}
	if p.Quick {
		o.Packets, o.Flows, o.Prefixes, o.Span = o.Packets/30, o.Flows/30, o.Prefixes/30, o.Span/30
	}
	m, err := traffic.NewReorder(o)
	if err != nil {
		return nil, err
	}
	return recorded(m)
}

// long is a bucket for every prefix, where flows are as long as the paper's.
func long(ctx context.Context, p *eval.Page) error {
	n := buckets(eval.Pick(p, longBuckets, longBuckets/30))
	list := []setting{{name: "sampling", definition: 1, set: map[string]string{"buckets": n}}, {name: "precision, d = 2", definition: 1, set: map[string]string{"buckets": n, "method": "precision"}}}
	shares := []float64{.1, .5, .9}
	for _, x := range shares {
		s := hybridOf(1, eval.Pick(p, longBuckets, longBuckets/30), x)
		s.name = fmt.Sprintf("hybrid, x = %.1f", x)
		list = append(list, s)
	}
	lengths, runs := []int{shortFlow, longFlow}, eval.Pick(p, 3, 1)
	scores := make([][][]score, len(lengths)) // by length, setting, seed
	for i := range scores {
		scores[i] = make([][]score, len(list))
		for k := range list {
			scores[i][k] = make([]score, runs)
		}
	}
	err := bytecode.Parallel(ctx, len(lengths)*runs, func(ctx context.Context, task int) error {
		i, seed := task%len(lengths), task/len(lengths)
		t, err := ofLength(p, lengths[i], uint64(seed)+1)
		if err != nil {
			return err
		}
		for k, s := range list {
			lines, err := t.replay(ctx, uint64(seed)+1, []setting{s})
			if err != nil {
				return err
			}
			scores[i][k][seed] = s.scores(t.truth, lines[0])[0]
		}
		p.Log("%d packets a flow, seed %d", lengths[i], seed+1)
		return nil
	})
	if err != nil {
		return err
	}
	p.Text("The paper's flows have %d packets on average (82,359,630 of 546,126), the model's above %d, so that a prefix of 128 packets has few that are large and a way that holds one of them watches little of it. "+
		"Here both: %s buckets, %d prefixes, %d flows, %d seeds, definition 1.", longFlow, shortFlow, n, longPrefixes, longFlows, runs)
	t := &figure.Table{Columns: []string{"packets a flow", "method", "accuracy", "false positives", "reports a packet", "second passes"}}
	for i, length := range lengths {
		for k, s := range list {
			t.Add(append([]string{strconv.Itoa(length), s.name}, summarize(scores[i][k]).cells()...)...)
		}
	}
	p.Table(t)
	sampled := summarize(scores[1][0])
	for k, x := range shares {
		h := summarize(scores[1][k+2])
		p.Bar(fmt.Sprintf("a bucket for every prefix, %d packets a flow: hybrid, x = %.1f", longFlow, x), "95 % as in the paper, within two deviations, and fewer reports than sampling",
			fmt.Sprintf("%s, %s of sampling's reports", h.accuracy, figure.Percent(h.sent.mean/sampled.sent.mean)),
			h.accuracy.mean+2*h.accuracy.deviation >= .95 && h.sent.mean < sampled.sent.mean)
	}
	return nil
}
