package prom

import "github.com/xdpmon/xdpmon/userspace/report"

// Metric is the metric name of a reported value; "" if it is not served.
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

// Detail reports whether a value is served only with details: it describes the measurement of a window (sizes, settings, ratios of counters), not the traffic.
// Counters are always served, since a rate needs the series from the start.
func Detail(v report.Value) bool {
	return v.Kind == report.Gauge && !v.Answer
}
