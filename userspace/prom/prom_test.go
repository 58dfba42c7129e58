package prom

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// gather registers the store in a pedantic registry, which checks that series are consistent and unique.
func gather(t *testing.T, s *Store) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

func text(t *testing.T, s *Store) []byte {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestMetricsGolden(t *testing.T) {
	s := NewStore(fixedClock)
	s.Details(true)
	s.Start(report.Run{Version: "v0.1.0", Command: "attach", Kernel: "6.18.0"})
	s.Add(line("fridge", 400))
	s.Add(line("fridge", 600))
	got := text(t, s)
	path := filepath.Join("testdata", "metrics.golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("metrics differ from %s (go test -update rewrites it):\n%s", path, got)
	}
}

func TestMetricsLint(t *testing.T) {
	s := NewStore(fixedClock)
	s.Start(report.Run{Version: "v0.1.0"})
	s.Add(line("fridge", 400))
	s.Add(line("rtt-array", 300))
	problems, err := testutil.CollectAndLint(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCountersAccumulateAndGaugesDoNot(t *testing.T) {
	s := NewStore(fixedClock)
	s.Details(true)
	s.Add(line("fridge", 400))
	s.Add(line("fridge", 600))
	families := gather(t, s)
	for name, want := range map[string]float64{
		"xdpmon_fridge_matched_total": 200, "xdpmon_seen_packets_total": 2000, "xdpmon_used_packets_total": 1000,
		"xdpmon_seen_bytes_total": 128000, "xdpmon_windows_total": 2, "xdpmon_fridge_estimated": 600, "xdpmon_fridge_estimated_low": 590,
		"xdpmon_fridge_longest_seconds": 4, "xdpmon_fridge_flow_number": 3, "xdpmon_fridge_match_rate_ratio": 0.5, "xdpmon_last_window_duration_seconds": 10,
		"xdpmon_fridge_match_rate_low_ratio": 0.4, "xdpmon_last_window_timestamp_seconds": 1.7e9, "xdpmon_register_memory_bytes": 1 << 20,
	} {
		f, ok := families[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		m := f.GetMetric()[0]
		if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"xdpmon_fridge_fill_ratio", "xdpmon_fridge_fit", "xdpmon_fridge_match_rate_high_ratio"} {
		if _, ok := families[name]; ok {
			t.Errorf("%s is there", name)
		}
	}
}

func TestLabelledCounters(t *testing.T) {
	s := NewStore(fixedClock)
	s.Rows()
	s.Add(line("fridge", 400))
	s.Add(line("fridge", 400))
	want := `
# HELP xdpmon_lost_events_total Times that the algorithm could not see or keep something, by kind; kinds count different things, so do not add them up.
# TYPE xdpmon_lost_events_total counter
xdpmon_lost_events_total{algorithm="fridge",instance_name="eth0",interface="eth0",kind="evicted"} 24
xdpmon_lost_events_total{algorithm="fridge",instance_name="eth0",interface="eth0",kind="refused"} 0
# HELP xdpmon_unparsed_packets_total Packets that passed the hook and were not parsed to the end, by reason.
# TYPE xdpmon_unparsed_packets_total counter
xdpmon_unparsed_packets_total{instance_name="eth0",interface="eth0",reason="arp"} 14
xdpmon_unparsed_packets_total{instance_name="eth0",interface="eth0",reason="truncated"} 6
# HELP xdpmon_fridge_groups_p95_seconds fridge: 95th percentile of the delay, in the latest window; one row of: slowest groups.
# TYPE xdpmon_fridge_groups_p95_seconds gauge
xdpmon_fridge_groups_p95_seconds{algorithm="fridge",dport="443",instance_name="eth0",interface="eth0",row_interface="192.0.2.0/24"} 0.09
xdpmon_fridge_groups_p95_seconds{algorithm="fridge",dport="53",instance_name="eth0",interface="eth0",row_interface="bad�"} 0.012
`
	err := testutil.CollectAndCompare(s, strings.NewReader(want), "xdpmon_lost_events_total", "xdpmon_unparsed_packets_total", "xdpmon_fridge_groups_p95_seconds")
	if err != nil {
		t.Error(err)
	}
}

// population returns the number of values in every native bucket, by index, and checks the encoding on the way.
func population(t *testing.T, h *dto.Histogram) map[int]int64 {
	t.Helper()
	out := map[int]int64{}
	index, current, delta := 0, int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			current += h.GetPositiveDelta()[delta]
			delta++
			if current < 0 {
				t.Fatalf("bucket %d holds %d values", index, current)
			}
			out[index] = current
			index++
		}
	}
	if delta != len(h.GetPositiveDelta()) {
		t.Fatalf("spans cover %d buckets, there are %d", delta, len(h.GetPositiveDelta()))
	}
	return out
}

func TestHistogramClassicAndNative(t *testing.T) {
	s := NewStore(fixedClock)
	s.Add(line("fridge", 400.4))
	s.Add(line("fridge", 600.3))
	h := gather(t, s)["xdpmon_fridge_delay_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 1001 || math.Abs(h.GetSampleSum()-150.105) > 1e-6 {
		t.Errorf("count %d, sum %v; want 1001 (1000.7 rounded), 150.105", h.GetSampleCount(), h.GetSampleSum())
	}
	// A tenth of the values is in every octave: classic bounds and native buckets must both show it.
	for _, b := range h.GetBucket() {
		want := 1000.7 * min(1, max(0, math.Log2(b.GetUpperBound()/1e-3)/10))
		if math.Abs(float64(b.GetCumulativeCount())-want) > 0.6 {
			t.Errorf("classic bucket %v holds %d, want %.1f", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
	var total int64
	for i, n := range population(t, h) {
		total += n
		low, high := max(1e-3, nativeUpper(i-1)), min(1.024, nativeUpper(i))
		if want := 1000.7 * math.Log2(high/low) / 10; math.Abs(float64(n)-want) > 1.1 {
			t.Errorf("native bucket (%v, %v] holds %d, want %.1f", low, high, n, want)
		}
	}
	if total != 1001 {
		t.Errorf("native buckets hold %d, the count is 1001", total)
	}
}

func TestHistogramEdges(t *testing.T) {
	h := newHistogram(report.Nanosecond, epoch)
	h.add(report.Distribution{Unit: report.Nanosecond}) // empty
	h.add(report.Distribution{Unit: report.Nanosecond, Sum: math.NaN(), Buckets: []report.Bucket{
		{Upper: 0, Cumulative: 3}, {Upper: 1e6, Cumulative: 5}, {Upper: 1e6, Cumulative: 5}, {Upper: 2e6, Cumulative: 4}, {Upper: math.Inf(1), Cumulative: 10}}})
	var m dto.Metric
	m.Histogram = h.write(BothHistograms)
	if got := m.Histogram; got.GetZeroCount() != 3 || math.IsNaN(got.GetSampleSum()) {
		t.Errorf("zero count %d, sum %v", got.GetZeroCount(), got.GetSampleSum())
	}
	var total int64
	for _, n := range population(t, m.Histogram) {
		total += n
	}
	if uint64(total)+3 != m.Histogram.GetSampleCount() {
		t.Errorf("buckets hold %d and 3, the count is %d", total, m.Histogram.GetSampleCount())
	}
}

func TestNativeIndexAgreesWithTheClientLibrary(t *testing.T) {
	reference := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "r", NativeHistogramBucketFactor: 1.1})
	values := []float64{1e-6, 0.00123, 0.5, 1, 1.0001, 2, 7.77, 1000}
	want := map[int]int64{}
	for _, x := range values {
		reference.Observe(x)
		want[nativeIndex(x)]++
	}
	var m dto.Metric
	if err := reference.Write(&m); err != nil {
		t.Fatal(err)
	}
	if m.Histogram.GetSchema() != nativeSchema {
		t.Fatalf("schema %d, want %d", m.Histogram.GetSchema(), nativeSchema)
	}
	for i, n := range population(t, m.Histogram) {
		if want[i] != n {
			t.Errorf("bucket %d: %d values, want %d", i, want[i], n)
		}
	}
}

// Two algorithms may use one name for different things: a metric is one thing.
func TestNamesOfTwoAlgorithms(t *testing.T) {
	s := NewStore(fixedClock)
	a, b := line("alpha", 10), line("be-ta", 10)
	a.Report = report.Body{Values: []report.Value{{Name: "delay_ns", Value: 1.0, Unit: report.Nanosecond, Answer: true}}}
	b.Report = report.Body{Distributions: []report.Distribution{delays(5)}}
	s.Add(a)
	s.Add(b)
	families := gather(t, s)
	if families["xdpmon_alpha_delay_seconds"].GetType() != dto.MetricType_GAUGE || families["xdpmon_be_ta_delay_seconds"].GetType() != dto.MetricType_HISTOGRAM {
		t.Errorf("families %v", families)
	}
	if n := len(families["xdpmon_seen_packets_total"].GetMetric()); n != 1 {
		t.Errorf("the packets of one chain are %d series, want 1: they would be added up", n)
	}
}

// Rows whose labels are from traffic are unbounded series with personal data: they are served on request only.
func TestRowsOnRequest(t *testing.T) {
	const traffic, settings = "xdpmon_fridge_groups_p95_seconds", "xdpmon_fridge_fridges_inserted"
	for _, asked := range []bool{false, true} {
		s := NewStore(fixedClock)
		if asked {
			s.Rows()
		}
		l := line("fridge", 400)
		l.Report.Tables = append(l.Report.Tables, report.Table{Name: "fridges", Settings: true, Rows: [][]any{{"1", int64(7)}},
			Columns: []report.Column{{Name: "fridge", Label: true}, {Name: "inserted", Metric: true}}})
		s.Add(l)
		families := gather(t, s)
		if (families[traffic] != nil) != asked || families[settings] == nil {
			t.Errorf("asked %v: flows %v, settings %v", asked, families[traffic], families[settings])
		}
	}
}

// Details of the measurement are served on request; what was measured, counted and lost always is.
func TestDetailsOnRequest(t *testing.T) {
	second := delays(100)
	second.Name = "ack_delay_ns"
	l := line("fridge", 400)
	l.Report.Distributions = append(l.Report.Distributions, second)
	for _, asked := range []bool{false, true} {
		s := NewStore(fixedClock)
		s.Details(asked)
		s.Add(l)
		families := gather(t, s)
		for _, name := range []string{"xdpmon_fridge_longest_seconds", "xdpmon_kernel_memory_bytes", "xdpmon_fridge_ack_delay_window_seconds", "xdpmon_fridge_ack_delay_window_low_seconds"} {
			if (families[name] != nil) != asked {
				t.Errorf("asked %v: %s is there: %v", asked, name, !asked)
			}
		}
		for _, name := range []string{"xdpmon_fridge_matched_total", "xdpmon_fridge_estimated", "xdpmon_fridge_estimated_low", "xdpmon_lost_events_total", "xdpmon_register_memory_bytes",
			"xdpmon_fridge_delay_window_low_seconds", "xdpmon_fridge_ack_delay_seconds"} {
			if families[name] == nil {
				t.Errorf("asked %v: %s is missing", asked, name)
			}
		}
	}
}

func TestMetricName(t *testing.T) {
	for _, c := range []struct {
		name string
		unit report.Unit
		want string
	}{
		{"delay_ns", report.Nanosecond, "xdpmon_delay_seconds"},
		{"queue.depth_bytes", report.Bytes, "xdpmon_queue_depth_bytes"},
		{"packets_lost", report.PacketUnit, "xdpmon_packets_lost"},
		{"packets", report.PacketUnit, "xdpmon_packets"},
		{"alerts_count", report.Attributes, "xdpmon_alerts_attributes"},
		{"matched", report.Responses, "xdpmon_matched_responses"},
		{"used", report.PacketUnit, "xdpmon_used_packets"},
		{"lost_packets", report.PacketUnit, "xdpmon_lost_packets"},
		{"flow_count", report.Count, "xdpmon_flow_number"},
		{"rate", report.PerSecond, "xdpmon_rate_per_second"},
		{"Größe 2", report.None, "xdpmon_gr__e_2"},
	} {
		if got := metricName(c.name, c.unit); got != c.want {
			t.Errorf("metricName(%q, %q) = %q, want %q", c.name, c.unit, got, c.want)
		}
	}
}

// Actions on packets are served once for all algorithms of a chain, and only if there are any.
func TestVerdicts(t *testing.T) {
	s := NewStore(fixedClock)
	acts := line("fridge", 400)
	acts.Packets.Verdicts = &report.Verdicts{Dropped: 30, DroppedBytes: 3000, Marked: 5, MarkedBefore: 4, Unmarkable: 2}
	s.Add(acts)
	s.Add(acts)
	families := gather(t, s)
	for name, want := range map[string]float64{"passed_packets": 2*float64(acts.Packets.Seen) - 60, "dropped_packets": 60, "dropped_bytes": 6000,
		"marked_packets": 10, "marked_before_packets": 8, "unmarkable_packets": 4} {
		if f := families["xdpmon_"+name+"_total"]; f == nil || len(f.GetMetric()) != 1 || f.GetMetric()[0].GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, f, want)
		}
	}
	problems, err := testutil.CollectAndLint(s)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	s = NewStore(fixedClock)
	s.Add(line("fridge", 400))
	for name := range gather(t, s) {
		if strings.Contains(name, "dropped_packets") || strings.Contains(name, "marked") {
			t.Errorf("%s is there and nothing acts", name)
		}
	}
}

// One form of histograms has what the other lacks, and both have one count.
func TestHistogramForms(t *testing.T) {
	for form, want := range map[Histograms]struct{ classic, native bool }{BothHistograms: {true, true}, ClassicHistograms: {true, false}, NativeHistograms: {false, true}, "": {true, true}} {
		s := NewStore(fixedClock)
		s.ServeHistograms(form)
		s.Add(line("fridge", 400))
		h := gather(t, s)["xdpmon_fridge_delay_seconds"].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 400 || len(h.GetBucket()) > 0 != want.classic || len(h.GetPositiveSpan()) > 0 != want.native || h.Schema != nil != want.native {
			t.Errorf("%q: %d values, %d buckets, %d spans", form, h.GetSampleCount(), len(h.GetBucket()), len(h.GetPositiveSpan()))
		}
	}
}

// Beyond the limit rows are dropped first, then reported values; what is dropped is counted, and logged once.
func TestLimit(t *testing.T) {
	s := NewStore(fixedClock)
	s.Rows()
	s.Add(line("fridge", 400))
	s.Add(line("lean", 400))
	all := s.Series()
	var notices []int
	for _, c := range []struct {
		limit         int
		rows, reports bool
	}{{all, true, true}, {all - 3, false, true}, {all - 3, false, true}, {40, false, false}} {
		s.Limit(c.limit, func(dropped int) { notices = append(notices, dropped) })
		families := gather(t, s)
		rows, reports := families["xdpmon_lean_groups_p95_seconds"] != nil, families["xdpmon_lean_delay_seconds"] != nil
		if rows != c.rows || reports != c.reports || families["xdpmon_lost_events_total"] == nil {
			t.Errorf("limit %d: rows %v, reports %v, %d families", c.limit, rows, reports, len(families))
		}
		if n, dropped := s.Series(), families["xdpmon_metrics_dropped_series"].GetMetric()[0].GetGauge().GetValue(); n > c.limit+1 || float64(n)+dropped != float64(all) {
			t.Errorf("limit %d: %d series, %g dropped, of %d", c.limit, n, dropped, all)
		}
	}
	if len(notices) != 1 {
		t.Errorf("got %v", notices)
	}
}

// Active findings are series, the 50 most severe, whatever their subjects' names; the total is served beyond that, and 0 if there are none.
func TestFindings(t *testing.T) {
	s := NewStore(fixedClock)
	if gather(t, s)["xdpmon_findings"] != nil {
		t.Error("findings are not enabled, and their number is served")
	}
	var open []finding.Finding
	for n := range 60 {
		open = append(open, finding.Finding{Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: fmt.Sprintf("evil\"}\n%d\x1b", n)}, Interface: "eth0"})
	}
	for _, c := range []struct{ open, shown int }{{0, 0}, {1, 1}, {60, mostFindings}, {0, 0}} {
		s.Findings(open[:c.open])
		families := gather(t, s)
		if n := families["xdpmon_findings"].GetMetric()[0].GetGauge().GetValue(); n != float64(c.open) || len(families["xdpmon_finding"].GetMetric()) != c.shown {
			t.Errorf("%d findings: %g, %d series", c.open, n, len(families["xdpmon_finding"].GetMetric()))
		}
		for _, l := range bytes.Split(text(t, s), []byte("\n")) {
			if len(l) > 0 && !bytes.HasPrefix(l, []byte("xdpmon_")) && !bytes.HasPrefix(l, []byte("# ")) {
				t.Errorf("a name has broken the text: %q", l)
			}
		}
	}
}

// A finding has the identity of the interface that it names, so that it joins with what is measured there; where two instances measure it, it has neither's.
func TestFindingsJoin(t *testing.T) {
	s := NewStore(fixedClock)
	add := func(instance, iface, domain string) {
		l := line("fridge", 400)
		l.Identity = report.Identity{Instance: instance, Each: iface, Interfaces: []string{iface}, Guest: report.Guest{Kind: known.GuestDomain, Name: domain}}
		s.Add(l)
	}
	add("tenants", "vnet0", "web-1")
	add("tenants", "vnet1", "db-1")
	add("again", "vnet1", "db-1")
	found := func(iface string) finding.Finding {
		return finding.Finding{Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.0.0.7"}, Interface: iface}
	}
	s.Findings([]finding.Finding{found("vnet0"), found("vnet1"), found("vnet0,vnet1")})
	want := `
# HELP xdpmon_finding An active finding; always 1.
# TYPE xdpmon_finding gauge
xdpmon_finding{domain="web-1",guest="web-1",instance_name="tenants",interface="vnet0",kind="scan",severity="warning",subject="10.0.0.7",subject_type="host"} 1
xdpmon_finding{interface="vnet0,vnet1",kind="scan",severity="warning",subject="10.0.0.7",subject_type="host"} 1
xdpmon_finding{interface="vnet1",kind="scan",severity="warning",subject="10.0.0.7",subject_type="host"} 1
`
	if err := testutil.CollectAndCompare(s, strings.NewReader(want), "xdpmon_finding"); err != nil {
		t.Error(err)
	}
}

// An instance is as fresh as its latest window, although an algorithm that it does not have any more had one before.
func TestLatestWindow(t *testing.T) {
	now := epoch
	s := NewStore(func() time.Time { return now })
	s.Add(line("fridge", 400))
	now = epoch.Add(time.Minute)
	s.Add(line("lean", 400))
	m := gather(t, s)["xdpmon_last_window_timestamp_seconds"].GetMetric()
	if len(m) != 1 || m[0].GetGauge().GetValue() != float64(now.Unix()) {
		t.Errorf("%v, want one at %d", m, now.Unix())
	}
}

// What rows of settings count adds up over windows, with the time when it last rose; a row that is removed is forgotten.
func TestRowCounters(t *testing.T) {
	now := epoch
	s := NewStore(func() time.Time { return now })
	window := func(at time.Duration, rows ...[]any) {
		now = epoch.Add(at)
		s.Add(report.Line{Algorithm: "beaucoup", Identity: report.Identity{Instance: "edge"}, Report: report.Body{Tables: []report.Table{{Name: "queries", Settings: true, Limit: 9,
			Columns: []report.Column{{Name: "query", Label: true}, {Name: "alerts", Metric: true, Counter: true, Unit: report.Count, Help: "alerts"}}, Rows: rows}}}})
	}
	window(0, []any{"scan", uint64(2)}, []any{"flood", uint64(0)})
	window(time.Minute, []any{"scan", uint64(3)}, []any{"flood", uint64(0)})
	window(2*time.Minute, []any{"scan", uint64(0)}, []any{"flood", uint64(0)})
	want := `
# HELP xdpmon_beaucoup_queries_alerts_last_timestamp_seconds When this last rose, seconds since 1970; beaucoup: alerts; one row of: .
# TYPE xdpmon_beaucoup_queries_alerts_last_timestamp_seconds gauge
xdpmon_beaucoup_queries_alerts_last_timestamp_seconds{algorithm="beaucoup",instance_name="edge",query="scan"} 1.70000006e+09
# HELP xdpmon_beaucoup_queries_alerts_total beaucoup: alerts; one row of: .
# TYPE xdpmon_beaucoup_queries_alerts_total counter
xdpmon_beaucoup_queries_alerts_total{algorithm="beaucoup",instance_name="edge",query="flood"} 0
xdpmon_beaucoup_queries_alerts_total{algorithm="beaucoup",instance_name="edge",query="scan"} 5
`
	if err := testutil.CollectAndCompare(s, strings.NewReader(want), "xdpmon_beaucoup_queries_alerts_total", "xdpmon_beaucoup_queries_alerts_last_timestamp_seconds"); err != nil {
		t.Error(err)
	}
	window(3*time.Minute, []any{"flood", uint64(1)})
	window(4*time.Minute, []any{"scan", uint64(1)}, []any{"flood", uint64(0)})
	for _, m := range gather(t, s)["xdpmon_beaucoup_queries_alerts_total"].GetMetric() {
		if m.GetCounter().GetValue() != 1 {
			t.Errorf("%v, want 1 of each", m)
		}
	}
}
