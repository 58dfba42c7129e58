package delay

import (
	"math"
	"math/rand/v2"
	"testing"
)

// encode is survival_cell of bpf/include/survival.h, for tests that have no program at hand.
func encode(words *[SurvivalBins]uint64, x uint32, slots int) {
	units := uint64(x) * survivalUnits / uint64(slots)
	bin := SurvivalBins - 1
	for bin > 0 && float64(units) < survivalEdge(bin) && units < survivalLast {
		bin--
	}
	residual := min(units-uint64(survivalEdge(bin)), 8*survivalUnits-1)
	words[bin] += 1<<residualBits + residual
}

func TestSurvivalEdges(t *testing.T) {
	want := []float64{0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7}
	for bin, w := range want {
		if low, _ := survivalEdges(bin); low != w*survivalUnits {
			t.Errorf("bin %d starts at %g M, want %g M", bin, low/survivalUnits, w)
		}
	}
}

// TestFactor: the right pairing of counter and formula. Insertions that are counted evict with probability 1/M each.
func TestFactor(t *testing.T) {
	f := Factor{Slots: 256, Inclusion: 0.25}
	for x, want := range map[float64]float64{0: 4, 1: 4 * 256 / 255.0, 256: 4 * math.Pow(255/256.0, -256)} {
		if got := f.Weight(x); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("weight after %g insertions is %g, want %g", x, got, want)
		}
	}
}

// TestRow: the correction of whole cells against that of each sample, for the ways in which the insertions that a delay
// sees may be scattered.
func TestRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	scatter := map[string]func(slots float64) float64{
		"idle":            func(float64) float64 { return 0 },
		"steady, 0.4 M":   func(m float64) float64 { return 0.4 * m * (0.99 + 0.02*rng.Float64()) },
		"steady, 1.6 M":   func(m float64) float64 { return 1.6 * m * (0.99 + 0.02*rng.Float64()) },
		"steady, 3.1 M":   func(m float64) float64 { return 3.1 * m * (0.99 + 0.02*rng.Float64()) },
		"rate +-20 %":     func(m float64) float64 { return 1.1 * m * (0.8 + 0.4*rng.Float64()) },
		"rate x2":         func(m float64) float64 { return 0.7 * m * (1 + rng.Float64()) },
		"on and off":      func(m float64) float64 { return m * (0.1 + 1.5*float64(rng.IntN(2))) },
		"even up to 2 M":  func(m float64) float64 { return 2 * m * rng.Float64() },
		"exponential":     func(m float64) float64 { return 0.3 * m * rng.ExpFloat64() },
		"one quarter bin": func(m float64) float64 { return m * (0.5 + 0.25*rng.Float64()) },
	}
	for name, draw := range scatter {
		for _, slots := range []int{256, 1024, 65536} {
			rng = rand.New(rand.NewPCG(1, uint64(slots))) // the order of a map must not matter
			f := Factor{Slots: slots, Inclusion: 0.25}
			var words [SurvivalBins]uint64
			n, weight, square := 40000, 0.0, 0.0
			for range n {
				x := uint32(math.Round(draw(float64(slots))))
				w := f.Weight(float64(x))
				weight += w
				square += w * w
				encode(&words, x, slots)
			}
			s := f.Row(&words)
			if s.N != float64(n) {
				t.Errorf("%s, %d slots: %g samples, want %d", name, slots, s.N, n)
			}
			if off := s.Weight/weight - 1; math.Abs(off) > 0.003 {
				t.Errorf("%s, %d slots: sum of weights is %+.3f %% off", name, slots, 100*off)
			}
			if off := s.Square/square - 1; math.Abs(off) > 0.02 {
				t.Errorf("%s, %d slots: sum of squares is %+.2f %% off", name, slots, 100*off)
			}
		}
	}
}

// TestRowFar: beyond 2 M the bins are wider, and samples rarer: of what survives 4 M one in 55 is found, of 7 M one in
// 1100, so that their own scatter hides what is lost here. These are rates that double or nearly so; steady ones are in
// TestRow.
func TestRowFar(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct{ low, high, bound float64 }{{2, 4, 0.005}, {3, 6, 0.015}, {5, 9, 0.06}, {7, 10, 0.25}} {
		f := Factor{Slots: 256, Inclusion: 1}
		var words [SurvivalBins]uint64
		weight := 0.0
		for range 100000 {
			// the more samples survive, the fewer there are
			y := c.low - math.Log(1-rng.Float64()*(1-math.Exp(c.low-c.high)))
			x := uint32(256 * y)
			weight += f.Weight(float64(x))
			encode(&words, x, 256)
		}
		if off := f.Row(&words).Weight/weight - 1; math.Abs(off) > c.bound {
			t.Errorf("%g M to %g M: sum of weights is %+.2f %% off", c.low, c.high, 100*off)
		}
	}
}

// TestRowSingle: a sample alone in its cell has its own factor, exactly as far as x was stored.
func TestRowSingle(t *testing.T) {
	f := Factor{Slots: 256, Inclusion: 1}
	for _, x := range []uint32{0, 1, 63, 64, 255, 300, 700, 1500, 1792, 3000} {
		var words [SurvivalBins]uint64
		encode(&words, x, 256)
		if got, want := f.Row(&words).Weight, f.Weight(float64(x)); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("x = %d: weight %g, want %g", x, got, want)
		}
	}
}

func TestRowEmpty(t *testing.T) {
	if s := (Factor{Slots: 2, Inclusion: 1}).Row(new([SurvivalBins]uint64)); s != (Sums{}) {
		t.Errorf("an empty row has %+v", s)
	}
}

// TestRowUnit: above 1024 slots x is stored in units, rounded down, so its mean is half a unit more than the stored one.
// Left out, that half makes the weights 0.05 % too small, with any number of slots.
func TestRowUnit(t *testing.T) {
	f := Factor{Slots: 65536, Inclusion: 1}
	var words [SurvivalBins]uint64
	weight := 0.0
	for x := uint32(0); x < 64; x++ {
		weight += f.Weight(float64(x))
		encode(&words, x, 65536)
	}
	if off := f.Row(&words).Weight/weight - 1; math.Abs(off) > 0.0001 {
		t.Errorf("sum of weights is %+.3f %% off", 100*off)
	}
}

// A part lies between the edges of its bin; the last one, which has no upper edge, reaches beyond its mean.
func TestParts(t *testing.T) {
	f := Factor{Slots: 1024}
	last := 0
	for bin := range 10_000 {
		low, high := survivalEdges(bin)
		if math.IsInf(high, 1) {
			last = bin
			break
		}
		if p := f.part(bin, 3, (low+high)/2); p.n != 3 || p.low > p.mean || p.mean > p.high || p.high <= p.low {
			t.Fatalf("bin %d: %+v", bin, p)
		}
	}
	low, _ := survivalEdges(last)
	for _, beyond := range []float64{1, 1.5, 4} {
		if p := f.part(last, 3, low*beyond); p.high < p.low+1 || p.high < p.mean || p.low > p.mean {
			t.Errorf("the last bin, at %g times its edge: %+v", beyond, p)
		}
	}
}
