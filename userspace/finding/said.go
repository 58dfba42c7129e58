package finding

import "github.com/xdpmon/xdpmon/userspace/report"

// Said is the finding as sinks show it.
func (f Finding) Said() report.Said {
	return report.Said{Key: f.ID, Severity: f.Severity.String(), Text: f.Sentence(), Ended: f.State == Ends, Object: f}
}
