package ahab

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	fullUse = .95 // share of a slice's capacity that is used
	jain    = .8  // of users above the limit: below it shares are not fair
	// mostAbove is by how much of the limit rates may read too high on average: above it Jain's index is no measure of what passed.
	mostAbove = .1
)

// findings are which slices are full or shared unfairly.
func findings(l report.Line) (seen finding.Seen) {
	users := map[string][]finding.Blame{}
	finding.Rows(l.Report, "users", func(r finding.Row) {
		users[r.Text("slice")] = append(users[r.Text("slice")], finding.Blame{Source: r.Text("user"), Flow: r.Text("user"), Part: r.Num("rate")})
	})
	limited := false
	finding.Rows(l.Report, "slices", func(r finding.Row) {
		capacity := r.Num("capacity")
		if !(capacity > 0) {
			return
		}
		limited = true
		name := r.Text("slice")
		subject := finding.Subject{Type: finding.Slice, Name: name + " on " + l.Place()}
		use := r.Num("demand") / capacity
		m := finding.New(l, finding.SliceFull, subject, finding.Estimate{Value: use, Low: use, High: use, Unit: report.Ratio}, "demand over capacity", "ahab.slices.demand", "ahab.slices.capacity")
		m.Bound, m.Blames = fullUse, users[name]
		seen.Measures = append(seen.Measures, m)
		fair, err := r.Num("fairness"), r.Num("fairness_error")
		if math.IsNaN(fair) || math.IsNaN(err) {
			return
		}
		f := finding.New(l, finding.SliceUnfair, subject, finding.Estimate{Value: fair, Low: fair - 1.96*err, High: min(1, fair+1.96*err), Unit: report.Ratio}, "Jain's index of the users' shares",
			"ahab.slices.fairness", "ahab.users")
		f.Lower, f.Bound, f.Blames = true, jain, users[name]
		if above := finding.Num(l.Report, "rate_error") / r.Num("limit"); above > mostAbove {
			f.Weak = "users' rates read too high by more than a tenth of the limit"
			seen.Unable = append(seen.Unable, "whether users of "+name+" on "+l.Place()+" get fair shares: their rates read too high by more than a tenth of the limit, by what others put into the same cells (remedy: raise ahab.columns)")
		} else if above > 0 {
			f.Value.Low -= above // who reads too high is cut off too early, and seems to get as much as the others
		}
		seen.Measures = append(seen.Measures, f)
	})
	if !limited {
		seen.Unable = append(seen.Unable, "ahab on "+l.Place()+" knows no capacity: it cannot tell whether a slice is full (ahab.capacity)")
	}
	return seen
}
