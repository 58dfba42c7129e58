package session

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// rest is a window without packets. If its registers are those of an earlier one, its report is the same, and so is its JSON apart from the times and the
// identity: 200 idle interfaces cost little more than reading their counters.
type rest struct {
	digest uint64 // of the snapshot
	equal  bool   // ... and of that of the window before
	known  *idleReport
}

// idleReport is the report of idle windows of one length, and what their lines have in common.
type idleReport struct {
	length int64
	result algo.Result

	mu    sync.Mutex
	lines []report.Line // with their encodings, which differ in packets, memory and losses
}

// idleKey names snapshots that have the same report: it is a function of these.
type idleKey struct {
	algorithm *algo.Descriptor
	setup     algo.Setup
	values    string
	digest    uint64
}

// idle has the reports of idle windows of all sessions: interfaces with the same algorithms have the same registers while no packet arrives. Reports with
// rows are not in it.
var idle struct {
	sync.Mutex
	known map[idleKey][]*idleReport
}

// Bounds of idle. Windows that end in time differ by some milliseconds in length.
const (
	mostIdleKeys    = 256
	mostIdleLengths = 64
	mostIdleLines   = 4
)

// sameLength is the relative difference in length of windows that have the same report: intervals of rates depend on it.
const sameLength = 1e-3

// idleKey is the key of a snapshot of this digest.
func (m *member) idleKey(digest uint64) idleKey {
	if m.values == "" {
		m.values = fmt.Sprint(m.selected.Values.Map()) // sorted by key
	}
	return idleKey{m.selected.Descriptor, m.selected.Setup, m.values, digest}
}

// idleKnown is the report of an idle window; nil: none is known.
func idleKnown(key idleKey, length int64) *idleReport {
	idle.Lock()
	defer idle.Unlock()
	for _, k := range idle.known[key] {
		if near(k.length, length) {
			return k
		}
	}
	return nil
}

func idleAdd(key idleKey, k *idleReport) {
	idle.Lock()
	defer idle.Unlock()
	if idle.known == nil || len(idle.known) >= mostIdleKeys && idle.known[key] == nil {
		idle.known = map[idleKey][]*idleReport{}
	}
	list := idle.known[key]
	if len(list) >= mostIdleLengths {
		list = slices.Delete(list, 0, 1)
	}
	idle.known[key] = append(list, k)
}

// report returns a snapshot's report: a known one, if nothing but times differs.
func (m *member) report(s *snapshot.Snapshot, before *rest) (algo.Result, error) {
	x := m.rest
	if x == nil {
		return m.selected.Config.Report(s)
	}
	x.digest = s.Digest()
	x.equal = before != nil && before.digest == x.digest
	key, length := m.idleKey(x.digest), s.Window.End-s.Window.Start
	if x.known = idleKnown(key, length); x.known != nil {
		return x.known.result, nil
	}
	result, err := m.selected.Config.Report(s)
	b := &result.Body // several windows have it: whoever appends to one of its lists gets one of his own
	b.Values, b.Distributions, b.Tables, b.Notes = slices.Clip(b.Values), slices.Clip(b.Distributions), slices.Clip(b.Tables), slices.Clip(b.Notes)
	if err == nil && !rows(*b) {
		x.known = &idleReport{length: length, result: result}
		idleAdd(key, x.known)
	}
	return result, err
}

// unread reports whether the report of an idle window is known without reading it: the two windows before it were equal, the registers hold only zeros, so
// that none of them changes its meaning with time, and neither a packet nor the algorithm's controller has changed anything.
func (r *runner) unread(m *member, w report.Window, bank int, before *rest) bool {
	if m.rest == nil || before == nil || !before.equal || m.ticked || m.messenger != nil || r.cfg.Epoch != nil {
		return false
	}
	if (r.seen > 0 || !r.fresh) && !m.set.AtRest(bank) {
		return false
	}
	m.rest.digest, m.rest.equal, m.rest.known = before.digest, true, idleKnown(m.idleKey(before.digest), w.End-w.Start)
	return m.rest.known != nil
}

func near(a, b int64) bool { return float64(max(a, b)-min(a, b)) <= sameLength*float64(max(a, b)) }

// rows reports whether a report has rows other than of settings: they may have times, and names that are found later.
func rows(b report.Body) bool {
	return slices.ContainsFunc(b.Tables, func(t report.Table) bool { return !t.Settings && len(t.Rows) > 0 })
}

// encode lets the line share its encoding with another one of the same content.
func (x *rest) encode(l *report.Line) {
	if x == nil {
		return
	}
	k := x.known
	if k == nil {
		l.Encoding = report.NewEncoding(*l)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.lines {
		if o.Encoding.Fits(*l) && l.Memory == o.Memory && reflect.DeepEqual(l.Packets, o.Packets) && maps.Equal(l.Lost, o.Lost) {
			l.Encoding = o.Encoding
			return
		}
	}
	l.Encoding = report.NewEncoding(*l)
	if len(k.lines) >= mostIdleLines {
		k.lines = slices.Delete(k.lines, 0, 1)
	}
	k.lines = append(k.lines, report.Line{Packets: l.Packets, Memory: l.Memory, Lost: l.Lost, Encoding: l.Encoding})
}
