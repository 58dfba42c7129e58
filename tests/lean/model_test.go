package lean

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// small is the model of the bars, a hundredth of it: with a hundredth of the load the memory is not what limits.
func small(seed uint64) traffic.LeanOptions {
	return traffic.LeanOptions{Packets: 300_000, Flows: 15_000, Heavy: 100, Victims: 20, Delay: 50 * time.Millisecond,
		Loss: 0.04, Late: 0.04, Again: 0.02, Seed: seed}
}

// through replays a model through the bytecode, with the oracle beside it.
func through(t *testing.T, o traffic.LeanOptions, window time.Duration, set map[string]string) []report.Line {
	t.Helper()
	testutil.NeedRoot(t)
	m, err := traffic.NewLean(o)
	if err != nil {
		t.Fatal(err)
	}
	d := lean.Descriptor()
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	var lines []report.Line
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: o.Seed, Truth: true, Window: window,
		Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(m), nil); err != nil {
		t.Fatal(err)
	}
	return lines
}

func number(t *testing.T, b *report.Body, name string) float64 {
	t.Helper()
	for _, v := range b.Values {
		if f, ok := report.Number(v.Value); ok && v.Name == name {
			return f
		}
	}
	t.Fatalf("no %s in the report", name)
	return 0
}

// TestTopFlows: of the flows that suffer most the bar's share is named and no other is, 5-tuples and pairs, IPv4 and IPv6, in
// one window and in several. Ties at the end of the list count against it, so the bar is the issue's, not more.
func TestTopFlows(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		set    map[string]string
	}{
		"one window": {0, map[string]string{"top": "20"}},
		"windows":    {30 * time.Second, map[string]string{"top": "20", "stat": "latency,ooo"}},
		"pairs":      {0, map[string]string{"top": "20", "key": "pair", "stat": "latency,ooo"}},
		"bytes":      {0, map[string]string{"top": "20", "count": "bytes", "stat": "ooo,retrans"}},
		"four agree": {0, map[string]string{"top": "20", "agree": "4", "stat": "latency,loss"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range through(t, small(1), c.window, c.set) {
				if line.Window.Last && c.window > 0 {
					continue // the ACKs after the last window
				}
				for _, table := range line.Report.Tables {
					if recall := number(t, line.Error, table.Name+".recall"); recall < 0.82 {
						t.Errorf("%s: recall %.2f", table.Name, recall)
					}
				}
			}
		})
	}
}

// TestMeanDelay: the second sketch's counts give the mean of the heaviest flows within a tenth: some thousand delays sampled
// with p = 1, few of them evicted, and no large flow that is not named.
func TestMeanDelay(t *testing.T) {
	lines := through(t, small(2), 0, map[string]string{"stat": "latency", "mean": "true", "top": "5", "p": "1"})
	o := small(2)
	m, err := traffic.NewLean(o)
	if err != nil {
		t.Fatal(err)
	}
	var p = m.Flow(0)
	for m.Next(&p) {
	}
	means := map[string]float64{}
	for rank := range o.Flows {
		f, tally := m.Flow(rank), m.Tally(rank)
		means[fmt.Sprint(f.Src, " ", f.SrcPort, " ", f.Dst, " ", f.DstPort)] = float64(tally.Delay) / float64(tally.Acked)
	}
	table := lines[0].Report.Tables[0]
	for _, row := range table.Rows {
		got, _ := report.Number(row[len(row)-1])
		want := means[fmt.Sprint(row[0], " ", row[1], " ", row[2], " ", row[3])]
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("%v: mean %.1f ms, want %.1f ms", row[:4], got/1e6, want/1e6)
		}
	}
	if len(table.Rows) != 5 {
		t.Errorf("%d rows", len(table.Rows))
	}
}

// TestKeysFromBits: with fewer large flows than buckets and thousands of events each, most are read from their bits. A key that is
// named is a real one: the check refuses 65,535 of 65,536 others, and the bucket 127 of 128 of those.
func TestKeysFromBits(t *testing.T) {
	o := traffic.LeanOptions{Packets: 300_000, Flows: 20, Heavy: 10, Victims: 2, Delay: 50 * time.Millisecond, V6: -1, Skew: 0.5, Seed: 3}
	lines := through(t, o, 0, map[string]string{"stat": "latency", "keys": "bits", "memory": "160kB", "p": "1", "top": "20"})
	line := lines[0]
	if precision := number(t, line.Error, "latency.precision"); precision != 1 {
		t.Errorf("precision %.2f: a flow that there is not", precision)
	}
	// 20 flows in 128 buckets: a flow shares one with probability 0.14, and then the larger one is read.
	if recall := number(t, line.Error, "latency.recall"); recall < 0.6 {
		t.Errorf("recall %.2f", recall)
	}
}

// TestImpossibleParameters: each is refused by name.
func TestImpossibleParameters(t *testing.T) {
	d := lean.Descriptor()
	for _, set := range []map[string]string{
		{"stat": "jitter"}, {"p": "2"}, {"p": "often"}, {"candidates": "1000"}, {"ring": "5000"}, {"mean": "true"},
		{"mean": "true", "stat": "latency", "latency": "signed"}, {"keys": "bits"}, {"keys": "bits", "stat": "loss", "loss": "walk"},
	} {
		v, err := algo.NewValues(d.Name, d.Params, set)
		if err == nil {
			_, err = d.New(v, algo.Env{})
		}
		if err == nil {
			t.Errorf("%v is accepted", set)
		}
	}
}
