package report

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it)\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// logNormal is a distribution of n delays with the given median (ns) and spread, in ten buckets an octave.
func logNormal(name string, n, median, sigma float64) Distribution {
	d := Distribution{Name: name, Title: "delay from SYN to SYN-ACK", Unit: Nanosecond, Count: n, CountErr: math.Sqrt(n),
		Mean: median * math.Exp(sigma*sigma/2), Help: "delay from a request to its response"}
	d.Sum = d.Mean * n
	for i := range 200 {
		x := 1e5 * math.Pow(2, float64(i)/10)
		d.Buckets = append(d.Buckets, Bucket{Upper: x, Cumulative: n * (0.5 + 0.5*math.Erf(math.Log(x/median)/sigma/math.Sqrt2))})
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}} {
		x := d.At(q.q)
		d.Quantiles = append(d.Quantiles, Quantile{Name: q.name, Q: q.q, Value: x, Low: 0.97 * x, High: 1.03 * x, Defined: true})
	}
	return d
}

func fixtureBody() Body {
	delays := logNormal("delay_ns", 12345.4, 12.3e6, 1.1)
	delays.Quantiles[4].Defined = false
	return Body{
		Values: []Value{
			{Name: "matched", Value: uint64(9876), Unit: Count, Kind: Counter, Help: "responses that found their request"},
			{Name: "estimated", Value: 12345.4, Low: 12127.0, High: 12563.0, Unit: Count, Kind: Counter, Help: "corrected number of matches"},
			{Name: "match_rate", Value: 0.4861, Unit: Ratio, Help: "share of requests that were answered"},
			{Name: "fill", Value: math.NaN(), Unit: Ratio, Help: "occupied entries"},
			{Name: "fit", Value: "fitting", Kind: Info},
			{Name: "longest.measurable_ns", Value: int64(4_294_967_295), Unit: Nanosecond},
		},
		Distributions: []Distribution{delays},
		Tables: []Table{{
			Name: "groups", Title: "slowest source networks", Limit: 16, Help: "groups by delay",
			Columns: []Column{
				{Name: "group", Label: true, Help: "source network"},
				{Name: "estimated", Unit: Count, Metric: true, Help: "corrected matches"},
				{Name: "p95_ns", Unit: Nanosecond, Metric: true, Help: "95th percentile"},
				{Name: "broken", Help: "breaks the SLA"},
			},
			Rows: [][]any{
				{"192.0.2.0/24", 812.4, 91.2e6, true},
				{"2001:db8:cafe::/48", 77.0, 12.0e6, false},
				{"evil\x1b[2Jname", int64(3), math.NaN(), false},
			},
		}},
		Notes: []string{"12 % of the requests were evicted before a response came: 65536 entries at p = 1/4 would fit this traffic better than what is configured now."},
	}
}

func fixtureLine() Line {
	return Line{
		Algorithm: "fridge", Identity: Identity{Instance: "eth0", Interfaces: []string{"eth0"}},
		Window: Window{Start: 5_000_000_000, End: 15_000_000_000, Number: 3},
		Packets: Packets{Seen: 1234567, Segments: 1234567, Parsed: 1234000, Used: 600000, Bytes: 1 << 30,
			Reasons: map[string]uint64{"arp": 500, "truncated": 67, "not_ip": 0}},
		Memory: Memory{RegisterBytes: 1 << 20, KernelBytes: 1<<20 + 12345},
		Lost:   map[string]uint64{"evicted": 1200, "refused": 0},
		Report: fixtureBody(),
	}
}

// fixtureTruth adds a truth that is a little off, and the errors against it.
func fixtureTruth() Line {
	l := fixtureLine()
	truth := Body{
		Values:        []Value{{Name: "matched", Value: uint64(12300), Unit: Count, Kind: Counter}},
		Distributions: []Distribution{logNormal("delay_ns", 12300, 12.0e6, 1.1)},
		Tables:        []Table{{Name: "groups", Columns: l.Report.Tables[0].Columns, Rows: [][]any{{"192.0.2.0/24", 800.0, 90.0e6, true}, {"198.51.100.0/24", 1.0, 1.0e6, false}}}},
	}
	errors := Body{Values: []Value{ // as package compare has them
		{Name: "matched", Value: -0.19707317073170727, Unit: Ratio},
		{Name: "delay_ns.count", Value: 0.003691056910569035, Unit: Ratio},
		{Name: "delay_ns.mean", Value: 0.02499999999999991, Unit: Ratio},
		{Name: "delay_ns.p50", Value: 0.02499911920813913, Unit: Ratio},
		{Name: "delay_ns.p50_log2", Value: 0.035622670009164525, Unit: None},
		{Name: "delay_ns.p90", Value: 0.024814813031881933, Unit: Ratio},
		{Name: "delay_ns.p90_log2", Value: 0.03536323416181675, Unit: None},
		{Name: "delay_ns.p95", Value: 0.025380702910549502, Unit: Ratio},
		{Name: "delay_ns.p95_log2", Value: 0.036159652392202424, Unit: None},
		{Name: "delay_ns.p99", Value: 0.026123073070489333, Unit: Ratio},
		{Name: "delay_ns.p99_log2", Value: 0.037203777981964836, Unit: None},
		{Name: "delay_ns.p999", Value: math.NaN(), Unit: Ratio},
		{Name: "delay_ns.p999_log2", Value: math.NaN(), Unit: None},
		{Name: "delay_ns.p5_p95_max", Value: 0.02574414211841569, Unit: Ratio},
		{Name: "delay_ns.p5_p95_max_log2", Value: 0.03667091522402022, Unit: None},
		{Name: "groups.recall", Value: 0.5, Unit: Ratio},
		{Name: "groups.precision", Value: 0.3333333333333333, Unit: Ratio},
		{Name: "groups.estimated", Value: 0.01550000000000007, Unit: Ratio},
		{Name: "groups.p95_ns", Value: 0.01333333333333342, Unit: Ratio},
	}}
	l.Truth, l.Error = &truth, &errors
	return l
}

func fixtureRun() Run {
	return Run{
		Version: "v0.1.0", Command: "attach", Kernel: "6.18.0", Hook: "auto", Mode: "native", Direction: "both",
		Attached:   []Attached{{"eth0", "xdp", "native", "ingress", "xdp"}, {"eth0", "tc", "", "egress", "tcx"}},
		Interfaces: []string{"eth0"}, WindowNS: 10e9, Seed: 7, Hash: "fast", Clock: Clock{Name: "monotonic"},
		Algorithms: []RunAlgorithm{{Name: "fridge", Params: map[string]any{"bins": int64(64)}}},
	}
}
