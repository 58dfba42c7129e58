package beaucoup

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// accuracy is the expected accuracy of one collector.
type accuracy struct {
	threshold    int
	budget, word string
	bound        float64 // maximum mean relative error, whatever the theory
}

func (a accuracy) query() string {
	return fmt.Sprintf("spread: count distinct dst by src > %d in 30m", a.threshold)
}

// One collector's error is that of the theory, within half a point, and it takes CC(m, p, n) draws within 2 %. A key's destinations are its
// own, so every key is a draw of its own; six seeds have a number of keys each. Half a point is 3.5 standard errors of so many
// keys, or more: their deviation is below three quarters of the mean. Theory for n = 24 of m = 32: 12.4 % at m*p = 1, 15.2 % at
// 1/2, 16.3 % at 1/4 and 17.3 % as p falls to 0; for n = 51 of m = 64 11.6 % and 12.3 %. lab/eval/beaucoup has as little as
// m*p = 1/64.
func TestOneCollector(t *testing.T) {
	few := []accuracy{{43, "1", "32", .125}, {86, "1/2", "32", .153}, {87, "1", "64", .125}}
	oneCollector(t, few, 2000, 220)
	if !testing.Short() {
		oneCollector(t, []accuracy{{171, "1/4", "32", .174}, {400, "1/4", "64", .125}}, 1600, 720)
	}
}

func oneCollector(t *testing.T, list []accuracy, keys, each int) {
	t.Helper()
	testutil.NeedRoot(t)
	const seeds = 6
	first := testutil.Seed(t)
	m := &scans{keys: keys, each: each, gap: 100}
	counts := make([][]float64, len(list)) // of all alerts: the exact count
	for seed := range uint64(seeds) {
		lines := sideBySide(t, list, m, first+seed)
		for i := range list {
			counts[i] = append(counts[i], countsAt(t, &lines[i], m)...)
		}
	}
	for i, a := range list {
		a.check(t, counts[i], seeds*keys)
	}
}

// sideBySide runs a model through several collectors in one chain.
func sideBySide(t *testing.T, list []accuracy, m *scans, seed uint64) []report.Line {
	t.Helper()
	configs := make([]bytecode.Config, len(list))
	for i, a := range list {
		configs[i] = bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"queries": a.query(), "budget": a.budget, "coupons": a.word,
			"entries": "65536", "top": "100000"}}
	}
	lines, err := bytecode.ReplayWith(context.Background(), traffic.Frames(&scans{keys: m.keys, each: m.each, gap: m.gap}), session.Config{Seed: seed}, configs)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// countsAt is the number of destinations of a key at its alert: packet number n is the key's n/keys+1st.
func countsAt(t *testing.T, l *report.Line, m *scans) (counts []float64) {
	t.Helper()
	for _, table := range l.Report.Tables {
		for c, col := range table.Columns {
			for _, row := range table.Rows {
				if table.Name == "alerts" && col.Name == "time" {
					counts = append(counts, float64((row[c].(int64)-traffic.Start)/m.gap/int64(m.keys)+1))
				}
			}
		}
	}
	return counts
}

func (a accuracy) check(t *testing.T, counts []float64, keys int) {
	t.Helper()
	queries, err := compile.ParseQueries(a.query())
	if err != nil {
		t.Fatal(err)
	}
	var budget, word float64
	if n, _ := fmt.Sscanf(a.budget+" "+a.word, "1/%g %g", &budget, &word); n != 2 {
		budget = 1
	}
	fmt.Sscan(a.word, &word)
	program, err := compile.Compile(queries, compile.CompileOptions{Budget: 1 / budget, Word: int(word), Ties: true})
	if err != nil {
		t.Fatal(err)
	}
	collector, threshold := program.Queries[0].Collector, float64(a.threshold)
	off, mean := 0.0, 0.0
	for _, n := range counts {
		off += math.Abs(n-threshold) / threshold / float64(len(counts))
		mean += n / float64(len(counts))
	}
	theory, draws := collector.Error(threshold), collector.Draws()
	t.Logf("T = %d, %+v: %d alerts, mean relative error %.4f (theory %.4f), draws %.1f (CC: %.1f)", a.threshold, collector, len(counts), off, theory, mean, draws)
	if math.Abs(off-theory) > 0.005 || off > a.bound+0.005 || theory > a.bound {
		t.Errorf("T = %d: mean relative error %.4f, theory %.4f, want within half a point, and at most %.3f", a.threshold, off, theory, a.bound)
	}
	if math.Abs(mean/draws-1) > 0.02 {
		t.Errorf("T = %d: %.1f draws, CC(m, p, n) is %.1f, want within 2 %%", a.threshold, mean, draws)
	}
	if len(counts) < keys*98/100 || len(counts) > keys { // 2,000 keys in 65,536 places: 1.5 % find theirs taken
		t.Errorf("T = %d: %d alerts of %d keys", a.threshold, len(counts), keys)
	}
}

// Every alert that ordinary traffic raises is confirmed by the exact count: it has what 9,999 of 10,000 such alerts have at
// least. The hashes are always the same here: among some hundred keys that are near a threshold, and as many sets of hashes,
// one will be the ten thousandth.
func TestAlertsAreConfirmed(t *testing.T) {
	testutil.NeedRoot(t)
	for _, set := range []string{"six", "many"} {
		src := openTrace(t, "composite_120s.pcap")
		for _, l := range replayed(t, src, session.Config{Seed: 1}, map[string]string{"set": set}) {
			if n := number(t, l.Truth, "unconfirmed"); n > 0 {
				t.Errorf("set %s: %g of %g alerts are not confirmed: %v", set, n, number(t, l.Truth, "alerts_judged"), l.Report.Tables[0].Rows)
			}
			if n := number(t, l.Truth, "alerts_judged"); n < 1 {
				t.Errorf("set %s: no alert to confirm, but two hosts scan ports", set)
			}
		}
	}
}
