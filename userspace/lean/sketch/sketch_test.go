package sketch

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/lean/expect"
)

func emptySketch(columns int) *Sketch {
	var s Sketch
	for r := range s {
		s[r] = make([]float64, columns)
	}
	return &s
}

func randomPlaces(rng *rand.Rand, n int) []Place {
	places := make([]Place, n)
	for i := range places {
		places[i] = Place{rng.Uint64(), rng.Uint64()}
	}
	return places
}

// A flow alone is what it is, whatever its signs are; cells are two's complement of 32 bits.
func TestSketchOfOneFlow(t *testing.T) {
	for _, p := range randomPlaces(rand.New(rand.NewPCG(1, 1)), 100) {
		var words [Rows][]uint64
		for r := range words {
			words[r] = make([]uint64, 64)
			column, sign := p.Cell(r, 64)
			words[r][column] = uint64(uint32(int32(sign * 1000)))
		}
		for r := range words {
			words[r] = Extended(words[r])
		}
		s := New(words)
		if got := s.median(p); got != 1000 {
			t.Fatalf("%v: %g, want 1000", p, got)
		}
	}
}

// As many flows as a fifth of the cells, all known: what is left of each cell without the others is the flow itself, while the
// median alone errs where three of five cells are shared.
func TestDecodeIsExactWhereAllAreKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	s, places := emptySketch(512), randomPlaces(rng, 512)
	values := make([]float64, len(places))
	for i := range values {
		values[i] = math.Round(1e6 / math.Pow(float64(i+1), 1.1))
		s.add(places[i], values[i])
	}
	d := s.Decode(places)
	worse := 0
	for i, want := range values {
		if math.Abs(d.Values[i]-want) > 0.01*want+1 {
			t.Errorf("flow %d: %.0f, want %.0f", i, d.Values[i], want)
		}
		if math.Abs(d.Plain[i]-want) > 0.5*want {
			worse++
		}
	}
	if worse < 50 {
		t.Errorf("only %d medians are off by a half: the sketch is not crowded enough to show anything", worse)
	}
}

// The noise of a cell is the root of the squares of unknown flows over the columns, and an estimate's error that times the
// median's.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const unknown, columns, value = 100_000, 512, 3.0
	s := emptySketch(columns)
	for _, p := range randomPlaces(rng, unknown) {
		s.add(p, value)
	}
	want := value * math.Sqrt(unknown/columns)
	if got := s.noise(); math.Abs(got/want-1) > 0.08 { // 2,560 cells: the median's error is 2.3 %
		t.Errorf("noise %.1f, want %.1f", got, want)
	}
	var sum float64
	probes := randomPlaces(rng, 2000)
	for _, p := range probes {
		sum += math.Pow(s.median(p), 2)
	}
	if got := math.Sqrt(sum / float64(len(probes))); math.Abs(got/(expect.MedianError*want)-1) > 0.1 {
		t.Errorf("medians err by %.1f, want %.1f", got, expect.MedianError*want)
	}
}
