package session

import (
	"reflect"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// rest is a window without packets. If the next one has none either and the same was read, its report is the same, and so is its JSON apart from the times:
// 200 idle interfaces cost little more than reading them.
type rest struct {
	digest uint64 // of the snapshot
	equal  bool   // ... and of that of the window before
	length int64  // of the window
	result algo.Result
	line   report.Line
}

// sameLength is the relative difference in length of windows that have the same report: intervals of rates depend on it.
const sameLength = 1e-3

// report returns a snapshot's report: that of the window before, if nothing but times differs. nil is any other window.
func (x *rest) report(c algo.Config, s *snapshot.Snapshot, before *rest) (result algo.Result, err error) {
	if x == nil {
		return c.Report(s)
	}
	x.digest, x.length = s.Digest(), s.Window.End-s.Window.Start
	if before != nil && before.digest == x.digest && near(before.length, x.length) && !rows(before.result.Body) {
		x.length, x.result, x.equal = before.length, before.result, true
		return x.result, nil
	}
	x.result, err = c.Report(s)
	b := &x.result.Body // several windows have it: whoever appends to one of its lists gets one of his own
	b.Values, b.Distributions, b.Tables, b.Notes = slices.Clip(b.Values), slices.Clip(b.Distributions), slices.Clip(b.Tables), slices.Clip(b.Notes)
	return x.result, err
}

// unread reports whether an idle window has the report of the one before, which had that of its predecessor, without being read: the registers hold only
// zeros, so that none of them changes its meaning with time, and neither a packet nor the algorithm's controller has changed anything.
func (r *runner) unread(m *member, w report.Window, bank int, before *rest) bool {
	if m.rest == nil || before == nil || !before.equal || m.ticked || m.messenger != nil || r.cfg.Epoch != nil || !near(before.length, w.End-w.Start) {
		return false
	}
	if (r.seen > 0 || !r.fresh) && !m.set.AtRest(bank) {
		return false
	}
	m.rest.digest, m.rest.length, m.rest.result, m.rest.equal = before.digest, before.length, before.result, true
	return true
}

func near(a, b int64) bool { return float64(max(a, b)-min(a, b)) <= sameLength*float64(max(a, b)) }

// rows reports whether a report has rows other than of settings: they may have times, and names that are found later.
func rows(b report.Body) bool {
	return slices.ContainsFunc(b.Tables, func(t report.Table) bool { return !t.Settings && len(t.Rows) > 0 })
}

// encode lets the line share its encoding with that of the window before, if they have the same content.
func (x *rest) encode(l *report.Line, before *rest) {
	if x == nil {
		return
	}
	if x.line = *l; before != nil && before.line.Encoding.Fits(*l) && reflect.DeepEqual(l.Packets, before.line.Packets) && l.Memory == before.line.Memory &&
		reflect.DeepEqual(l.Lost, before.line.Lost) {
		l.Encoding = before.line.Encoding
	} else {
		l.Encoding = report.NewEncoding(*l)
	}
	x.line.Encoding = l.Encoding
}
