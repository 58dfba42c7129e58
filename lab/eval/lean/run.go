package lean

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// contestant is a statistic in one form and memory.
type contestant struct {
	statistic string
	paper     bool // the paper's own form
	memory    int  // bytes
}

// paperForms are what switches a statistic to the paper's own form.
var paperForms = map[string]map[string]string{
	"latency": {"latency": "signed"},
	"loss":    {"loss": "walk", "loss.id": "ipid"},
	"ooo":     {"ooo": "misra-gries"},
	"retrans": {"retrans": "distinct"},
}

// formNames are the names of the two forms.
var formNames = map[string][2]string{
	"latency": {"matched", "signed (Algorithm 1)"},
	"loss":    {"gaps", "walk (Algorithm 2)"},
	"ooo":     {"sketch", "Misra-Gries (Algorithm 3)"},
	"retrans": {"sequence", "distinct (Algorithm 4)"},
}

func (c contestant) form() string {
	if c.paper {
		return formNames[c.statistic][1]
	}
	return formNames[c.statistic][0]
}

func (c contestant) config() bytecode.Config {
	set := map[string]string{"stat": c.statistic, "memory": fmt.Sprint(c.memory), "top": fmt.Sprint(topFlows)}
	if c.paper {
		maps.Copy(set, paperForms[c.statistic])
	}
	return bytecode.Config{Algorithm: "lean", Set: set}
}

// base is the paper's memory: 5 x 2000 x 32 bits.
const base = 40_000

// both forms of all statistics, in some memories.
func both(memories ...int) (list []contestant) {
	for _, s := range statistics {
		for _, paper := range []bool{false, true} {
			for _, m := range memories {
				list = append(list, contestant{s, paper, m})
			}
		}
	}
	return list
}

// bar is the severity at which the bars are set.
var bar = severity{50 * time.Millisecond, 0.04, 0.04, 0.01}

// severity of what the victims suffer.
type severity struct {
	delay             time.Duration
	loss, late, again float64
}

// model of a minute; a quick run has a fourteenth of it.
func model(p *eval.Page, s severity, seed uint64) traffic.LeanOptions {
	o := traffic.LeanOptions{Delay: s.delay, Loss: s.loss, Late: s.late, Again: s.again, Seed: seed}
	if p.Quick {
		o.Packets, o.Flows = 500_000, 26_000
	}
	return o
}

// warn states what a quick run is not.
func warn(p *eval.Page) {
	if p.Quick {
		p.Text("A quick run, one fourteenth of the traffic: 500,000 packets of 26,000 connections. It shows forms, not figures.")
	}
}

// play replays a trace through contestants and judges them.
func play(ctx context.Context, o traffic.LeanOptions, t *truth, list []contestant) ([]score, error) {
	scores := make([]score, 0, len(list))
	for _, batch := range bytecode.Batches(len(list)) {
		part := list[batch[0]:batch[1]]
		m, err := traffic.NewLean(o)
		if err != nil {
			return nil, err
		}
		configs := make([]bytecode.Config, 0, len(part))
		for _, c := range part {
			configs = append(configs, c.config())
		}
		lines, err := bytecode.Replay(ctx, traffic.Frames(m), o.Seed, configs)
		if err != nil {
			return nil, err
		}
		for n, c := range part {
			s, err := t.judge(lines[n], c.statistic)
			if err != nil {
				return nil, err
			}
			scores = append(scores, s)
		}
	}
	return scores, nil
}

// run plays traces on all cores: an outcome for each contestant, with a score for each trace.
func run(ctx context.Context, p *eval.Page, traces []traffic.LeanOptions, list []contestant) ([]outcome, []*truth, error) {
	all, truths := make([][]score, len(traces)), make([]*truth, len(traces))
	var mu sync.Mutex
	done := 0
	err := bytecode.Parallel(ctx, len(traces), func(ctx context.Context, i int) error {
		t, err := observe(traces[i])
		if err != nil {
			return err
		}
		scores, err := play(ctx, traces[i], t, list)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all[i], truths[i] = scores, t
		done++
		p.Log("%d of %d traces", done, len(traces))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	outcomes := make([]outcome, len(list))
	for n := range list {
		for i := range traces {
			outcomes[n] = append(outcomes[n], all[i][n])
		}
	}
	return outcomes, truths, nil
}
