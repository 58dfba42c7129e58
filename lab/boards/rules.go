package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

// ruleFile is Prometheus' form of a file of rules.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Record        string            `yaml:"record,omitempty"`
	Alert         string            `yaml:"alert,omitempty"`
	Expr          string            `yaml:"expr"`
	For           string            `yaml:"for,omitempty"`
	KeepFiringFor string            `yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations,omitempty"`
}

// testFile is promtool's form of unit tests.
type testFile struct {
	RuleFiles          []string   `yaml:"rule_files"`
	EvaluationInterval string     `yaml:"evaluation_interval"`
	Tests              []testCase `yaml:"tests"`
}

type testCase struct {
	Name     string      `yaml:"name"`
	Interval string      `yaml:"interval"`
	Series   []series    `yaml:"input_series"`
	Alerts   []alertTest `yaml:"alert_rule_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime  string     `yaml:"eval_time"`
	Alertname string     `yaml:"alertname"`
	Expected  []expected `yaml:"exp_alerts"`
}

type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// watched is an alert, and series of which it fires, beside ones of which it does not.
type watched struct {
	rule
	metric string
	labels map[string]string // of the series that fires it
	gone   []string          // labels that the expression removes
	fires  string            // values a minute apart
	silent string
	beside string // a further series that the expression needs, with the same labels
	values string
}

func rules(n names) (ruleFile, testFile) {
	all := append(findingAlerts(), processAlerts()...)
	alerts := ruleGroup{Name: "xdpmon-alerts"}
	tests := testFile{RuleFiles: []string{"rules.yaml"}, EvaluationInterval: "1m"}
	for _, w := range all {
		alerts.Rules = append(alerts.Rules, w.rule)
		tests.Tests = append(tests.Tests, w.test(true), w.test(false))
	}
	return ruleFile{[]ruleGroup{{"xdpmon-recorded", recorded(n)}, alerts}}, tests
}

// by are the labels that recorded series keep: an interface, with whom it serves.
const by = "job, instance, instance_name, interface, guest"

func recorded(n names) []rule {
	sum := func(m metric) string { return fmt.Sprintf("sum by (%s) (rate(%s[5m]))", by, m.name) }
	ratio := func(algorithm, part, whole string) string {
		return sum(n.of(algorithm, part)) + " / " + sum(n.of(algorithm, whole))
	}
	quantile := func(q string) string {
		return fmt.Sprintf("histogram_quantile(%s, sum by (%s, le) (rate(%s_bucket[5m])))", q, by, n.of("fridge", "delay_ns").name)
	}
	return []rule{
		{Record: "xdpmon:seen_bits:rate5m", Expr: "8 * sum by (" + by + ") (rate(xdpmon_seen_bytes_total[5m]))"},
		{Record: "xdpmon:seen_packets:rate5m", Expr: "sum by (" + by + ") (rate(xdpmon_seen_packets_total[5m]))"},
		{Record: "xdpmon:parsed:ratio5m", Expr: "sum by (" + by + ") (rate(xdpmon_parsed_packets_total[5m])) / sum by (" + by + ") (rate(xdpmon_seen_packets_total[5m]))"},
		{Record: "xdpmon:lost_events:rate5m", Expr: "sum by (" + by + ", algorithm, kind) (rate(xdpmon_lost_events_total[5m]))"},
		{Record: "xdpmon:findings", Expr: "sum by (job, instance, kind, severity) (xdpmon_finding)"},
		{Record: "xdpmon:delay_seconds:p50_5m", Expr: quantile("0.5")},
		{Record: "xdpmon:delay_seconds:p95_5m", Expr: quantile("0.95")},
		{Record: "xdpmon:retransmitted:ratio5m", Expr: ratio("lean", "retransmitted", "retrans_compared")},
		{Record: "xdpmon:out_of_order:ratio5m", Expr: ratio("reorder", "out_of_order", "watched")},
		{Record: "xdpmon:queue_congested:ratio5m", Expr: ratio("conquest", "congested", "departures")},
		{Record: "xdpmon:slices_dropped:ratio5m", Expr: ratio("ahab", "dropped_bytes", "offered_bytes")},
	}
}

// findingAlerts are one for each kind. A finding has its own test over time, so that an alert waits for nothing.
func findingAlerts() (list []watched) {
	for _, k := range finding.Kinds() {
		f := finding.Finding{Kind: k, Subject: finding.Subject{Type: finding.Host, Name: "{{ $labels.subject }}"}}
		severity := finding.Of(k).String()
		list = append(list, watched{
			rule: rule{Alert: "Xdpmon" + camel(string(k)), Expr: fmt.Sprintf("xdpmon_finding{kind=%q}", k), Labels: map[string]string{"severity": severity}, KeepFiringFor: "2m",
				Annotations: map[string]string{"summary": f.Headline() + ", seen on {{ $labels.interface }} of {{ $labels.instance }}",
					"description": "A finding of xdpmon (" + string(k) + "). What it means and what to look at next: docs/findings.md; the sentence with its numbers: xdpmon history --findings, or the page of {{ $labels.instance }}."}},
			metric: "xdpmon_finding", labels: map[string]string{"job": "xdpmon", "instance": "host1:9400", "kind": string(k), "severity": severity, "subject": "10.0.0.7", "subject_type": "host", "interface": "eth0"},
			fires: "1x10", silent: "_x10"})
	}
	return list
}

// labelled are the labels that every series of a process has.
func labelled(more ...string) map[string]string {
	l := map[string]string{"job": "xdpmon", "instance": "host1:9400"}
	for i := 0; i < len(more); i += 2 {
		l[more[i]] = more[i+1]
	}
	return l
}

// state is an alert of a gauge that stays at a bad value.
func state(name, severity, expr, wait, metric, fires, silent, summary, next string, labels map[string]string, gone ...string) watched {
	return watched{gone: gone, rule: rule{Alert: name, Expr: expr, For: wait, Labels: map[string]string{"severity": severity}, Annotations: map[string]string{"summary": summary, "description": next}},
		metric: metric, labels: labels, fires: fires, silent: silent}
}

// grows is an alert of a counter that should stand still.
func grows(name, severity, metric, summary, next string, labels map[string]string) watched {
	expr := fmt.Sprintf("increase(%s[10m]) > 0", metric)
	if reason := labels["result"]; reason != "" {
		expr = fmt.Sprintf("increase(%s{result=%q}[10m]) > 0", metric, reason)
	}
	return state(name, severity, expr, "", metric, "0+1x20", "7x20", summary, next, labels)
}

func processAlerts() []watched {
	const here = " on {{ $labels.instance }}"
	interfaces := labelled("instance_name", "tenants", "interface", "vnet0", "guest", "web-1")
	stale := state("XdpmonWindowsMissing", "critical", "time() - xdpmon_last_window_timestamp_seconds > 3 * xdpmon_last_window_duration_seconds + 60", "1m", "xdpmon_last_window_timestamp_seconds", "0x20", "0+60x20",
		"No window of {{ $labels.instance_name }}"+here+" has closed for three windows and a minute", "/healthz and the log of the process name the reason.", interfaces)
	stale.beside, stale.values = "xdpmon_last_window_duration_seconds", "10x20"
	return []watched{
		state("XdpmonDown", "critical", `up{job=~"xdpmon.*"} == 0`, "5m", "up", "0x20", "1x20", "{{ $labels.instance }} cannot be scraped", "Is the process running (systemctl status xdpmon), does it listen there, may Prometheus connect?", labelled()),
		state("XdpmonAgentFailing", "critical", "xdpmon_agent_healthy == 0", "2m", "xdpmon_agent_healthy", "0x20", "1x20", "The agent"+here+" measures nothing or keeps nothing", "/healthz names the reasons.", labelled()),
		state("XdpmonInterfaceNotAttached", "warning", "xdpmon_interface_attached == 0", "5m", "xdpmon_interface_attached", "0x20", "1x20", "{{ $labels.interface }}"+here+" is not measured", "/healthz has the reason for each interface; an interface that is removed for good is removed from the configuration.", interfaces),
		state("XdpmonInstanceStale", "warning", "xdpmon_agent_instance_fresh == 0", "2m", "xdpmon_agent_instance_fresh", "0x20", "1x20", "Windows of {{ $labels.instance_name }}"+here+" are late, or it has failed", "/healthz has its error; a machine that is too busy has stretched windows.", labelled("instance_name", "tenants", "interface", "vnet0")),
		stale,
		state("XdpmonInterfacesLeftAlone", "warning", "xdpmon_agent_left_alone_interfaces > 0", "5m", "xdpmon_agent_left_alone_interfaces", "2x20", "0x20", "Interfaces"+here+" are left alone because of a limit", "limits.interfaces, limits.instances or limits.memory of its configuration.", labelled()),
		grows("XdpmonReloadRefused", "warning", "xdpmon_agent_reloads_total", "A configuration was refused"+here, "xdpmon agent --check names line and column; the previous configuration stays active.", labelled("result", "refused")),
		grows("XdpmonOutputFailing", "warning", "xdpmon_agent_failed_events_total", "Windows cannot be written to {{ $labels.reader }}"+here, "Space and permissions of the file; the log has the error.", labelled("reader", "json:/var/log/xdpmon.jsonl")),
		grows("XdpmonOutputSlow", "warning", "xdpmon_agent_missed_events_total", "{{ $labels.reader }}"+here+" is too slow: windows were dropped for it", "The disk of the file, or fewer windows.", labelled("reader", "json:/var/log/xdpmon.jsonl")),
		state("XdpmonBusDisconnected", "warning", "xdpmon_agent_bus_connected == 0", "5m", "xdpmon_agent_bus_connected", "0x20", "1x20", "The agent"+here+" has no coordinator", "Is the coordinator up and reachable, are certificates valid? Windows wait in the agent's buffer.", labelled()),
		grows("XdpmonBusLosesWindows", "critical", "xdpmon_agent_bus_lost_windows_total", "Windows of the agent"+here+" will never reach the coordinator", "bus.buffer of the agent bounds what waits during an interruption.", labelled()),
		state("XdpmonClockOff", "warning", "abs(xdpmon_agent_bus_clock_offset_seconds) > 1", "10m", "xdpmon_agent_bus_clock_offset_seconds", "3x20", "0.01x20", "The clock"+here+" is more than a second off its coordinator's", "chrony or ntpd of both hosts.", labelled()),
		grows("XdpmonStoreFailing", "critical", "xdpmon_agent_store_failed_windows_total", "The store"+here+" does not keep windows", "Space and permissions of its disk; the log has the error.", labelled()),
		state("XdpmonStoreDiskFull", "warning", "xdpmon_agent_store_disk_free_bytes < 268435456", "5m", "xdpmon_agent_store_disk_free_bytes", "1000000x20", "1000000000x20", "Less than 256 MiB are left on the store's disk"+here, "store.max_bytes and store.max_age, or a larger disk.", labelled()),
		state("XdpmonSeriesDropped", "warning", "xdpmon_metrics_dropped_series > 0", "5m", "xdpmon_metrics_dropped_series", "100x20", "0x20", "Series"+here+" are not served, because there are more than the limit", "metrics_limit; fewer instances, native histograms, or no metrics_rows.", labelled()),
		state("XdpmonNoLeader", "critical", "max by (job) (xdpmon_coordinator_leading) == 0", "2m", "xdpmon_coordinator_leading", "0x20", "1x20", "No coordinator puts windows together", "Logs of the coordinators: lost leadership, or no majority of the cluster.", labelled(), "instance"),
		state("XdpmonAgentsSilent", "warning", `xdpmon_coordinator_agents{state="silent"} > 0`, "5m", "xdpmon_coordinator_agents", "2x20", "0x20", "Agents are not heard by the coordinator"+here, "The page of the coordinator names them.", labelled("state", "silent")),
		grows("XdpmonBatchesLost", "warning", "xdpmon_coordinator_lost_batches_total", "Batches of windows were given up as lost by the coordinator"+here, "The network between agents and coordinator; restarts of agents.", labelled()),
		grows("XdpmonMessagesDropped", "warning", "xdpmon_coordinator_dropped_messages_total", "The coordinator"+here+" is too slow for its agents", "CPU of the coordinator; longer windows, or more coordinators.", labelled()),
		grows("XdpmonMessagesRefused", "warning", "xdpmon_coordinator_refused_messages_total", "The coordinator"+here+" refuses messages: {{ $labels.reason }}", "An agent of another version or configuration; its log and the coordinator's name it.", labelled("reason", "malformed")),
		grows("XdpmonForeignName", "critical", "xdpmon_coordinator_refused_subjects_total", "An agent speaks in another one's name to the coordinator"+here, "The log of the coordinator names the certificate; revoke it (xdpmon-coordinator keys revoke).", labelled()),
	}
}

func camel(kind string) string {
	var b strings.Builder
	for _, part := range strings.Split(kind, "-") {
		switch part {
		case "dns", "ntp":
			b.WriteString(strings.ToUpper(part))
		default:
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// test is a unit test of promtool's: at 18 minutes the alert fires, or does not.
func (w watched) test(fires bool) testCase {
	c := testCase{Name: w.Alert + " is silent", Interval: "1m", Series: []series{{w.metric + selector(w.labels), w.silent}}, Alerts: []alertTest{{EvalTime: "18m", Alertname: w.Alert, Expected: []expected{}}}}
	if w.beside != "" {
		c.Series = append(c.Series, series{w.beside + selector(w.labels), w.values})
	}
	if !fires {
		return c
	}
	c.Name, c.Series[0].Values = w.Alert+" fires", w.fires
	e := expected{Labels: map[string]string{}, Annotations: map[string]string{}}
	for name, value := range w.labels {
		if !slices.Contains(w.gone, name) {
			e.Labels[name] = value
		}
	}
	for name, value := range w.Labels {
		e.Labels[name] = value
	}
	for name, text := range w.Annotations {
		e.Annotations[name] = w.expand(text, e.Labels)
	}
	c.Alerts[0].Expected = []expected{e}
	if w.KeepFiringFor != "" {
		c.Alerts[0].EvalTime = "8m" // while the finding is open
	}
	return c
}

// expand is what Prometheus makes of an annotation, as far as rules here use it.
func (w watched) expand(text string, labels map[string]string) string {
	for name, value := range labels {
		text = strings.ReplaceAll(text, "{{ $labels."+name+" }}", value)
	}
	return text
}

func selector(labels map[string]string) string {
	var parts []string
	for name, value := range labels {
		parts = append(parts, fmt.Sprintf("%s=%q", name, value))
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(a, b) })
	return "{" + strings.Join(parts, ",") + "}"
}
