package fridge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// drawn makes what two fridges count of n requests with one delay: a request enters fridge k with its share, and is found
// again with probability q, after some survived insertions that explain q.
func drawn(rng *rand.Rand, c *config, r *rates, n int, t float64) (sums []delay.Sums) {
	sums = make([]delay.Sums, len(c.parts))
	for range n {
		u := rng.Float64()
		for k := range c.parts {
			q := r.included(c.parts, k, t, 0)
			if u -= q; u < 0 {
				w := 1 / q
				sums[k].N++
				sums[k].Weight += w
				sums[k].Square += w * w
				break
			}
		}
	}
	return sums
}

// TestCombine: with few samples a bin, weights that are taken from the samples themselves (the paper's) are biased, those
// that are predicted are not and have the smallest variance. This is why inverse-variance is the default.
func TestCombine(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	c := configOf(t, map[string]string{"fridges": "1024@1/2:3/4,1024@1/4:1/4"})
	r := newRates(c.parts)
	r.add(1e9, []uint64{1024 * 2, 1024 / 3, 0, 0}) // two lives a second, and a third of one
	const at, n, trials = 0.6e9, 60, 40000
	mean, square := map[string]float64{}, map[string]float64{}
	for range trials {
		sums := drawn(rng, c, r, n, at)
		for _, way := range []string{combineInverse, combineFixed, combineSampled} {
			c.combine = way
			estimate := 0.0
			for k, weight := range c.combiner(r, c.parts, 0, func(int) float64 { return at })(0, sums) {
				estimate += weight * sums[k].Weight
			}
			mean[way] += estimate / n / trials
			square[way] += (estimate/n - 1) * (estimate/n - 1) / trials
		}
	}
	t.Logf("mean %v, mean square error %v", mean, square)
	for _, way := range []string{combineInverse, combineFixed} {
		if math.Abs(mean[way]-1) > 0.01 {
			t.Errorf("%s is biased: %.3f", way, mean[way])
		}
	}
	if math.Abs(mean[combineSampled]-1) < 0.03 {
		t.Errorf("%s is not biased after all (%.3f): think again", combineSampled, mean[combineSampled])
	}
	if square[combineInverse] > square[combineFixed] || square[combineInverse] > square[combineSampled] {
		t.Errorf("inverse variance is not the best: %v", square)
	}
}

// TestFit: the states of section 3.3, with advice that leads back to a fit.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		fridges  string
		inserted uint64 // a second
		state    string
	}{
		{"4096@1", 100, fitUnder}, {"4096@1", 4096, fitGood}, {"4096@1", 40960, fitOver},
		{"4096@1/8", 100, fitUnder}, {"2@1", 0, fitGood}, {"2048@1,2048@1/64", 40000, fitOver},
	} {
		e := newEstimator(configOf(t, map[string]string{"fridges": c.fridges}))
		e.rates.add(1e9, []uint64{c.inserted, c.inserted, 0, 0})
		s := delay.NewSpectrum(e.scale())
		bin := s.Scale.Bin(1e9)
		s.Mass[bin], s.Square[bin], s.Raw[bin] = 1000, 1000, 1000
		f := e.fit(s)
		if f.state != c.state {
			t.Errorf("%s with %d insertions a second and delays of 1 s: %s (%.3g lives), want %s", c.fridges, c.inserted, f.state, f.lives, c.state)
		}
		if (f.advice() != "") != (c.state != fitGood) {
			t.Errorf("%s: advice %q", c.fridges, f.advice())
		}
		if c.state == fitOver {
			p := f.part
			p.P = f.p
			if lives := f.lives * p.P / f.part.P; math.Abs(lives-1) > 0.01 {
				t.Errorf("%s: with the recommended p = %g there are %.2f lives", c.fridges, f.p, lives)
			}
		}
	}
	e := newEstimator(configOf(t, nil))
	if f := e.fit(delay.NewSpectrum(e.scale())); f.state != fitUnknown || f.advice() != "" {
		t.Errorf("without samples: %+v", f)
	}
}

// TestRates: a delay that is longer than a window is predicted from the windows that it spans.
func TestRates(t *testing.T) {
	parts := []layout.Part{{Slots: 1024, P: 1, Share: 1, Shards: 4}}
	r := newRates(parts)
	if r.survived(0, 1e9) != 0 || !math.IsInf(r.lifetime(0), 1) {
		t.Error("rates without a window")
	}
	r.add(1e9, []uint64{1000})
	r.add(1e9, []uint64{3000})
	for at, want := range map[float64]float64{1e8: 300.0 / 4, 1e9: 3000.0 / 4, 2e9: 4000.0 / 4, 10e9: 20000.0 / 4} {
		if got := r.survived(0, at); math.Abs(got-want) > 1e-6 {
			t.Errorf("a delay of %g s survives %g, want %g", at/1e9, got, want)
		}
	}
	for range 2 * mostWindows {
		r.add(1e9, []uint64{500})
	}
	if len(r.windows) != mostWindows || r.lifetime(0) != 1024.0/500*1e9 {
		t.Errorf("%d windows, lifetime %g", len(r.windows), r.lifetime(0))
	}
}

// TestGroupOrder: groups that break the agreement are first, slowest first among equals, then the others.
func TestGroupOrder(t *testing.T) {
	c := configOf(t, map[string]string{"group": "dport", "sla": "50ms@95%"})
	row := func(name, verdict string, low float64) groupRow {
		return groupRow{name: name, judged: delay.Judgement{Verdict: verdict, Low: low}, p95: math.NaN()}
	}
	table := c.groupTable([]groupRow{row("kept", delay.Kept, 0), row("bad", delay.Broken, 0.1), row("?", delay.Undecided, 0), row("worse", delay.Broken, 0.3)})
	var names []any
	for _, r := range table.Rows {
		names = append(names, r[0])
		if len(r) != len(table.Columns) {
			t.Errorf("%d cells in %d columns", len(r), len(table.Columns))
		}
	}
	if want := []any{"worse", "bad", "?", "kept"}; len(names) != 4 || names[0] != want[0] || names[1] != want[1] || names[2] != want[2] || names[3] != want[3] {
		t.Errorf("order %v, want %v", names, want)
	}
	c = configOf(t, map[string]string{"group": "dport"})
	table = c.groupTable([]groupRow{{name: "a", p95: math.NaN()}, {name: "b", p95: 5}, {name: "c", p95: 9}})
	if table.Rows[0][0] != "c" || table.Rows[2][0] != "a" {
		t.Errorf("slowest first: %v", table.Rows)
	}
}

// A gap is judged by the middle of its bin.
func TestGapsAreCentred(t *testing.T) {
	parts, err := layout.Parse("256@1")
	if err != nil {
		t.Fatal(err)
	}
	parts[0].Shards = 1
	r, p := newRates(parts), newPast(1)
	bin, asked := 0, 0
	r.repeat(make([]uint64, delay.RepeatBins.Len()), p, 0, 0, func(_ int, centre float64) float64 {
		low, high := delay.RepeatBins.Range(bin)
		if centre < float64(low) || centre > float64(high-1) {
			t.Fatalf("bin %d, %d to %d: centre %g", bin, low, high-1, centre)
		}
		bin, asked = bin+1, asked+1
		return centre
	})
	if asked != delay.RepeatBins.Len() {
		t.Errorf("%d bins were asked for", asked)
	}
}

// The samples of an octave show how many times faster requests arrived than the rate of the window, if there are ten of them and they survived something.
func TestFaster(t *testing.T) {
	e := newEstimator(configOf(t, map[string]string{"fridges": "1024@1/2"}))
	e.rates.add(1e9, []uint64{1024})
	const at = 1e9
	weight := e.predictedAt(at)
	if lives := math.Log(weight / 2); lives < .5 {
		t.Fatalf("a delay of 1 s survives %g lives", lives)
	}
	for _, c := range []struct{ samples, times, want float64 }{{10, 1, 1}, {10, 2, 2}, {100, 3, 3}, {9, 2, 1}, {10, .5, 1}} {
		s := delay.NewSpectrum(e.scale())
		bin := s.Scale.Bin(at)
		first := bin &^ (1<<s.Scale.Bins.Mantissa - 1)
		s.Raw[bin], s.Mass[bin] = 1, 2*math.Pow(weight/2, c.times)
		if bin == first {
			bin++
		} else {
			bin = first
		}
		s.Raw[bin], s.Mass[bin] = c.samples-1, (c.samples-1)*2*math.Pow(weight/2, c.times)
		if got := e.faster(s, func(int) float64 { return at }); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%g samples of weights for %g times the rate: %g times", c.samples, c.times, got)
		}
		if got := e.faster(s, func(int) float64 { return at / 20 }); got != 1 {
			t.Errorf("delays that survive nothing: %g times", got)
		}
	}
}

// add is a window of the past, as instances add it.
func (r *rates) add(ns int64, inserted []uint64) {
	r.windows = appended(r.windows, ns, inserted[:len(r.parts)])
}
