package finding

import "github.com/xdpmon/xdpmon/userspace/report"

// Output is the finding as sinks show it.
func (f Finding) Output() report.Finding {
	return report.Finding{Key: f.ID, Severity: f.Severity.String(), Text: f.Sentence(), Ended: f.State == Ends, Object: f}
}
