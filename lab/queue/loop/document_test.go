package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// made are trials in which web flows take everyone(goodput), and factor times that with marks on culprits.
func made(pairs int, factor float64) trials {
	t := trials{}
	random := rand.New(rand.NewPCG(1, 1))
	for whom, by := range map[string]float64{"culprits": factor, "everyone": 1} {
		for n := range 5 {
			k := knob{whom, time.Duration(n+1) * time.Millisecond}
			t[k] = map[int]result{}
			for pair := range pairs {
				goodput := 50 + 5*float64(n) + random.Float64()
				if whom == "culprits" {
					goodput += 3 // the sweeps need not meet in any point
				}
				t[k][pair] = result{Goodput: 1e6 * goodput, Web: []flow{{Size: 1, Time: by * (goodput - 40)}}}
			}
		}
	}
	return t
}

// What is compared is the time at the same goodput.
func TestRatio(t *testing.T) {
	for _, factor := range []float64{0.5, 1, 1.3} {
		tr := made(20, factor)
		value, low, high := tr.ratio(tr.pairs())
		if math.Abs(value/factor-1) > 0.01 || low < 53 || high > 71 {
			t.Errorf("%g from %g to %g, want %g", value, low, high, factor)
		}
		if factor != 1 {
			continue // drawing again takes its time
		}
		if from, to := tr.interval(); from > value || to < value || to-from > 0.1 {
			t.Errorf("%g: from %g to %g", value, from, to)
		}
	}
}

func TestCurve(t *testing.T) {
	c := curve{{X: 50, Y: 10}, {X: 60, Y: 20}}
	for x, want := range map[float64]float64{50: 10, 55: 15, 60: 20} {
		if got := c.at(x); got != want {
			t.Errorf("at %g: %g, want %g", x, got, want)
		}
	}
	if !math.IsNaN(c.at(49)) || !math.IsNaN(c.at(61)) {
		t.Error("a value outside of the curve")
	}
	// A threshold with less goodput than a lower one is put together with it.
	tr := trials{}
	for n, p := range []figure.Point{{X: 50, Y: 10}, {X: 60, Y: 20}, {X: 58, Y: 22}, {X: 70, Y: 30}} {
		tr[knob{"everyone", time.Duration(n)}] = map[int]result{0: {Goodput: 1e6 * p.X, Web: []flow{{Size: 1, Time: p.Y}}}}
	}
	got := tr.curve("everyone", []int{0})
	if len(got) != 3 || got[1] != (figure.Point{X: 59, Y: 21}) {
		t.Errorf("%v", got)
	}
}

func TestWebSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	below := 0
	const draws = 20_000
	for range draws {
		size := webSize(r)
		if size < 1 || size > mostWeb {
			t.Fatalf("a flow of %d bytes", size)
		}
		if float64(size) < webMedian {
			below++
		}
	}
	if share := float64(below) / draws; share < 0.48 || share > 0.56 {
		t.Errorf("%.2f are below the median", share)
	}
}
