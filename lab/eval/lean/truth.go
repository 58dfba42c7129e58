package lean

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// statistics in the order of the paper, and what the report calls them.
var statistics = []string{"latency", "loss", "ooo", "retrans"}

// fiveTuple is the key of flows.
var fiveTuple = heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto}

// topFlows is the length of the lists.
const topFlows = 100

// valueOf is a statistic's value of a flow.
func valueOf(t exact.Tally, statistic string) float64 {
	switch statistic {
	case "latency":
		return float64(t.Latency)
	case "loss":
		return float64(t.Lost)
	case "ooo":
		return float64(t.OutOfOrder)
	}
	return float64(t.Again)
}

// truth is the exact count of a trace, by statistic.
type truth struct {
	packets int
	of      map[string]*ranking
}

// ranking is the truth of one statistic.
type ranking struct {
	top    map[string]bool // flows that are right in the list: with as much as the last of it
	want   int             // length of the list: topFlows unless fewer flows have anything
	last   float64         // value of the last one in the list
	values []float64       // of all flows that have anything, the largest first
}

// name of a flow, as its row in a report begins.
func name(cells []any) string { return fmt.Sprint(cells...) }

func nameOf(key heavy.Key) string { return name(fiveTuple.Cells(key)) }

// rank orders the flows. Flows that have as much as the last one of the list are all right in it.
func rank(tallies map[heavy.Key]exact.Tally, statistic string) *ranking {
	r := &ranking{top: map[string]bool{}}
	for _, t := range tallies {
		if v := valueOf(t, statistic); v > 0 {
			r.values = append(r.values, v)
		}
	}
	slices.Sort(r.values)
	slices.Reverse(r.values)
	if r.want = min(topFlows, len(r.values)); r.want == 0 {
		return r
	}
	r.last = r.values[r.want-1]
	for key, t := range tallies {
		if valueOf(t, statistic) >= r.last {
			r.top[nameOf(key)] = true
		}
	}
	return r
}

// packetsOf counts a model's packets exactly.
func packetsOf(m *traffic.Lean, all *exact.Truth) (n int) {
	for p := (packet.Packet{}); m.Next(&p); n++ {
		all.Packet(&p)
	}
	return n
}

// observe calculates the truth of a model.
func observe(o traffic.LeanOptions) (*truth, error) {
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, err
	}
	all := exact.NewTruth(exact.TruthOptions{Key: fiveTuple, ID: "tcp-bytes"})
	t := &truth{of: map[string]*ranking{}}
	t.packets = packetsOf(m, all)
	tallies, _ := all.Window()
	for _, s := range statistics {
		t.of[s] = rank(tallies, s)
	}
	return t, nil
}
