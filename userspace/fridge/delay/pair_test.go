package delay

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPair: from number, weights and exponents of separate samples, with repetitions, without, and with so few that they are recognizable.
func TestPair(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 31))
	plain := Factor{Slots: 256, Inclusion: 1.0 / 8}
	repeated := plain
	repeated.Repeats = NewRepeats([]Gap{{Others: 40, Found: 5000}}, 10_000, plain)
	for _, c := range []struct {
		name     string
		n        int
		x        func() float64
		off, far float64 // allowed of the weight, and of the squared weights
	}{
		{"one", 1, func() float64 { return 700 }, 1e-9, 1e-9},
		{"two", 2, func() float64 { return 700 + 90*float64(rng.IntN(2)) }, 1e-6, 1e-6},
		{"idle", 1000, func() float64 { return 0 }, 1e-9, 1e-9},
		{"alike", 1000, func() float64 { return 500 + 30*rng.NormFloat64() }, 0.001, 0.01},
		{"ramp", 5000, func() float64 { return 250 + 500*rng.Float64() }, 0.004, 0.04},
		{"burst", 5000, func() float64 { return 30 + 700*float64(rng.IntN(5)/4) }, 0.03, 0.2},
	} {
		for _, f := range []Factor{plain, repeated} {
			var sum, exponents, want, square float64
			for range c.n {
				x := c.x()
				sum += plain.Weight(x)
				exponents += math.Log(plain.Weight(x) * plain.Inclusion)
				want += f.Weight(x)
				square += f.Weight(x) * f.Weight(x)
			}
			s := f.Pair(sum, float64(c.n), exponents, 0)
			if off := s.Weight/want - 1; math.Abs(off) > c.off || f.Repeats == nil && math.Abs(off) > 1e-6 {
				t.Errorf("%s, %d repeats: weights are %+.3f %% off", c.name, len(repeats(f)), 100*off)
			}
			if off := s.Square/square - 1; math.Abs(off) > c.far {
				t.Errorf("%s, %d repeats: squared weights are %+.3f %% off", c.name, len(repeats(f)), 100*off)
			}
			if s.N != float64(c.n) || s.Apart != sum {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
	}
}

func repeats(f Factor) []float64 {
	if f.Repeats == nil {
		return nil
	}
	return f.Repeats.gaps
}

// TestPairRounded: sums are of rounded weights and exponents. What rounding may have done is no sign of samples far apart.
func TestPairRounded(t *testing.T) {
	f := Factor{Slots: 65536, Inclusion: 1}
	const n, unit = 1000, 1.0 / 256
	for _, x := range []float64{0, 10, 100, 130, 1000, 20000} {
		exponent := math.Round(math.Log(f.Weight(x))/unit) * unit
		s := f.Pair(n*f.Weight(x), n, n*exponent, unit/2)
		if want := n * f.Weight(x) * f.Weight(x); math.Abs(s.Square/want-1) > 0.02 || math.Abs(s.Weight/(n*f.Weight(x))-1) > 1e-6 {
			t.Errorf("x = %g: weights %g, squares %g, want %g and %g", x, s.Weight, s.Square, n*f.Weight(x), want)
		}
	}
}
