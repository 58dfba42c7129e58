package compare

import (
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

func errorOf(t *testing.T, b report.Body, name string) float64 {
	t.Helper()
	v, ok := report.Find(b.Values, name)
	if !ok {
		t.Fatalf("no error named %s", name)
	}
	f, _ := report.Number(v.Value)
	return f
}

func near(a, b, within float64) bool {
	return math.Abs(a-b) <= within || math.IsNaN(a) && math.IsNaN(b)
}

// logNormal is a distribution with the given median and spread, in ten buckets an octave.
func logNormal(name string, n, median, sigma float64) report.Distribution {
	d := report.Distribution{Name: name, Count: n, Mean: median * math.Exp(sigma*sigma/2)}
	for i := range 200 {
		x := 1e5 * math.Pow(2, float64(i)/10)
		d.Buckets = append(d.Buckets, report.Bucket{Upper: x, Cumulative: n * (0.5 + 0.5*math.Erf(math.Log(x/median)/sigma/math.Sqrt2))})
	}
	for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99} {
		d.Quantiles = append(d.Quantiles, report.Quantile{Name: name, Q: q, Value: d.At(q), Defined: true})
	}
	return d
}

func TestCompareValues(t *testing.T) {
	est := report.Body{Values: []report.Value{{Name: "a", Value: 110.0}, {Name: "b", Value: uint64(1)}, {Name: "c", Value: uint64(0)},
		{Name: "d", Value: "text"}, {Name: "e", Value: 5.0, Kind: report.Info}, {Name: "only", Value: 1.0}}}
	truth := report.Body{Values: []report.Value{{Name: "a", Value: uint64(100)}, {Name: "b", Value: 0.0}, {Name: "c", Value: int64(0)},
		{Name: "d", Value: "text"}, {Name: "e", Value: 4.0, Kind: report.Info}, {Name: "other", Value: 1.0}}}
	got := Bodies(est, truth)
	if len(got.Values) != 3 {
		t.Errorf("%d errors, want those of a, b and c: %v", len(got.Values), got.Values)
	}
	for name, want := range map[string]float64{"a": 0.1, "b": math.NaN(), "c": 0} {
		if e := errorOf(t, got, name); !near(e, want, 1e-9) {
			t.Errorf("error of %s = %v, want %v", name, e, want)
		}
	}
}

// A CDF shifted by a factor has that factor as its error at every percentile, in the paper's logarithm too.
func TestCompareDistributionShifted(t *testing.T) {
	est := report.Body{Distributions: []report.Distribution{logNormal("delay_ns", 1000, 24e6, 1)}}
	truth := report.Body{Distributions: []report.Distribution{logNormal("delay_ns", 2000, 12e6, 1)}}
	got := Bodies(est, truth)
	for name, want := range map[string]float64{
		"delay_ns.count": -0.5, "delay_ns.mean": 1, "delay_ns.p50": 1, "delay_ns.p50_log2": 1, "delay_ns.p99": 1,
		"delay_ns.p5_p95_max": 1, "delay_ns.p5_p95_max_log2": 1,
	} {
		if e := errorOf(t, got, name); !near(e, want, 0.02) {
			t.Errorf("error of %s = %v, want %v", name, e, want)
		}
	}
}

func TestCompareLargestGapIsFoundBetweenPercentiles(t *testing.T) {
	truth := logNormal("d", 1000, 12e6, 1)
	est := truth
	est.Buckets = append([]report.Bucket{}, truth.Buckets...)
	// The tail above the 97th percentile is off and must not count; the 10th to 20th are 30 % late.
	low, high := truth.At(0.1), truth.At(0.2)
	for i := range est.Buckets {
		if x := est.Buckets[i].Upper; x > truth.At(0.97) {
			est.Buckets[i].Upper = 10 * x
		} else if x > low && x < high {
			est.Buckets[i].Cumulative = 1000 * truth.Share(x/1.3)
		}
	}
	got := Bodies(report.Body{Distributions: []report.Distribution{est}}, report.Body{Distributions: []report.Distribution{truth}})
	if e := errorOf(t, got, "d.p5_p95_max"); !near(e, 0.3, 0.05) {
		t.Errorf("largest gap %v, want 0.3", e)
	}
}

func TestCompareUndefinedQuantile(t *testing.T) {
	est := report.Body{Distributions: []report.Distribution{{Name: "d", Quantiles: []report.Quantile{{Name: "p50", Defined: false}}}}}
	truth := report.Body{Distributions: []report.Distribution{{Name: "d", Quantiles: []report.Quantile{{Name: "p50", Value: 3, Defined: true}}}}}
	if e := errorOf(t, Bodies(est, truth), "d.p50"); !math.IsNaN(e) {
		t.Errorf("error of an undefined percentile = %v, want NaN", e)
	}
}

func TestCompareTable(t *testing.T) {
	columns := []report.Column{{Name: "flow", Label: true}, {Name: "bytes", Unit: report.Bytes, Metric: true}, {Name: "note"}}
	table := func(rows ...[]any) report.Body {
		return report.Body{Tables: []report.Table{{Name: "top", Columns: columns, Rows: rows}}}
	}
	est := table([]any{"a", 110.0, "x"}, []any{"b", 70.0, "x"}, []any{"z", 1.0, "x"}, []any{"y", 1.0, "x"})
	truth := table([]any{"a", uint64(100), "x"}, []any{"b", uint64(100), "x"}, []any{"c", uint64(50), "x"})
	got := Bodies(est, truth)
	for name, want := range map[string]float64{"top.recall": 2.0 / 3, "top.precision": 0.5, "top.bytes": 0.2} {
		if e := errorOf(t, got, name); !near(e, want, 1e-9) {
			t.Errorf("%s = %v, want %v", name, e, want)
		}
	}
	got = Bodies(table([]any{"a", 90.0, "x"}), table([]any{"a", uint64(100), "x"}))
	for name, want := range map[string]float64{"top.recall": 1, "top.precision": 1, "top.bytes": 0.1} {
		if e := errorOf(t, got, name); !near(e, want, 1e-9) {
			t.Errorf("one row: %s = %v, want %v", name, e, want)
		}
	}
}

// Without samples there is no gap between curves, which is left out and not unknown.
func TestCompareWithoutSamples(t *testing.T) {
	some, none := logNormal("d", 100, 12e6, 1), logNormal("d", 0, 12e6, 1)
	for _, c := range [][2]report.Distribution{{none, some}, {some, none}, {none, none}} {
		got := Bodies(report.Body{Distributions: c[:1]}, report.Body{Distributions: c[1:]})
		if _, there := report.Find(got.Values, "d.p5_p95_max"); there {
			t.Errorf("%g samples against %g have a gap", c[0].Total(), c[1].Total())
		}
	}
}
