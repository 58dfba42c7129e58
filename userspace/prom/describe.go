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
