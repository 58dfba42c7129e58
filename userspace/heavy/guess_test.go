package heavy

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A note contains the value of an admission to 1/32, small ones exactly.
func TestNotes(t *testing.T) {
	w := &Ways{Noted: true}
	for _, value := range []uint64{1, 2, 3, 7, 8, 15, 16, 31, 100, 1001, 1 << 20, 3<<40 + 5} {
		e := 0
		for value>>(e+1) > 0 {
			e++
		}
		five := value << 4 >> e // as ways_note does
		stored, note := w.split((uint64(e)<<4|five&15)<<noteAt | 77)
		if off := math.Abs(note.Mean/float64(value) - 1); stored != 77 || off > 1./32 || value < 32 && off > 0 || note.most < float64(value) {
			t.Errorf("an admission with %d is noted as %+v, counter %d", value, note, stored)
		}
	}
	if stored, note := (&Ways{}).split(1<<60 + 5); stored != 1<<60+5 || note != (Guess{}) {
		t.Errorf("without notes a counter is %d, %+v", stored, note)
	}
}

// What a flow had when it was admitted lies in the guess's interval in 95 % of all cases, for one admission and for several.
func TestGuess(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, values := range [][]float64{{2}, {10}, {1000}, {50, 60}, {5, 500, 20, 300}} {
		const trials = 20000
		var g Guess
		for _, v := range values {
			g = g.plus(admitted(v, v))
		}
		low, high := g.Interval(100 * g.Mean) // of an estimate that is no doubtful one
		held, sum := 0, 0.0
		for range trials {
			truth := 0.0
			for _, v := range values {
				truth += math.Ceil(math.Log(1-random.Float64()) / math.Log1p(-1/v))
			}
			sum += truth
			if at := truth + 99*g.Mean; low <= at && at <= high {
				held++
			}
			if truth < g.Counted(g.Mean) {
				t.Fatalf("%v: %v are called counted, and there were %v", values, g.Counted(g.Mean), truth)
			}
		}
		if share := float64(held) / trials; share < .935 || share > .98 && g.Mean > 10 {
			t.Errorf("%v: [%v, %v] holds %.3f", values, low, high, share)
		}
		if off := math.Abs(sum/trials/g.Mean - 1); off > .03 {
			t.Errorf("%v: the mean is off by %.3f", values, off)
		}
	}
}

// The initial value that nextInitial finds leads to the desired number of second passes if the same traffic repeats.
func TestNextInitial(t *testing.T) {
	passes := func(packets, initial float64) float64 { return math.Sqrt(initial*initial+2*packets) - initial } // of an entry
	for _, packets := range []float64{10, 1000, 1e6} {
		for _, before := range []float64{1, 30, 100} {
			for _, wanted := range []float64{.1, 1, 10} {
				next := nextInitial(passes(packets, before), wanted, before, 1)
				if got := passes(packets, next); got > wanted*1.001 && next < mostInitial || next > 2 && passes(packets, next-2) < wanted {
					t.Errorf("%v packets an entry, initial %v: next %v, with %v second passes, wanted %v", packets, before, next, got, wanted)
				}
			}
		}
	}
}
