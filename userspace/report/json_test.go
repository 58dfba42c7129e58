package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// indented makes a golden file that a person can compare, with the order of members.
func indented(t *testing.T, v json.Marshaler) []byte {
	t.Helper()
	text, err := ordered.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(text, '\n') {
		t.Errorf("more than one line: %s", text)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

// small keeps golden files readable: twenty steps of the CDF show as much as 200.
func small(l Line) Line {
	thin := func(b *Body) {
		for i := range b.Distributions {
			var kept []Bucket
			for j, k := range b.Distributions[i].Buckets {
				if j%20 == 19 {
					kept = append(kept, k)
				}
			}
			b.Distributions[i].Buckets = kept
		}
	}
	thin(&l.Report)
	if l.Truth != nil {
		thin(l.Truth)
	}
	return l
}

func TestJSONGolden(t *testing.T) {
	golden(t, "line.json", indented(t, small(fixtureLine())))
	golden(t, "line-truth.json", indented(t, small(fixtureTruth())))
	golden(t, "run.json", indented(t, fixtureRun()))
}

// TestJSONNames holds docs/output.md against a line: these names do not change once released.
func TestJSONNames(t *testing.T) {
	text, err := json.Marshal(fixtureTruth())
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"algorithm", "interface", "window.start", "window.end", "packets.seen", "packets.parsed", "packets.used",
		"memory.register_bytes", "lost.evicted", "report.matched", "report.estimated",
		"report.estimated_low", "report.estimated_high", "report.delay_ns.p50", "report.delay_ns.p50_low",
		"report.delay_ns.p90", "report.delay_ns.p95", "report.delay_ns.p99", "report.delay_ns.mean",
		"truth.delay_ns.p50", "truth.delay_ns.mean", "error.delay_ns.p50", "error.delay_ns.p50_log2",
	} {
		if value := dig(line, path); value == nil {
			t.Errorf("%s is missing or null", path)
		}
	}
	for _, path := range []string{"report.fill", "report.delay_ns.p999"} {
		if value := dig(line, path); value != nil {
			t.Errorf("%s = %v, want null", path, value)
		}
	}
}

func dig(at any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}

func TestJSONWholeUnitsAreIntegers(t *testing.T) {
	for unit, want := range map[Unit]string{
		Nanosecond: `{"x":2}`, Bytes: `{"x":2}`, Count: `{"x":2}`, PacketUnit: `{"x":2}`,
		None: `{"x":1.75}`, Ratio: `{"x":1.75}`, PerSecond: `{"x":1.75}`,
	} {
		text, err := json.Marshal(Body{Values: []Value{{Name: "x", Value: 1.75, Unit: unit}}})
		if err != nil || string(text) != want {
			t.Errorf("unit %q: %s, %v; want %s", unit, text, err, want)
		}
	}
}

func TestJSONRejectsNamesThatCollide(t *testing.T) {
	for _, values := range [][]Value{
		{{Name: "a", Value: int64(1)}, {Name: "a", Value: int64(2)}},
		{{Name: "a", Value: int64(1)}, {Name: "a.b", Value: int64(2)}},
		{{Name: "a.b", Value: int64(1)}, {Name: "a", Value: int64(2)}},
	} {
		if text, err := json.Marshal(Body{Values: values}); err == nil {
			t.Errorf("%v gives %s, want an error", values, text)
		}
	}
}

func TestJSONNeverCarriesInfinity(t *testing.T) {
	d := Distribution{Name: "d", Unit: Nanosecond, Count: math.NaN(), Sum: math.Inf(1), Mean: math.NaN(),
		Quantiles: []Quantile{{Name: "p50", Q: 0.5, Value: math.Inf(1), Low: math.Inf(-1), High: math.NaN(), Defined: true}},
		Buckets:   []Bucket{{1, 2}, {math.Inf(1), 3}}}
	body := Body{Distributions: []Distribution{d}, Tables: []Table{{Name: "t", Columns: []Column{{Name: "c"}, {Name: "e"}}, Rows: [][]any{{math.Inf(1)}}}}}
	text, err := json.Marshal(Line{Report: body}.object(layout{cdf: true}))
	if err != nil {
		t.Fatal(err)
	}
	if run, err := json.Marshal(Run{Algorithms: []RunAlgorithm{{Params: map[string]any{"p": math.NaN()}}}}); err != nil || !json.Valid(run) {
		t.Errorf("got %s, %v", run, err)
	}
	if !json.Valid(text) || !bytes.Contains(text, []byte(`"t":[{"c":null,"e":null}]`)) {
		t.Errorf("got %s", text)
	}
}

// TestCDFStepsLoseNothing rebuilds the distribution from its JSON steps and compares it everywhere.
func TestCDFStepsLoseNothing(t *testing.T) {
	d := Distribution{Name: "d", Unit: None}
	for i, c := range []float64{0, 0, 0, 5, 5, 5, 9, 9, 10, 10} {
		d.Buckets = append(d.Buckets, Bucket{Upper: math.Pow(2, float64(i)), Cumulative: c})
	}
	rebuilt := Distribution{}
	for _, o := range d.cdf() {
		text, err := o.MarshalJSON()
		var step struct{ LE, Count float64 }
		if err := errors.Join(err, json.Unmarshal(text, &step)); err != nil {
			t.Fatal(err)
		}
		rebuilt.Buckets = append(rebuilt.Buckets, Bucket{step.LE, step.Count})
	}
	if len(rebuilt.Buckets) >= len(d.Buckets) {
		t.Errorf("%d steps of %d: nothing was left away", len(rebuilt.Buckets), len(d.Buckets))
	}
	for x := 0.5; x < 1000; x *= 1.1 {
		if a, b := d.Share(x), rebuilt.Share(x); math.Abs(a-b) > 1e-12 {
			t.Errorf("share at %v: %v, from the steps %v", x, a, b)
		}
	}
}

// What is the same on every line is in the first one; what most readers do not use is there on request.
func TestJSONLinesAreSmall(t *testing.T) {
	for _, cdf := range []bool{false, true} {
		var out bytes.Buffer
		sink := NewJSON(&out, &out)
		if cdf {
			sink.CDF()
		}
		run := fixtureRun()
		run.Clock = Clock{Name: "monotonic", UnixOffsetNS: 1_700_000_000_000_000_000}
		if err := errors.Join(sink.Start(run), sink.Line(fixtureTruth())); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if !strings.Contains(lines[0], `"params":{"bins":64}`) || strings.Contains(lines[1], `"params"`) {
			t.Errorf("parameters belong into the first line only: %s", out.String())
		}
		if strings.Count(lines[1], `"cdf":`) != map[bool]int{false: 0, true: 2}[cdf] {
			t.Errorf("cdf %v: %s", cdf, lines[1])
		}
		if !strings.Contains(lines[1], `"start_time":"2023-11-14T22:`) {
			t.Errorf("no wall clock time in %s", lines[1])
		}
	}
}

// What counts segments is named and measured in segments.
func TestUsedSegments(t *testing.T) {
	packets := Packets{Seen: 2283, Segments: 11100, Parsed: 2283, Used: 11088, UsedSegments: true, Bytes: 1 << 20}
	text, err := json.Marshal(packets.object())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["used"]; ok || got["used_segments"] != 11088.0 || got["segments"] != 11100.0 {
		t.Errorf("%s", text)
	}
	for _, c := range []struct {
		packets Packets
		want    string
	}{
		{packets, "11,088 segments used (99.9 %)"},
		{Packets{Seen: 200, Segments: 200, Used: 100, UsedSegments: true}, "100 used (50.0 %)"},
		{Packets{Seen: 200, Segments: 900, Used: 100}, "100 used (50.0 %)"},
		{Packets{}, "0 used"},
	} {
		if got := used(c.packets); got != c.want {
			t.Errorf("%+v: %q, want %q", c.packets, got, c.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	p := Packets{Seen: 100, Verdicts: &Verdicts{Dropped: 30, DroppedBytes: 3000, Marked: 5, Unmarkable: 2}}
	text, err := json.Marshal(p.object())
	if err != nil {
		t.Fatal(err)
	}
	want := `"verdicts":{"passed":70,"dropped":30,"dropped_bytes":3000,"marked":5,"marked_before":0,"unmarkable":2,"steered":0}`
	if !strings.Contains(string(text), want) {
		t.Errorf("%s lacks %s", text, want)
	}
	lines := strings.Join(accounts(Line{Packets: p}, Style{}), "\n")
	if want := "verdicts 70 passed, 30 dropped (2.93 KiB), 5 marked, 2 could not be marked"; !strings.Contains(strings.Join(strings.Fields(lines), " "), want) {
		t.Errorf("no %q in\n%s", want, lines)
	}
	p.Verdicts = nil
	if text, _ := json.Marshal(p.object()); strings.Contains(string(text), "verdicts") {
		t.Errorf("where nothing acts: %s", text)
	}
}
