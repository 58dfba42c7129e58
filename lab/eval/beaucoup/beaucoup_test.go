package beaucoup

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// The law of a collector agrees with lemma 4.3.1, and with the error that the program reports, which is worked out elsewhere.
func TestLaw(t *testing.T) {
	for _, c := range []compile.Collector{{M: 32, N: 24, P: 1. / 32}, {M: 31, N: 5, P: 1. / 512}, {M: 64, N: 51, P: 1. / 1024}, {M: 1, N: 1, P: 1. / 8}} {
		l := newLaw(c, 1e-9)
		if math.Abs(l.mean/cc(c)-1) > 1e-6 {
			t.Errorf("%+v: mean of the law %g, CC(m, p, n) %g", c, l.mean, cc(c))
		}
		for _, share := range []float64{.8, 1, 1.2} {
			threshold := share * l.mean
			if got, want := l.err(threshold), c.Error(threshold); math.Abs(got-want) > 1e-4 {
				t.Errorf("%+v, T = %g: error %g, the program says %g", c, threshold, got, want)
			}
		}
		sum := 0.0
		for _, chance := range l.chance[:l.most(.01)+1] {
			sum += chance
		}
		if sum < .99 || sum-l.chance[l.most(.01)] > .99 {
			t.Errorf("%+v: %g of the draws are %d at most, want 0.99", c, sum, l.most(.01))
		}
	}
}

// distinct feeds n different attributes, each a number of times.
func distinct(c counter, n, times int, salt uint64) {
	for range times {
		for i := range n {
			c.add(scramble(uint64(i)*0x9e3779b97f4a7c15 ^ salt))
		}
	}
}

// The other algorithms are what their papers define: without sampling they count within what is known of them.
func TestCounters(t *testing.T) {
	const n, runs = 1000, 200
	for _, c := range []struct {
		name     string
		make     func(rng *rand.Rand) counter
		err      float64 // mean relative error, at most
		accesses float64 // a packet
	}{
		// 1.04 / sqrt(64) is the standard error of 64 registers, 0.8 of it the mean error; a third for chance.
		{"HyperLogLog", func(*rand.Rand) counter { return newHyperLogLog(64, 1) }, 1.04 / 8 * .8 * 1.33, 1},
		{"HyperLogLog, a quarter", func(*rand.Rand) counter { return newHyperLogLog(64, .25) }, math.Hypot(1.04/8, math.Sqrt(3./n)) * .8 * 1.33, .25},
		// Half of the items of the deepest layer that fits decide: 1/sqrt(256/2), and the layers above add to it.
		{"UnivMon", func(rng *rand.Rand) counter { return newUnivMon(1e9, rng, false) }, .15, 8},
		{"sampling, Chao", func(rng *rand.Rand) counter { return newSampling(2, rng, true) }, 1e-9, 2},
		{"sampling, GEE", func(rng *rand.Rand) counter { return newSampling(2, rng, false) }, 1e-9, 2},
	} {
		var off, words float64
		for run := range uint64(runs) {
			x := c.make(rand.New(rand.NewPCG(run, 1)))
			distinct(x, n, 3, seed(int(run)))
			off += math.Abs(x.estimate()/n-1) / runs
			words += x.accesses() / (3 * n) / runs
		}
		if off > c.err || math.Abs(words/c.accesses-1) > .1 {
			t.Errorf("%s: error %.4f, want at most %.4f; %.3f accesses a packet, want %.3f", c.name, off, c.err, words, c.accesses)
		}
	}
}

// Each layer of UnivMon makes its share of the accesses, or as many as its items make.
func TestUnivMonAccesses(t *testing.T) {
	for _, target := range []float64{1, .1, .01} {
		u := newUnivMon(target, rand.New(rand.NewPCG(1, 1)), false)
		distinct(u, 400_000, 1, 1)
		want := 0.0
		for i := range univLayers {
			want += min(target/univLayers, univRows*math.Ldexp(1, -i))
		}
		if got := u.accesses() / 400_000; math.Abs(got/want-1) > .1 {
			t.Errorf("%.4f accesses a packet, want %.4f", got, want)
		}
	}
}

func TestOwnFields(t *testing.T) {
	program, err := compileMany("a: count distinct dst by src > 1000 in 30s\nb: count distinct src by dst > 1000 in 30s\n"+
		"c: count distinct src+dst by dport > 1000 in 30s\nd: count distinct dport by src+dst > 1000 in 30s", 1./3, 1)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(i int) float64 { return budgetOf(&program.Queries[i]) }
	for i, want := range []float64{rate(1), rate(0), rate(3), 1 - (1-rate(0))*(1-rate(1))*(1-rate(2))} {
		if got := ownFields(program, &program.Queries[i]); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", program.Queries[i].Name, got, want)
		}
	}
}

// A few seeds of the first study, through the bytecode, land where theory predicts.
func TestCollectors(t *testing.T) {
	testutil.NeedRoot(t)
	batch := trials[0][:2]
	out, err := tryAll(t.Context(), batch, 2, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range batch {
		want, sure := out[i].law.err(trial.threshold), out[i].law.spread(trial.threshold)/math.Sqrt(out[i].errors.n)
		if got := out[i].errors.err(); math.Abs(got-want) > 5*sure {
			t.Errorf("T = %g: error %.4f, want %.4f within five standard errors of %.4f", trial.threshold, got, want, sure)
		}
	}
}
