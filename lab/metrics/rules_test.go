package metrics

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/finding"
)

func ruleFile(t *testing.T) string {
	return filepath.Join(testutil.Root(t), "deploy/prometheus/rules.yaml")
}

// evaluate lets all rules run over a range, as Prometheus would, and returns the alerts that fired.
func (w *world) evaluate(t *testing.T, from, to time.Time) (groups map[string]*rules.Group, fired map[string]string) {
	t.Helper()
	ctx := context.Background()
	groups, err := w.Rules(ctx, ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	fired = map[string]string{}
	for at := from; !at.After(to); at = at.Add(15 * time.Second) {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			groups[name].Eval(ctx, at)
			for _, r := range groups[name].AlertingRules() {
				if r.State() == rules.StateFiring {
					fired[r.Name()] = r.ActiveAlerts()[0].Labels.String()
				}
			}
		}
	}
	for _, g := range groups {
		for _, r := range g.Rules() {
			if r.LastError() != nil {
				t.Errorf("rule %s: %v", r.Name(), r.LastError())
			}
		}
	}
	return groups, fired
}

// rules: every recorded series has data, and what is found in the captures is alerted, and nothing else.
func (w *world) rules(t *testing.T, live time.Time) {
	groups, fired := w.evaluate(t, w.from, w.end)
	for _, r := range groups["xdpmon-recorded"].Rules() {
		if v := w.ask(t, fmt.Sprintf("last_over_time(%s[10m])", r.Name()), w.end); !answered(v) {
			t.Errorf("%s records nothing", r.Name())
		}
	}
	if hasTraces(t) {
		for _, name := range []string{"XdpmonScan", "XdpmonUnanswered"} {
			if fired[name] == "" {
				t.Errorf("%s is silent on a capture that has it; fired: %v", name, fired)
			}
		}
	}
	for name, labels := range fired {
		if !strings.HasPrefix(name, "XdpmonScan") && name != "XdpmonUnanswered" {
			t.Errorf("%s fired while the captures were replayed: %s", name, labels)
		}
	}
	for _, name := range metricsOf(t, w, groups) {
		if !answered(w.ask(t, fmt.Sprintf("count_over_time(%s[20m])", name), live)) {
			t.Errorf("rules ask for %s, which nobody serves", name)
		}
	}
}

// metricsOf are the metrics that alerts ask for.
func metricsOf(t *testing.T, w *world, groups map[string]*rules.Group) (names []string) {
	t.Helper()
	for _, r := range groups["xdpmon-alerts"].AlertingRules() {
		expr := r.Query()
		names = append(names, selectorsOf(expr)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestQuiet: nothing fires of a host in which nothing is wrong.
func TestQuiet(t *testing.T) {
	w := newWorld(t)
	w.replay(t, "host2:9400",
		replayed{identity: uplink, algorithms: measuring, set: settings, window: 5 * time.Second, source: quiet(t, 3, traffic.Handshake)},
		replayed{identity: shaped, algorithms: acting, set: settings, window: 5 * time.Second, source: quiet(t, 4, traffic.Data)})
	_, fired := w.evaluate(t, w.from, w.end)
	if len(fired) > 0 {
		t.Errorf("these fired: %v", fired)
	}
}

// TestEveryFinding: each kind that is open is served, and fires the alert of its name.
func TestEveryFinding(t *testing.T) {
	w := newWorld(t)
	e := newExporter(t, w.Server, "host3:9400")
	var open []finding.Finding
	for _, k := range finding.Kinds() {
		open = append(open, finding.Finding{Kind: k, Severity: finding.Of(k), Subject: finding.Subject{Type: finding.Host, Name: "10.0.0.7"}, Interface: "eth0"})
	}
	e.store.Findings(open)
	for n := range 5 {
		if err := e.scrape(w.from.Add(time.Duration(n) * 15 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	_, fired := w.evaluate(t, w.from, w.from.Add(time.Minute))
	if len(fired) != len(finding.Kinds()) {
		t.Errorf("%d of %d kinds fired: %v", len(fired), len(finding.Kinds()), fired)
	}
}

// unitTests is the part of promtool's format that deploy/prometheus/tests.yaml uses.
type unitTests struct {
	Tests []struct {
		Name   string
		Series []struct{ Series, Values string } `yaml:"input_series"`
		Alerts []struct {
			EvalTime  string `yaml:"eval_time"`
			Alertname string
			Expected  []struct {
				Labels      map[string]string `yaml:"exp_labels"`
				Annotations map[string]string `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// TestUnits does with the rules' unit tests what `promtool test rules` does.
func TestUnits(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testutil.Root(t), "deploy/prometheus/tests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all unitTests
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Tests) < 2*len(finding.Kinds()) {
		t.Fatalf("only %d tests", len(all.Tests))
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range all.Tests {
		for _, a := range test.Alerts {
			fires[a.Alertname] = fires[a.Alertname] || len(a.Expected) > 0
			silent[a.Alertname] = silent[a.Alertname] || len(a.Expected) == 0
		}
		load := "load 1m\n"
		for _, s := range test.Series {
			load += "  " + s.Series + " " + s.Values + "\n"
		}
		loader, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
		if err != nil {
			t.Fatalf("%s: %v", test.Name, err)
		}
		at, err := time.ParseDuration(test.Alerts[0].EvalTime)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, e := range test.Alerts[0].Expected {
			want = append(want, fmt.Sprint(e.Labels, e.Annotations))
		}
		if got := alertsAt(t, loader, test.Alerts[0].Alertname, at); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", test.Name, got, want)
		}
		if err := loader.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range alertNames(t) {
		if !fires[name] || !silent[name] {
			t.Errorf("%s has no unit test in which it fires (%v) and one in which it does not (%v)", name, fires[name], silent[name])
		}
	}
}

// alertNames are all alerts of the rules.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(ruleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				names = append(names, r.Alert)
			}
		}
	}
	if len(names) <= len(finding.Kinds()) {
		t.Fatalf("only %d alerts", len(names))
	}
	return names
}

func alertsAt(t *testing.T, loader *promqltest.LazyLoader, name string, at time.Duration) (list []string) {
	t.Helper()
	ctx := context.Background()
	m := rules.NewManager(&rules.ManagerOptions{QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), AppendableV2: loader.Storage(), Queryable: loader.Storage(), Context: ctx,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Registerer: client.NewRegistry()})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, ruleFile(t))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var last error
	for now := time.Duration(0); now <= at; now += time.Minute {
		when := time.Unix(0, 0).UTC().Add(now)
		loader.WithSamplesTill(when, func(err error) { last = err })
		if last != nil {
			t.Fatal(last)
		}
		for _, g := range groups {
			if g.Name() == "xdpmon-alerts" {
				g.Eval(ctx, when)
			}
		}
	}
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			if r.Name() != name {
				continue
			}
			for _, a := range r.ActiveAlerts() {
				if a.State == rules.StateFiring {
					l := a.Labels.Map()
					delete(l, labels.AlertName)
					list = append(list, fmt.Sprint(l, a.Annotations.Map()))
				}
			}
		}
	}
	return list
}
