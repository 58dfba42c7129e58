package delay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// sample fills a spectrum with values of which each survives with probability q(value) and then has the weight 1/q.
func sample(rng *rand.Rand, s Scale, values []int64, q func(v float64) float64) *Spectrum {
	out := NewSpectrum(s)
	for bin := range out.Mass {
		out.Predicted = append(out.Predicted, 1/q(s.Centre(bin)))
	}
	for _, v := range values {
		p := q(float64(v))
		if rng.Float64() >= p {
			continue
		}
		bin := s.Bin(float64(v))
		out.Mass[bin] += 1 / p
		out.Square[bin] += 1 / (p * p)
		out.Raw[bin]++
	}
	return out
}

func logUniform(rng *rand.Rand, n int, low, high float64) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(low * math.Pow(high/low, rng.Float64()))
	}
	return values
}

// TestDistributionComplete: with everything sampled only the bins are between estimate and truth.
func TestDistributionComplete(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	values := logUniform(rng, 50000, 1e5, 1e9)
	s := sample(rng, NewScale(5, 64, false), values, func(float64) float64 { return 1 })
	got, want := s.Distribution(Label{Name: "delay_ns"}), Exact(Label{Name: "delay_ns"}, values)
	if got.Count != want.Count || got.CountErr != 0 {
		t.Errorf("count %g +- %g, want %g exactly", got.Count, got.CountErr, want.Count)
	}
	if off := got.Mean/want.Mean - 1; math.Abs(off) > 0.002 {
		t.Errorf("mean is %+.2f %% off", 100*off)
	}
	for i, q := range got.Quantiles {
		truth := want.Quantiles[i].Value
		if off := q.Value/truth - 1; math.Abs(off) > 0.01 {
			t.Errorf("%s is %+.2f %% off", q.Name, 100*off)
		}
		if q.Low > truth || q.High < truth {
			t.Errorf("%s: %g .. %g does not hold the truth %g", q.Name, q.Low, q.High, truth)
		}
	}
}

// TestCoverage: the intervals of count and percentiles contain the truth as often as they state, with weights that differ as
// those of a fridge do.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const trials = 600
	values := logUniform(rng, 20000, 1e6, 1e9)
	truth := Exact(Label{}, values)
	inside := map[string]int{}
	for range trials {
		s := sample(rng, NewScale(5, 64, false), values, func(v float64) float64 { return 0.1 * math.Exp(-v/4e8) })
		d := s.Distribution(Label{})
		if math.Abs(d.Count-truth.Count) <= Normal95*d.CountErr {
			inside["count"]++
		}
		for i, q := range d.Quantiles[:4] {
			if v := truth.Quantiles[i].Value; q.Low <= v && v <= q.High {
				inside[q.Name]++
			}
		}
	}
	for name, n := range inside {
		// The edges of the bins belong to the intervals of percentiles, so these may hold the truth more often.
		if share := float64(n) / trials; share < 0.92 || name == "count" && share > 0.975 {
			t.Errorf("the interval of %s held the truth in %.1f %% of the trials", name, 100*share)
		}
	}
	if len(inside) != 5 {
		t.Errorf("only %v were ever inside", inside)
	}
}

func TestTooFew(t *testing.T) {
	s := NewSpectrum(NewScale(5, 64, false))
	for _, q := range s.Distribution(Label{}).Quantiles {
		if q.Defined {
			t.Errorf("%s of nothing is defined", q.Name)
		}
	}
	bin := s.Scale.Bin(1e6)
	s.Mass[bin], s.Square[bin], s.Raw[bin] = 10, 10, 10
	for _, q := range s.Distribution(Label{}).Quantiles {
		if want := q.Q <= 0.95; q.Defined != want {
			t.Errorf("%s of ten samples: defined is %v", q.Name, q.Defined)
		}
	}
}

// TestFewSamples: one value in 32 survives, so that one to ten samples represent a hundred values. They may all be in one half.
func TestFewSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const trials = 2000
	values := logUniform(rng, 100, 1e6, 1e9)
	truth := Exact(Label{}, values).Quantiles[0].Value
	judged, inside := 0, 0
	for range trials {
		s := sample(rng, NewScale(5, 64, false), values, func(float64) float64 { return 1. / 32 })
		if q := s.Distribution(Label{}).Quantiles[0]; q.Defined {
			judged++
			if q.Low <= truth && truth <= q.High {
				inside++
			}
		}
	}
	share := float64(inside) / float64(judged)
	t.Logf("%d judged, %.3f hold", judged, share)
	if judged < 1500 || share < 0.94 {
		t.Errorf("p50 of a few samples: %.3f of %d intervals hold the truth", share, judged)
	}
}

// TestAbove: a share beyond a limit with its Wilson interval. Three slow ones of four show little, 300 of 400 much.
func TestAbove(t *testing.T) {
	for n, decided := range map[float64]bool{1: false, 100: true} {
		s := NewSpectrum(NewScale(5, 64, false))
		for value, count := range map[float64]float64{1e6: n, 1e8: 3 * n} {
			bin := s.Scale.Bin(value)
			s.Mass[bin], s.Square[bin], s.Raw[bin] = count, count, count
		}
		share, low, high := s.Above(1e7)
		if math.Abs(share-0.75) > 1e-9 || low >= share || high <= share {
			t.Errorf("%g of %g: %g (%g .. %g)", 3*n, 4*n, share, low, high)
		}
		if got := low > 0.5; got != decided {
			t.Errorf("%g of %g: at least %g in more than half: %v", 3*n, 4*n, low, got)
		}
	}
	if share, low, high := NewSpectrum(NewScale(5, 64, false)).Above(1); !math.IsNaN(share) || low != 0 || high != 1 {
		t.Errorf("nothing: %g (%g .. %g)", share, low, high)
	}
}

// TestExact against counting.
func TestExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	values := append(logUniform(rng, 5000, 1, 1e10), 0, 0, 7)
	d := Exact(Label{Name: "x"}, values)
	for _, q := range d.Quantiles {
		below := 0
		for _, v := range values {
			if float64(v) <= q.Value {
				below++
			}
		}
		if float64(below) < q.Q*float64(len(values)) {
			t.Errorf("%s = %g has only %d of %d values at or below it", q.Name, q.Value, below, len(values))
		}
		if at := d.At(q.Q); math.Abs(at/q.Value-1) > 0.01 {
			t.Errorf("the CDF reaches %s at %g, the percentile is %g", q.Name, at, q.Value)
		}
	}
	if d.Total() != float64(len(values)) {
		t.Errorf("the CDF ends at %g of %d", d.Total(), len(values))
	}
	if !slices.IsSortedFunc(d.Buckets, func(a, b report.Bucket) int { return int(a.Upper - b.Upper) }) {
		t.Error("the buckets are not in order")
	}
}

// TestExactGap: a CDF has no slope where there is nothing.
func TestExactGap(t *testing.T) {
	d := Exact(Label{}, []int64{1000, 1000, 1e6, 1e6, 1e6})
	if at := d.At(0.41); at < 0.99e6 {
		t.Errorf("At(0.41) = %g lies in the gap between 1000 and 1e6", at)
	}
}

// TestFew: of few values the percentile is the one that it is in the truth, also where q*n is an integer, and where
// weights are a little above 1 since insertions were survived and nothing was lost.
func TestFew(t *testing.T) {
	for n := 1; n <= 100; n++ {
		for _, weight := range []float64{1, 1.0004} {
			s := NewSpectrum(NewScale(5, 64, false))
			var values []int64
			for i := range n {
				v := int64(1e6 * math.Pow(1.06, float64(i)))
				values = append(values, v)
				bin, w := s.Scale.Bin(float64(v)), math.Pow(weight, float64(i%7))
				s.Mass[bin], s.Square[bin], s.Raw[bin] = s.Mass[bin]+w, s.Square[bin]+w*w, s.Raw[bin]+1
			}
			got, want := s.Distribution(Label{}), Exact(Label{}, values)
			for i, q := range want.Quantiles {
				have := got.Quantiles[i]
				if have.Defined != q.Defined {
					continue // at the border, by the weights
				}
				if q.Defined && (math.Abs(have.Value/q.Value-1) > 0.025 || have.Low > q.Value || have.High < q.Value) {
					t.Errorf("%d values, weight %g: %s is %g (%g .. %g), in truth %g", n, weight, q.Name, have.Value, have.Low, have.High, q.Value)
				}
			}
		}
	}
}
