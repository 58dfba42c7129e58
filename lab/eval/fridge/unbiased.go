package fridge

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// trial is a fridge whose sum of weights is compared with the number of answered requests. Its traffic has delays up to
// the lifetime of its records: rate 1 a microsecond, all requests answered.
type trial struct {
	entries int
	inverse int // 1/p
}

func (t trial) String() string {
	return fmt.Sprintf("%d@%s", t.entries, figure.Power(1/float64(t.inverse)))
}

// longest delay: M/p requests.
func (t trial) longest() time.Duration {
	return time.Duration(t.entries*t.inverse) * time.Microsecond
}

// kinds of correction that see the same packets.
var trialKinds = []struct {
	name string
	more []string
}{{"recorded, exact", nil}, {"recorded, table", []string{"correction", "table"}}}

func (t trial) configs() []bytecode.Config {
	var list []bytecode.Config
	for _, k := range trialKinds {
		list = append(list, fridges(t.String(), "tcp-handshake", k.more...))
	}
	return list
}

// trials of the bar.
func trials() []trial {
	var list []trial
	for _, entries := range []int{256, 4096} {
		for _, inverse := range []int{1, 4, 32} {
			list = append(list, trial{entries, inverse})
		}
	}
	return list
}

// ratios of estimated to true numbers: [trial][kind][seed].
type ratios [][][]float64

// tryAll runs every trial with n seeds, of traffic and hashes.
func tryAll(ctx context.Context, list []trial, requests, n int) (ratios, error) {
	all := make(ratios, len(list))
	for i := range all {
		for range trialKinds {
			all[i] = append(all[i], make([]float64, n))
		}
	}
	hashes := seeds(n, 7)
	var lock sync.Mutex
	err := bytecode.Parallel(ctx, len(list)*n, func(ctx context.Context, task int) error {
		i, n := task%len(list), task/len(list)
		got, err := list[i].try(ctx, requests, uint64(n)+1, hashes[n])
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		for k, r := range got {
			all[i][k][n] = r
		}
		return nil
	})
	return all, err
}

func (t trial) try(ctx context.Context, requests int, seed, hash uint64) ([]float64, error) {
	m, err := traffic.NewLogUniform(traffic.LogUniformOptions{Requests: requests, Answered: 1, Max: t.longest(), Seed: seed})
	if err != nil {
		return nil, err
	}
	lines, err := bytecode.Replay(ctx, traffic.Frames(m), hash, t.configs())
	if err != nil {
		return nil, err
	}
	var list []float64
	for _, l := range lines {
		d, err := bytecode.Distribution(l, "delay_ns")
		if err != nil {
			return nil, err
		}
		list = append(list, d.Count/float64(len(m.Truth().Delays)))
	}
	return list, nil
}

// mean and its standard error.
func mean(list []float64) (mean, se float64) {
	n := float64(len(list))
	for _, x := range list {
		mean += x / n
	}
	for _, x := range list {
		se += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(se / (n - 1) / n)
}

// student95 is the two-sided 95 % quantile of Student's t for the mean of n values, by the expansion around the normal one
// (Abramowitz and Stegun, 26.7.5): 2.045 for 30.
func student95(n int) float64 {
	const z = delay.Normal95
	v := float64(n - 1)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v)
}

// unbiased compares sums of weights with the truth.
func unbiased(ctx context.Context, p *eval.Page) error {
	const requests = 130_000
	n := eval.Pick(p, 30, 3)
	list := trials()
	all, err := tryAll(ctx, list, eval.Pick(p, requests, 20_000), n)
	if err != nil {
		return err
	}
	p.Text("Sum of weights over the number of answered requests: mean of %d seeds (traffic and hashes), with 95 %% confidence. "+
		"%d requests a seed, all answered, delays log-uniform up to M/p requests.", n, eval.Pick(p, requests, 20_000))
	p.Table(all.table(list, n))
	furthest, inside := all.judge(n)
	p.Bar("sum of weights over true matches, 30 seeds, p = 1, 1/4, 1/32, 256 and 4096 entries", "mean within 1 % and within its 95 % interval",
		fmt.Sprintf("at most %s off; %d of %d intervals hold 1", figure.Percent(furthest), inside, len(list)),
		furthest <= 0.01 && inside == len(list))
	p.Text(`x counts insertions (section 6.1), so the factor is 1/p (1 - 1/M)^-x; pairing that counter with the formula of section
3.2.1, which counts arrivals, would be 14 %% low at 256 entries and p = 1/4. Six honest 95 %% intervals all hold the truth in three
of four runs of this section with other seeds. The correction from a table is 0.2 %% high with p = 1, and measurably so: a rule gives one
weight to a range of x, the right one for x that are spread evenly over it, and log-uniform delays are denser at its lower end.`)
	return nil
}

func (r ratios) table(list []trial, n int) *figure.Table {
	t := &figure.Table{Columns: []string{"fridge"}}
	for _, k := range trialKinds {
		t.Columns = append(t.Columns, k.name)
	}
	t.Columns = append(t.Columns, "exact: standard errors from 1")
	for i, trial := range list {
		cells := []string{trial.String()}
		for k := range trialKinds {
			m, se := mean(r[i][k])
			cells = append(cells, fmt.Sprintf("%.4f +- %.4f", m, student95(n)*se))
		}
		m, se := mean(r[i][0])
		t.Add(append(cells, fmt.Sprintf("%+.1f", (m-1)/se))...)
	}
	return t
}

// judge the exact correction: how far the mean of a trial is off at most, and how many intervals hold the truth.
func (r ratios) judge(n int) (furthest float64, inside int) {
	for i := range r {
		m, se := mean(r[i][0])
		furthest = max(furthest, math.Abs(m-1))
		if math.Abs(m-1) <= student95(n)*se {
			inside++
		}
	}
	return furthest, inside
}
