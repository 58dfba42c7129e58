package precision

import (
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// crowded has 50 times as many sources as the tables of these tests have entries.
func crowded(seed uint64) *Stream {
	return Sizes{Flows: 3000, Packets: 12000, Offset: 5, Skew: 0.9, Drawn: true, Scattered: true, Seed: seed}.New()
}

// TestWholeIsUnbiased: with few entries the sums of whole keys are right on average, of every large prefix and of all together. PRECISION's admission
// would lose what it replaces: most of these packets.
func TestWholeIsUnbiased(t *testing.T) {
	testutil.NeedRoot(t)
	const seeds = 16
	stream := crowded(1)
	sums, squares := map[heavy.Prefix]float64{}, map[heavy.Prefix]float64{}
	var all heavy.Prefix // of the zero value: the sum of all
	exact := stream.Networks()
	for seed := range uint64(seeds) {
		b, err := NewBench(seed+1, 0)
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.Hierarchy(map[string]string{"method": "whole", "entries": "64", "family": "4", "exact8": "off"}, stream)
		if b.Close(); err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for p, n := range exact {
			if p.Bits() == 8 {
				total += found[p]
			}
			if off := found[p] - n; n >= 60 && p.Bits() > 0 {
				sums[p], squares[p] = sums[p]+off, squares[p]+off*off
			}
		}
		off := total - float64(len(stream.Order))
		sums[all], squares[all] = sums[all]+off, squares[all]+off*off
	}
	for p, sum := range sums {
		if squares[p] == 0 || math.Abs(sum) > 4*math.Sqrt(squares[p]) {
			t.Errorf("%v: %.0f off on average, deviation %.0f", p, sum/seeds, math.Sqrt(squares[p]/seeds))
		}
	}
	if off := sums[all] / seeds / float64(len(stream.Order)); math.Abs(off) > .03 || len(sums) < 8 {
		t.Errorf("all packets: %.3f off, %d prefixes", off, len(sums))
	}
}

// TestWholeIntervals: also where a prefix is listed because chance has raised it, and for what is left of one without its heavy parts.
func TestWholeIntervals(t *testing.T) {
	testutil.NeedRoot(t)
	intervals, held := 0, 0
	for seed := range uint64(6) {
		line, err := replayWithTruth(bytecode.Config{Algorithm: "hhh", Set: map[string]string{"level": "bit", "family": "4", "entries": "128", "top": "200"}}, traffic.Frames(crowded(seed).Model()))
		if err != nil {
			t.Fatal(err)
		}
		truth := map[any][]any{}
		for _, row := range line.Truth.Tables[0].Rows {
			truth[row[0]] = row
		}
		for _, row := range line.Report.Tables[0].Rows {
			for column, low := range map[int]int{1: 5, 2: 7} {
				if from, to := row[low].(float64), row[low+1].(float64); from < to {
					intervals++
					held += yes(from <= truth[row[0]][column].(float64) && truth[row[0]][column].(float64) <= to)
				}
			}
		}
	}
	if share := float64(held) / float64(intervals); share < .93 || intervals < 200 {
		t.Errorf("%.3f of %d intervals hold the truth", share, intervals)
	}
}
