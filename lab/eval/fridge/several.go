package fridge

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// proposal is one of a plan's options.
type proposal struct {
	memory    int64
	layout    string
	predicted [3]float64 // relative errors with 95 % confidence, at the 50th, 95th and 99th percentile
}

// proposals of `xdpmon plan fridge` with one to four fridges, in plain memory sizes.
func proposals(requests int, longest time.Duration, memories []int64) (list []proposal, err error) {
	d, err := algo.Lookup("fridge")
	if err != nil {
		return nil, err
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"legs": "false", "correction": "table", "resolution": "16"})
	if err != nil {
		return nil, err
	}
	for _, memory := range memories {
		b, err := d.Plan(v, algo.PlanArgs{RatePerSecond: 1e6, MaxDelayNS: int64(longest), MemoryBytes: memory,
			Extra: map[string]string{"window": time.Duration(requests * 1000).String(), "cpus": "1"}})
		if err != nil {
			return nil, err
		}
		for _, row := range b.Tables[0].Rows {
			one := proposal{memory: memory, layout: row[0].(string)}
			for i := range one.predicted {
				one.predicted[i], _ = report.Number(row[len(row)-3+i])
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// several compares what a plan proposes with one to four fridges.
func several(ctx context.Context, p *eval.Page) error {
	const longest = 512 * time.Millisecond
	requests := eval.Pick(p, 1_250_000, 100_000)
	list, err := proposals(requests, longest, eval.Pick(p, []int64{128 << 10, 256 << 10, 1 << 20}, []int64{128 << 10}))
	if err != nil {
		return err
	}
	var configs []bytecode.Config
	for _, one := range list {
		configs = append(configs, fridges(one.layout, "tcp-handshake", "resolution", "16", "correction", "table"))
	}
	m, err := measure(ctx, logUniform(requests, longest), seeds(eval.Pick(p, 20, 2), 13), configs)
	if err != nil {
		return err
	}
	p.Text("What `xdpmon plan fridge --rate 1M/s --max-delay %s` proposes with one to four fridges, on the log-uniform trace, %d hash seeds. Predicted: the standard error of one run that the plan states, in octaves like the errors.",
		longest, len(m.outcomes[0].runs))
	t := &figure.Table{Columns: []string{"memory, fridges", "p50", "predicted", "p95", "predicted", "p99", "predicted", "geometric mean, over one fridge"}}
	ratios, n := 0.0, 0
	for i, one := range list {
		cells := []string{fmt.Sprintf("%d KiB, %s", one.memory>>10, one.layout)}
		e := m.outcomes[i].single(m.truth)
		for k, kind := range []int{at50, at95, at99} {
			predicted := math.Log2(1+one.predicted[k]) / 1.96
			cells = append(cells, figure.Percent(e[kind]), figure.Percent(predicted))
			ratios, n = ratios+math.Log(e[kind]/predicted), n+1
		}
		first := i
		for first > 0 && list[first-1].memory == one.memory {
			first--
		}
		t.Add(append(cells, fmt.Sprintf("%.2f", m.score(i)/m.score(first)))...)
	}
	p.Table(t)
	p.Text("Errors over those predicted, geometric mean of all: %.2f.", math.Exp(ratios/float64(n)))
	return nil
}
