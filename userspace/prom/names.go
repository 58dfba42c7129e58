package prom

import (
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

const prefix = "xdpmon_"

// reserved are suffixes that Prometheus gives a meaning, with what stands for them here.
var reserved = []struct{ suffix, instead string }{
	{"_total", ""}, {"_count", "_number"}, {"_sum", "_amount"}, {"_bucket", "_slot"},
}

// metricName makes a metric's name of a JSON name: delay_ns is xdpmon_delay_seconds. The unit comes at the end, as
// Prometheus wants it; suffixes that mean something else there (_count, _sum, _bucket, _total) are replaced.
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
		suffix = "" // what is counted stands once, wherever it is
	}
	return prefix + name + suffix
}

// identifier keeps what a metric or label name may contain.
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

// abbreviation is how JSON names end that carry the unit.
func abbreviation(unit report.Unit) string {
	switch unit {
	case report.Nanosecond:
		return "_ns"
	case report.Bytes:
		return "_bytes"
	}
	return ""
}

// unitName is the base unit as the end of a metric's name.
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

// Labels of the identity. Prometheus renames a label instance to exported_instance, since the target has one of that name.
const (
	instanceLabel  = "instance_name"
	interfaceLabel = "interface"
	vantageLabel   = "vantage"
	guestLabel     = "guest"
)

// identityLabels are the same for every series of an instance; a label of nothing is left out, which is the same to Prometheus.
func identityLabels(i report.Identity) []label {
	all := []label{{instanceLabel, i.Instance}, {interfaceLabel, i.Interface()}, {vantageLabel, i.Vantage}}
	for _, l := range GuestLabels(i.Guest) {
		all = append(all, label{l[0], l[1]})
	}
	return slices.DeleteFunc(all, func(l label) bool { return l.value == "" })
}

// GuestLabels are names and values of the labels of a guest: guest, and beside it domain or pod, where it is one.
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

// labelName makes a label of a column; the names that every series may have are not taken twice.
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
