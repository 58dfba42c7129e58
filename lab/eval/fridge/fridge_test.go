package fridge

import (
	"math"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// The bounds below leave room for chance: twice or three times what `make eval` finds with this little traffic.

func TestDistribution(t *testing.T) {
	testutil.NeedRoot(t)
	list := contestants(65536)
	m, err := measure(t.Context(), isp(1_000_000), seeds(2, 2), configsOf(list))
	if err != nil {
		t.Fatal(err)
	}
	fridge, overwrite, expiry := m.outcomes[0], m.outcomes[1], m.outcomes[2]
	if most := m.truth.errors(fridge.combined())[atMost]; most > 0.15 {
		t.Errorf("fridge: maximum error %.1f %%", 100*most)
	}
	if most := m.truth.errors(overwrite.combined())[atMost]; most < 1 {
		t.Errorf("overwriting array: maximum error %.1f %%, it should show its bias", 100*most)
	}
	if most := m.truth.errors(expiry.combined())[atMost]; most > 0.3 {
		t.Errorf("array with expiry: maximum error %.1f %%", 100*most)
	}
	if ratio, _ := fridge.ratio(m.truth); math.Abs(ratio-1) > 0.03 {
		t.Errorf("fridge: sum of weights is %.4f of the truth", ratio)
	}
	if fridge.samples() != overwrite.samples() {
		t.Errorf("%.1f samples in the fridge with p = 1, %.1f in the overwriting array of the same size", fridge.samples(), overwrite.samples())
	}
}

func TestUnbiased(t *testing.T) {
	testutil.NeedRoot(t)
	const n = 6
	list := []trial{{256, 1}, {256, 4}, {4096, 1}}
	all, err := tryAll(t.Context(), list, 30_000, n)
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range list {
		for k, kind := range trialKinds {
			// Six standard errors, and half a per cent for what a table may be off.
			if m, se := mean(all[i][k]); math.Abs(m-1) > 6*se+0.005 || math.Abs(m-1) > 0.03 {
				t.Errorf("%s, %s: sum of weights is %.4f +- %.4f of the truth", trial, kind.name, m, se)
			}
		}
	}
}

func TestTable(t *testing.T) {
	testutil.NeedRoot(t)
	layouts := []string{"4096@1/32", "65536@1"}
	m, err := measure(t.Context(), isp(300_000), seeds(1, 6), tableConfigs(layouts))
	if err != nil {
		t.Fatal(err)
	}
	for i, layout := range layouts {
		if e, count := tableGap(m.outcomes[2*i], m.outcomes[2*i+1]); max(e[atMost], count) > 0.01 || e[atMost] == 0 {
			t.Errorf("%s: table differs from exact by %.2f %%, the sum of weights by %.2f %%", layout, 100*e[atMost], 100*count)
		}
	}
}

func TestCascade(t *testing.T) {
	testutil.NeedRoot(t)
	m, err := measure(t.Context(), slowISP(300_000), seeds(4, 8), staged(2048))
	if err != nil {
		t.Fatal(err)
	}
	one, four := m.truth.errors(m.outcomes[0].combined()), m.truth.errors(m.outcomes[2].combined())
	if four[at95] < 1.5*one[at95] || four[at95] < 0.2 {
		t.Errorf("p95 is off by %.0f %% with four stages and %.0f %% with one: section 4.1 says otherwise", 100*four[at95], 100*one[at95])
	}
}

func TestCounter(t *testing.T) {
	testutil.NeedRoot(t)
	tr := func() (model, error) { return newBursts(200_000, 11), nil }
	m, err := measure(t.Context(), tr, seeds(2, 10), counterConfigs([]string{"16384@1"}))
	if err != nil {
		t.Fatal(err)
	}
	recorded, inferred := m.truth.errors(m.outcomes[0].combined())[atMost], m.truth.errors(m.outcomes[1].combined())[atMost]
	if inferred < 2*recorded {
		t.Errorf("with bursts recorded insertions err by %.1f %%, inferred by %.1f %%", 100*recorded, 100*inferred)
	}
}

// The truth of the bursts is what an exact matching of their packets finds.
func TestBursts(t *testing.T) {
	b := newBursts(50_000, 3)
	exact := delay.NewTracker(delay.Rules{Kind: delay.TCPHandshake, Longest: math.MaxInt64})
	var delays []int64
	var p packet.Packet
	for last := int64(0); b.Next(&p); last = p.Time {
		if p.Time < last {
			t.Fatalf("a packet at %d follows one at %d", p.Time, last)
		}
		if e := exact.Packet(&p); e.Outcome == delay.Answered {
			delays = append(delays, e.Delay)
		}
	}
	if !slices.Equal(delays, b.Truth().Delays) {
		t.Errorf("%d delays in the packets, %d in the truth, or others", len(delays), len(b.Truth().Delays))
	}
	if n := len(delays); n < 19_000 || n > 21_000 {
		t.Errorf("%d of 50,000 requests were answered, not 40 %%", n)
	}
	if seconds := float64(p.Time-traffic.Start) / 1e9; seconds < 0.095 || seconds > 0.5 {
		t.Errorf("50,000 requests and their answers took %.3f s", seconds)
	}
}

func TestErrors(t *testing.T) {
	exact := truth{1000, 2000, 3000, 4000}
	same := exact.errors(delay.Exact(delay.Label{}, slices.Clone(exact)))
	if same[atMost] > 0.02 {
		t.Errorf("the truth differs from itself by %.2f %%", 100*same[atMost])
	}
	var none outcome
	if e := exact.errors(none.combined()); !math.IsInf(e[at50], 1) || !math.IsInf(e[atMost], 1) {
		t.Errorf("no samples: errors %v, want infinite ones", e)
	}
}

func TestPair(t *testing.T) {
	for _, test := range []struct {
		entries, short, long int
		want                 string
	}{
		{4096, 15, 18, "2048@0.062992126:0.992187500,2048@1:0.007812500"},
		{65536, 13, 17, "32768@1.000000000:0.750000000,32768@1:0.250000000"},
	} {
		if got := pair(test.entries, test.short, test.long); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

func TestSaving(t *testing.T) {
	s := &memoryStudy{families: families(), sizes: []int{256, 512, 1024}}
	if got := s.interpolate([]float64{0.4, 0.2, 0.1}, 0.2); got != (factor{times: 512}) {
		t.Errorf("error 0.2 is reached with %v entries", got)
	}
	if got := s.interpolate([]float64{0.4, 0.1, 0.05}, 0.2); math.Abs(got.times-256*math.Sqrt2) > 1e-6 || got.bound {
		t.Errorf("error 0.2 is reached with %v entries", got)
	}
	if got := s.interpolate([]float64{0.1, 0.1, 0.1}, 0.2); got != (factor{times: 256, below: true}) {
		t.Errorf("error 0.2 is reached with %v entries, all have it", got)
	}
	if got := s.interpolate([]float64{0.4, 0.3, 0.3}, 0.2); got != (factor{times: 1024, bound: true}) {
		t.Errorf("error 0.2 is reached with %v entries, it is not", got)
	}
}

// TestCoverage: a small part of the section "coverage": repetitions and few samples, where what was lost
// decides. Of hundreds of intervals that are honest 92 to 99 % hold the truth, whatever the seeds.
func TestCoverage(t *testing.T) {
	testutil.NeedRoot(t)
	s, err := coverage.Run(t.Context(), models()[:2], 1, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	all := s.Pooled()
	t.Logf("%d intervals, %.1f %% held; %d bounds, %.1f %% held", all.Intervals, 100*all.Share(), all.Bounds, 100*all.BoundShare())
	if all.Intervals < 100 || all.Share() < 0.92 {
		t.Errorf("%d intervals, %.1f %% held the truth", all.Intervals, 100*all.Share())
	}
	if all.Bounds < 50 || all.BoundShare() < 0.95 {
		t.Errorf("%d bounds, %.1f %% held the truth", all.Bounds, 100*all.BoundShare())
	}
}

// TestRepeats: a small part of the section "repeats".
func TestRepeats(t *testing.T) {
	testutil.NeedRoot(t)
	list := insistences(true)
	all, err := insist(t.Context(), list, 30_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		for k := range insistent {
			if m, _ := mean(all[i][k]); math.Abs(m-1) > 0.015 {
				t.Errorf("%+v, %v: sum of weights is %.4f of the truth", c, insistent[k].more, m)
			}
		}
	}
}
