package precision

import "github.com/xdpmon/xdpmon/userspace/report"

// Value of a report, by name.
func Value(l report.Line, name string) float64 {
	for _, v := range l.Report.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	return 0
}
