package names

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	lint "github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

var update = flag.Bool("update", false, "rewrite the names in docs/output.md")

// variants are the settings, in addition to the defaults, that change the reported names.
var variants = map[string][]map[string]string{
	"fridge": {{"group": "src/24"}, {"sla": "50ms@95%"}, {"fridges": "256@1,256@1/8"}, {"match": "tcp-duration"}, {"legs": "true"}, {"correction": "table"}, {"samples": "4"}},
	"lean":   {{"mean": "true", "stat": "latency"}, {"latency": "signed"}, {"loss": "walk"}, {"ooo": "misra-gries"}, {"retrans": "distinct"}, {"keys": "bits", "stat": "loss"}, {"count": "bytes"}, {"by": "rate"}},
	"hhh":    {{"method": "stacking"}, {"dimension": "both"}, {"count": "bytes"}},
	"carpe":  {{"key": "srcdst"}, {"key": "src"}, {"key": "dst"}, {"key": "service"}, {"key": "sport"}, {"key": "dport"}, {"key": "proto"}, {"count": "bytes", "s": "1/400"}},
	"precision": {{"key": "srcdst"}, {"key": "src"}, {"key": "dst"}, {"key": "service"}, {"key": "sport"}, {"key": "dport"}, {"key": "proto"},
		{"count": "bytes"}},
	"reorder":  {{"method": "precision"}, {"method": "hybrid"}, {"report": "all"}},
	"beaucoup": {{"export": "true", "queries": "scan: count distinct src by dst > 20 in 10s"}},
}

// reported is everything that is reported under a name, in the order of its first appearance.
type reported struct {
	rows []string
	seen map[string]bool
	mute []string // names without a description
}

func (r *reported) add(path string, unit report.Unit, metric, help string) {
	if r.seen[path] {
		return
	}
	r.seen[path] = true
	if strings.TrimSpace(help) == "" {
		r.mute = append(r.mute, path)
	}
	r.rows = append(r.rows, fmt.Sprintf("| `%s` | %s | %s | %s |", path, unit, metric, strings.ReplaceAll(help, "|", "\\|")))
}

// metricOf is the metric's cell of the table; (details): with --metrics-details only.
func metricOf(algorithm string, v report.Value) string {
	name := prom.Metric(algorithm, v)
	if name == "" {
		return ""
	}
	if prom.Detail(v) {
		return "`" + name + "` (details)"
	}
	return "`" + name + "`"
}

func (r *reported) line(l report.Line) {
	for _, v := range l.Report.Values {
		r.add(v.Name, v.Unit, metricOf(l.Algorithm, v), v.Help)
	}
	for _, d := range l.Report.Distributions {
		r.add(d.Name, d.Unit, metricOf(l.Algorithm, report.Value{Name: d.Name, Unit: d.Unit, Answer: true}), d.Help+" (distribution)")
	}
	for _, t := range l.Report.Tables {
		r.add(t.Name+"[]", report.None, "", t.Help)
		for _, c := range t.Columns {
			metric := ""
			if c.Metric && !c.Label {
				kind := report.Gauge
				if c.Counter {
					kind = report.Counter
				}
				metric = metricOf(l.Algorithm, report.Value{Name: t.Name + "_" + c.Name, Unit: c.Unit, Kind: kind, Answer: true})
			}
			r.add(t.Name+"[]."+c.Name, c.Unit, metric, c.Help)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(l.Lost)) {
		help := ""
		if d, err := algo.Lookup(l.Algorithm); err == nil {
			help = d.Lost[kind]
		}
		r.add("lost."+kind, report.None, "", help)
	}
}

// TestNames: the reports of all algorithms on real packets make one scrape that Prometheus accepts and its linter does not
// criticise; and docs/output.md lists every name.
func TestNames(t *testing.T) {
	testutil.NeedRoot(t)
	store := prom.NewStore(time.Now)
	store.Rows()
	capture := string(builder.Handshakes(t, 300))
	var doc bytes.Buffer
	usual := map[string]report.Line{} // windows with the most series, by the defaults
	for _, d := range algo.All() {
		if strings.HasPrefix(d.Name, "test-") {
			continue
		}
		names, most := &reported{seen: map[string]bool{}}, cardinality{}
		for _, set := range append([]map[string]string{nil}, variants[d.Name]...) {
			replayNames(t, d, set, capture, func(l report.Line) {
				store.Add(l)
				names.line(l)
				if c := cardinalityOf(l); set == nil && c.series >= most.series {
					most, usual[d.Name] = c, l
				}
			})
		}
		if len(names.mute) > 0 {
			t.Errorf("%s does not describe these: %v", d.Name, names.mute)
		}
		fmt.Fprintf(&doc, "\n### `%s`\n\n%s\n\n| name | unit | metric | meaning |\n|---|---|---|---|\n%s\n", d.Name, most, strings.Join(names.rows, "\n"))
	}
	problems, err := lint.CollectAndLint(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	compareNames(t, doc.String())
	host(t, usual)
}

func replayNames(t testing.TB, d *algo.Descriptor, set map[string]string, capture string, emit func(report.Line)) {
	t.Helper()
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Window: 100 * time.Millisecond, Seed: 1,
		Emit: func(l report.Line) error { emit(l); return nil }, Notice: t.Logf}
	if err := session.Replay(context.Background(), cfg, []string{"-"}, io.NopCloser(strings.NewReader(capture)), nil); err != nil {
		t.Fatalf("%s with %v: %v", d.Name, set, err)
	}
}

const (
	namesBegin = "<!-- names: written by go test ./tests/names -update -->\n"
	namesEnd   = "\n<!-- end of names -->\n"
)

func compareNames(t *testing.T, names string) {
	t.Helper()
	path := filepath.Join(testutil.Root(t), "docs", "output.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), namesBegin)
	have, tail, ends := strings.Cut(rest, namesEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the names", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+namesBegin+names+namesEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, now := strings.Split(have, "\n"), strings.Split(names, "\n")
	for _, line := range now {
		if !slices.Contains(old, line) {
			t.Errorf("docs/output.md lacks (go test ./tests/names -update): %s", line)
		}
	}
	if have != names && !t.Failed() {
		t.Error("docs/output.md has names that are not there any more, or another order: go test ./tests/names -update")
	}
}

func TestMain(m *testing.M) { testutil.Main(m) }
