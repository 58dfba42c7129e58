package prom

import (
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

const prefix = "xdpmon_"

// reserved are suffixes with a meaning in Prometheus, and their replacements.
var reserved = []struct{ suffix, instead string }{
	{"_total", ""}, {"_count", "_number"}, {"_sum", "_amount"}, {"_bucket", "_slot"},
}

// metricName returns the metric name of a JSON name: delay_ns is xdpmon_delay_seconds. The unit is last, as Prometheus
// requires; reserved suffixes (_count, _sum, _bucket, _total) are replaced.
func metricName(name string, unit report.Unit) string {
	name = strings.TrimSuffix(identifier(name), abbreviation(unit))
	for _, r := range reserved {
		if stem, ok := strings.CutSuffix(name, r.suffix); ok && unit.Counted() != "" {
			name = stem
		} else if ok {
			name = stem + r.instead
		}
	}
	suffix := unitName(unit)
	if strings.HasSuffix(name, suffix) || unit.Counted() != "" && strings.Contains("_"+name+"_", suffix+"_") {
		suffix = "" // the name of what is counted appears once, at any position
	}
	return prefix + name + suffix
}

// identifier replaces characters that metric and label names must not contain.
func identifier(name string) string {
	var b strings.Builder
	for i, r := range strings.ToLower(name) {
		letter := r >= 'a' && r <= 'z' || r == '_'
		digit := r >= '0' && r <= '9'
		switch {
		case letter, digit && i > 0:
			b.WriteRune(r)
		case digit:
			b.WriteString("_" + string(r))
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// abbreviation is the suffix of JSON names with the unit.
func abbreviation(unit report.Unit) string {
	switch unit {
	case report.Nanosecond:
		return "_ns"
	case report.Bytes:
		return "_bytes"
	}
	return ""
}

// unitName is the base unit as the suffix of a metric's name.
func unitName(unit report.Unit) string {
	switch unit {
	case report.Nanosecond:
		return "_seconds"
	case report.Bytes:
		return "_bytes"
	case report.Ratio:
		return "_ratio"
	case report.PerSecond:
		return "_per_second"
	case report.BitRate:
		return "_bytes_per_second"
	}
	if counted := unit.Counted(); counted != "" {
		return "_" + counted
	}
	return ""
}

// base converts a value to its base unit.
func base(f float64, unit report.Unit) float64 {
	switch unit {
	case report.Nanosecond:
		return f / 1e9
	case report.BitRate:
		return f / 8
	}
	return f
}

// Labels of the identity. Prometheus would rename a label instance to exported_instance, since the scrape target has one of that name.
const (
	instanceLabel  = "instance_name"
	interfaceLabel = "interface"
	vantageLabel   = "vantage"
	guestLabel     = "guest"
)

// identityLabels are those of every series of an instance; empty ones are left out, which is equivalent in Prometheus.
func identityLabels(i report.Identity) []label {
	all := []label{{instanceLabel, i.Instance}, {interfaceLabel, i.Interface()}, {vantageLabel, i.Vantage}}
	for _, l := range GuestLabels(i.Guest) {
		all = append(all, label{l[0], l[1]})
	}
	return slices.DeleteFunc(all, func(l label) bool { return l.value == "" })
}

// GuestLabels are names and values of the labels of a guest: guest, and domain or pod, if known.
func GuestLabels(g report.Guest) (labels [][2]string) {
	if g.Name == "" {
		return nil
	}
	labels = [][2]string{{guestLabel, g.Name}}
	if g.Kind == known.GuestDomain || g.Kind == known.GuestPod {
		labels = append(labels, [2]string{g.Kind, g.Name})
	}
	return labels
}

// labelName is the label name of a column; names of identity labels are avoided.
func labelName(column string) string {
	switch name := identifier(column); name {
	case "algorithm", "instance", instanceLabel, interfaceLabel, vantageLabel, guestLabel, known.GuestDomain, known.GuestPod, "le", "quantile":
		return "row_" + name
	default:
		return strings.TrimLeft(name, "_")
	}
}

func helpOr(help, other string) string {
	if help != "" {
		return help
	}
	return other
}
