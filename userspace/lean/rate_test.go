package lean

import (
	"math"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/rates"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// byRate is a snapshot of flows of all statistics.
func byRate(t *testing.T, flows map[int]rates.Flow) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, map[string]string{"by": "rate"})
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	n := make(counts, bpf.LeanLeanCounterLEAN_COUNTS)
	for _, each := range []bpf.LeanLeanCounter{bpf.LeanLeanCounterLEAN_NUMBERED, bpf.LeanLeanCounterLEAN_COMPARED} {
		n[each] = 1000
	}
	n[bpf.LeanLeanCounterLEAN_RETRANS+bpf.LeanLeanCounter(bpf.LeanRetransCounterRET_SEGMENTS)] = 1000
	n[bpf.LeanLeanCounterLEAN_RETRANS+bpf.LeanLeanCounter(bpf.LeanRetransCounterRET_COMPARED)] = 1000
	all := map[heavy.Key]rates.Flow{}
	for flow, f := range flows {
		key, _ := flowOf(flow)
		all[key] = f
	}
	for _, st := range c.on {
		s.Words[ratedWords+st.String()] = c.measure(st, n).Words(all, c.budget)
	}
	s.Words[counterWords], s.Words[limitWords] = snapshot.Words(n), snapshot.Floats(make([]float64, stats))
	s.Words[chanceWords] = snapshot.Floats([]float64{1, 1, 0})
	s.Words[unnamedWords], s.Words[slowWords] = snapshot.Words{1, 2, 3, 4}, snapshot.Words{7}
	return s
}

// What two hosts counted of a flow adds up: 30 events of 300 packets and 10 of 500.
func TestRatesOfTwoHosts(t *testing.T) {
	one := byRate(t, map[int]rates.Flow{1: {Packets: 299, Events: 29, Entries: 1, Sum: 16 * 29 * 100, Weights: 16 * 29, Squares: 16 * 29 * 10_000}})
	two := byRate(t, map[int]rates.Flow{1: {Packets: 499, Events: 9, Entries: 1, Sum: 16 * 9 * 200, Weights: 16 * 9, Squares: 16 * 9 * 40_000},
		2: {Packets: 5000, Events: 1000, Entries: 1, Sum: 16 * 1000 * 10, Weights: 16_000, Squares: 16_000 * 100}})
	merged := snapshottest.Merge(t, one, two)
	snapshottest.Stands(t, merged)
	r := snapshottest.Report(t, merged)
	at := func(table report.Table, flow int) (rate float64) {
		for n := range table.Rows {
			if x, _ := report.Number(table.Rows[n][8]); x == map[int]float64{1: 800, 2: 5001}[flow] {
				rate, _ = report.Number(table.Rows[n][5])
			}
		}
		return rate
	}
	for _, table := range r.Body.Tables {
		want := map[int]float64{1: 40. / 800 / (1 + 2./40), 2: 1001. / 5001 / (1 + 1./1001)}
		if table.Name == "latency" {
			want = map[int]float64{1: latencyTick * (29*100 + 9*200) / 38., 2: latencyTick * 10}
		}
		for flow, rate := range want {
			if got := at(table, flow); math.Abs(got-rate) > 1e-9*rate+1 && table.Name == "latency" || table.Name != "latency" && math.Abs(got-rate) > 1e-9 {
				t.Errorf("%s: flow %d has %g, want %g", table.Name, flow, got, rate)
			}
		}
	}
	if r.Lost["loss_unnamed"] != 4 || r.Lost["retrans_unnamed"] != 8 {
		t.Errorf("lost: %v", r.Lost)
	}
}

// Forms without rates are refused by name, and 40,000 bytes of a statistic are not exceeded, nor a half left over by much.
func TestRatesOfDefaultForms(t *testing.T) {
	for key, value := range map[string]string{"count": "bytes", "latency": "signed", "loss": "walk", "ooo": "misra-gries", "retrans": "distinct", "keys": "bits", "mean": "true"} {
		v, err := algo.NewValues(Name, params, map[string]string{"by": "rate", key: value, "stat": "latency"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newConfig(v, algo.Setup{}); err == nil {
			t.Errorf("lean.%s=%s has a rate", key, value)
		}
	}
	for _, name := range statNames {
		for memory, most := range map[string]int{"40kB": 40_000, "160kB": 160_000} {
			if used := configured(t, map[string]string{"by": "rate", "stat": name, "memory": memory}).used(); used > most || used < most*3/4 {
				t.Errorf("%s: %d bytes of %d", name, used, most)
			}
		}
	}
}
