package main

import (
	"math"
	"math/rand/v2"
	"strings"
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
			k := knob{whom: whom, tau: time.Duration(n+1) * time.Millisecond}
			if whom == "culprits" {
				k.rule = compared()
			}
			t[k] = map[int]trial{}
			for pair := range pairs {
				goodput := 50 + 5*float64(n) + random.Float64()
				if whom == "culprits" {
					goodput += 3 // the sweeps need not meet in any point
				}
				t[k][pair] = trialOf(result{Goodput: 1e6 * goodput, Web: []flow{{Size: 1, Time: by * (goodput - 40)}}})
			}
		}
	}
	return t
}

// What is compared is the time at the same goodput.
func TestRatio(t *testing.T) {
	for _, factor := range []float64{0.5, 1, 1.3} {
		tr := made(20, factor)
		value, low, high := tr.ratio(tr.pairs(), waited)
		if math.Abs(value/factor-1) > 0.01 || low < 53 || high > 71 {
			t.Errorf("%g from %g to %g, want %g", value, low, high, factor)
		}
		if factor != 1 {
			continue // drawing again takes its time
		}
		if from, to := tr.interval(waited); from > value || to < value || to-from > 0.1 {
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
		tr[knob{whom: "everyone", tau: time.Duration(n)}] = map[int]trial{0: trialOf(result{Goodput: 1e6 * p.X, Web: []flow{{Size: 1, Time: p.Y}}})}
	}
	got := tr.curve("everyone", "", []int{0}, waited)
	if len(got) != 3 || got[1] != (figure.Point{X: 59, Y: 21}) {
		t.Errorf("%v", got)
	}
}

// A run that the machine spoiled is measured again, three times at most, and the best one counts.
func TestStalls(t *testing.T) {
	k, s := &kept{}, setting{Congestion: "reno", Whom: "everyone", Tau: 1}
	for n, stall := range []float64{90, 51, 50} {
		if k.has(s) || k.spoiled(s) != n {
			t.Errorf("%d: %v, %d are spoiled", n, k.has(s), k.spoiled(s))
		}
		k.results = append(k.results, entry{Setting: s, Result: result{Goodput: float64(n) * 1e6, Stall: stall}})
	}
	if !k.has(s) || k.spoiled(s) != 2 {
		t.Errorf("%v, %d are spoiled", k.has(s), k.spoiled(s))
	}
	if got := trialsOf(k.results, "reno")[knob{whom: "everyone", tau: 1}][0].goodput; got != 2 {
		t.Errorf("the one of %g Mb/s counts", got)
	}
}

// What was marked is counted by the size of the flow.
func TestMarkedBySize(t *testing.T) {
	web := []flow{{Size: 100, Time: 1, Segments: 1}, {Size: 14_480, Time: 2, Segments: 10, Marked: 5}, {Size: 14_481, Time: 3, Segments: 11}, {Size: 200_000, Time: 4, Segments: 100, Marked: 25}}
	byPair := map[int]trial{0: trialOf(result{Web: web}), 1: trialOf(result{Web: web})}
	for n, want := range []string{"4 0.50 0.455", "2 0.00 0.000", "2 1.00 0.250"} {
		if got := strings.Join(markedBySize(byPair, n)[:3], " "); got != want {
			t.Errorf("%s: %s, want %s", sizeName(n), got, want)
		}
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
