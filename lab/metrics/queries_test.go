package metrics

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// question is an expression, and where it stands.
type question struct{ where, expr string }

var fenced = regexp.MustCompile("(?s)```promql\n(.*?)```")

// ofDocs are the queries of documents: one a line, in blocks that are marked as promql.
func ofDocs(t *testing.T) (list []question) {
	t.Helper()
	root := testutil.Root(t)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				if expr, _, _ := strings.Cut(line, " #"); strings.TrimSpace(expr) != "" && !strings.HasPrefix(line, "#") {
					list = append(list, question{filepath.Base(page), strings.TrimSpace(expr)})
				}
			}
		}
	}
	return list
}

// variables are what Grafana puts in the place of its own.
var variables = strings.NewReplacer("$host", ".*", "$instance_name", ".*", "$__rate_interval", "5m", "$__range", "10m")

// ofDashboards are the queries of all panels.
func ofDashboards(t *testing.T) (list []question) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testutil.Root(t), "deploy/grafana/xdpmon-*.json"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title  string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range board.Panels {
			if len(p.Targets) == 0 {
				t.Errorf("%s: %q asks nothing", board.Title, p.Title)
			}
			for _, target := range p.Targets {
				list = append(list, question{board.Title + ", " + p.Title, variables.Replace(target.Expr)})
			}
		}
	}
	return list
}

// answered reports whether a query has numbers: no empty answer, and not NaN alone (a quantile of nothing, a share of nothing).
func answered(v promql.Vector) bool {
	for _, s := range v {
		if s.H != nil || !math.IsNaN(s.F) {
			return true
		}
	}
	return false
}

// everyQuestion has an answer at one of the times.
func (w *world) everyQuestion(t *testing.T, list []question, at ...time.Time) {
	t.Helper()
	for _, q := range list {
		found := false
		for _, when := range at {
			found = found || answered(w.ask(t, q.expr, when))
		}
		if !found {
			t.Errorf("%s: nothing answers %s", q.where, q.expr)
		}
	}
}

// TestReplayed asks everything of a host whose traffic is known.
func TestReplayed(t *testing.T) {
	w := newWorld(t)
	e := w.host(t)
	live := w.processes(t)
	t.Run("docs", func(t *testing.T) {
		list := ofDocs(t)
		if len(list) < 8 {
			t.Errorf("only %d queries in documents", len(list))
		}
		w.everyQuestion(t, list, w.end, live)
	})
	t.Run("dashboards", func(t *testing.T) { w.everyQuestion(t, ofDashboards(t), w.end, live) })
	t.Run("identity", w.detailed(t, e).identity)
	t.Run("truth", w.truth)
	t.Run("rules", func(t *testing.T) { w.rules(t, live) })
}

// identity: what an interface has in one metric it has in all of them.
func (w *world) identity(t *testing.T) {
	lacking := w.ask(t, `count by (__name__) ({__name__=~"xdpmon_.*",__name__!~"xdpmon_(info|findings|finding|metrics_.*|interface_attached|agent_.*|coordinator_.*)",instance="host1:9400",instance_name=""})`, w.end)
	for _, s := range lacking {
		t.Errorf("%s has series without instance_name", s.Metric.Get("__name__"))
	}
	for _, name := range []string{"interface", "guest", "domain"} {
		for _, s := range w.ask(t, `count by (__name__) ({__name__=~"xdpmon_.*",instance="host1:9400",instance_name="tenants",`+name+`=""})`, w.end) {
			t.Errorf("%s has series of a guest's interface without %s", s.Metric.Get("__name__"), name)
		}
	}
	for _, s := range w.ask(t, `count by (exported_instance, exported_job) ({__name__=~"xdpmon_.*",instance="host1:9400",exported_instance=~".+"}) or count by (exported_job) ({exported_job=~".+"})`, w.end) {
		t.Errorf("Prometheus renames a label: %v", s.Metric)
	}
	if n := len(w.ask(t, `count by (__name__) ({__name__=~"xdpmon_.*",instance="host1:9400"})`, w.end)); n < 200 {
		t.Errorf("only %d metrics are checked", n)
	}
}

// truth: what is answered is what was sent, as tshark has it (shared/traces/README.md).
func (w *world) truth(t *testing.T) {
	testutil.Traces(t)
	for _, q := range []struct {
		expr      string
		low, high float64
	}{
		{`xdpmon_seen_packets_total{instance_name="uplink"}`, 117_703, 117_703},
		{`xdpmon_seen_packets_total{guest="db-1"}`, 3_138, 3_138},
		{`xdpmon_fridge_delay_seconds_count{instance_name="uplink"}`, 1_700, 1_900},                                      // 1,792
		{`histogram_quantile(0.5, sum by (le) (xdpmon_fridge_delay_seconds_bucket{instance_name="uplink"}))`, .01, .025}, // .01999
		{`histogram_quantile(0.95, sum by (le) (xdpmon_fridge_delay_seconds_bucket{instance_name="uplink"}))`, .25, .5},  // .3132
		{`histogram_quantile(0.5, sum(xdpmon_fridge_delay_seconds{instance_name="uplink"}))`, .0182, .0220},              // 9 % wide
		{`histogram_quantile(0.95, sum(xdpmon_fridge_delay_seconds{instance_name="uplink"}))`, .27, .345},                // an eighth: few samples lie between .27 and .32
		{`histogram_quantile(0.5, sum(xdpmon_fridge_delay_seconds{guest="db-1"}))`, .0160, .0200},                        // .01807
	} {
		v := w.ask(t, q.expr, w.end)
		if len(v) != 1 || v[0].F < q.low || v[0].F > q.high {
			t.Errorf("%s is %v, expected %v to %v", q.expr, v, q.low, q.high)
		}
	}
}
