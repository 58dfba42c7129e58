package prom

import "github.com/xdpmon/xdpmon/userspace/report"

// Metric is the name under which a number of an algorithm's report is served; "" for what is no metric.
func Metric(algorithm string, v report.Value) string {
	if v.Kind == report.Info {
		return ""
	}
	name := metricName(identifier(algorithm)+"_"+v.Name, v.Unit)
	if v.Kind == report.Counter {
		name += "_total"
	}
	return name
}

// Detail reports whether a number is served only where details are asked for: how the measuring of a window went (sizes, settings, quotients of counters), not
// what was measured. What is counted is served always: a rate has to begin at the start.
func Detail(v report.Value) bool {
	return v.Kind == report.Gauge && !v.Answer
}
