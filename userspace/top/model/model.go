package model

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

var nan = math.NaN()

// View is the content of the screen.
type View int

// Views.
const (
	Overview   View = iota
	Opened          // an instance with one algorithm and one of its tables
	Details         // all of its report
	RowDetails      // a row of the table
	FindingDetails
	Health
	Interfaces // a list to choose one from
	Help
)

// Place is a view with its selection.
type Place struct {
	View           View
	Key, Algorithm string
	Table          string
	Finding        string // its ID
	Row            string // of the table: its first label
	Subject        string // whose row is selected when the window arrives
	Selected       int
	Filter         string
	Order          Order
}

// Notice is a message for the operator.
type Notice struct {
	Text string
	At   time.Time
}

const (
	// mostNotices bounds the stored notices: the start lines of a run and some more.
	mostNotices = 50
	// mostFilter bounds the length of a filter.
	mostFilter = 100
	// far is the number of windows that { and } move by.
	far = 30
)

// Model is the state of a screen. One goroutine owns it.
type Model struct {
	Width, Height int
	Source        string // address of the API
	Now           func() time.Time

	Up      bool      // the stream is open
	Changed time.Time // time of the last change of Up
	Trouble string    // why the stream is not open, or the API's last error
	Missed  uint64    // events dropped because this client was too slow
	Ended   bool      // the measurement has ended: no reconnection

	Instances api.Instances
	Open      []finding.Finding
	Over      []finding.Finding
	Answer    Answer // of the view
	Known     bool   // an answer has arrived
	Notices   []Notice

	At        time.Time // zero: live
	Paused    bool
	Latest    int64 // end of the latest window, ms since 1970
	Interface string
	Filtering bool
	Stack     []Place

	rows   map[string]*Row // live
	filled map[string]bool // rates before the first window seen are loaded
	past   map[string]*Row // at At
}

// New is a model of the overview.
func New(source string, now func() time.Time) *Model {
	return &Model{Width: 80, Height: 24, Source: source, Now: now, Changed: now(), rows: map[string]*Row{}, filled: map[string]bool{}, past: map[string]*Row{},
		Stack: []Place{{View: Overview, Order: Order{Column: -1}}}}
}

// Place is the current place.
func (m *Model) Place() *Place { return &m.Stack[len(m.Stack)-1] }

func (m *Model) enter(p Place) { m.Stack = append(m.Stack, p) }

func (m *Model) back() bool {
	if len(m.Stack) == 1 {
		return false
	}
	m.Stack = m.Stack[:len(m.Stack)-1]
	return true
}

// Live reports whether the latest data are shown.
func (m *Model) Live() bool { return m.At.IsZero() }

// Rows are the instances of the overview: filtered, sorted.
func (m *Model) Rows() []*Row {
	p := &m.Stack[0]
	want := strings.ToLower(p.Filter)
	var out []*Row
	for n := range m.Instances.Instances {
		r := m.row(m.Instances.Instances[n].Key)
		if r == nil || m.Interface != "" && !slices.Contains(r.Interfaces, m.Interface) {
			continue
		}
		if want == "" || contains(r.Key+" "+r.Place()+" "+strings.Join(r.Algorithms, " "), want) {
			out = append(out, r)
		}
	}
	return sorted(out, p.Order)
}

// All is the number of instances.
func (m *Model) All() int { return len(m.Instances.Instances) }

// row is an instance at the displayed time.
func (m *Model) row(key string) *Row {
	live := m.rows[key]
	if m.Live() || live == nil {
		return live
	}
	if r := m.past[key]; r != nil {
		return r
	}
	r := *live // its values are being requested
	r.Packets, r.Bits, r.P50, r.P99, r.Loss, r.Queue, r.End, r.Rates = nan, nan, None(), None(), nan, nan, 0, nil
	return &r
}

// Findings are the active findings of the overview: filtered, the most severe first.
func (m *Model) Findings() []*finding.Finding {
	want := strings.ToLower(m.Stack[0].Filter)
	var out []*finding.Finding
	for n := range m.Open {
		f := &m.Open[n]
		if m.Interface != "" && !slices.Contains(strings.Split(f.Interface, ","), m.Interface) {
			continue
		}
		if want == "" || contains(f.Sentence()+" "+f.Severity.String()+" "+string(f.Kind)+" "+f.Interface, want) {
			out = append(out, f)
		}
	}
	return out
}

// Finding is the open finding; nil if it no longer exists.
func (m *Model) Finding() *finding.Finding {
	for _, list := range [][]finding.Finding{m.Open, m.Over} {
		for n := range list {
			if list[n].ID == m.Place().Finding {
				return &list[n]
			}
		}
	}
	return nil
}

// Instance is the open instance.
func (m *Model) Instance() *api.Instance {
	for n := range m.Instances.Instances {
		if i := &m.Instances.Instances[n]; i.Key == m.Place().Key {
			return i
		}
	}
	return nil
}

// Table is the open table of the report; nil if it has none.
func (m *Model) Table() *api.Table {
	r := m.Report()
	if r == nil || len(r.Tables) == 0 {
		return nil
	}
	for n := range r.Tables {
		if r.Tables[n].Name == m.Place().Table {
			return &r.Tables[n]
		}
	}
	return &r.Tables[m.firstTable(r)]
}

// firstTable is the first table with rows.
func (m *Model) firstTable(r *api.Report) int {
	return max(0, slices.IndexFunc(r.Tables, func(t api.Table) bool { return len(t.Rows) > 0 }))
}

// Report is the open window; nil until it has arrived.
func (m *Model) Report() *api.Report {
	p := m.Place()
	if r := m.Answer.Report; r != nil && m.Answer.Request.Key == p.Key && m.Answer.Request.Algorithm == p.Algorithm {
		return r
	}
	return nil
}

// Cells are the formatted cells of the open table.
func (m *Model) Cells() Cells {
	t := m.Table()
	if t == nil {
		return Cells{}
	}
	r := m.Report()
	return cellsOf(t, float64(r.Window.EndMS-r.Window.StartMS)/1e3, m.Place().Order, m.Place().Filter)
}

// Interfaces are the measured interfaces, sorted; the first is "" for all.
func (m *Model) Interfaces() []string {
	out := []string{""}
	for _, i := range m.Instances.Instances {
		for _, name := range i.Interfaces {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out[1:])
	return out
}

// Request is the request for the current view.
func (m *Model) Request() Request {
	p := m.Place()
	r := Request{At: m.At, View: p.View, Key: p.Key, Algorithm: p.Algorithm, Table: p.Table, Points: m.Width}
	switch p.View {
	case Opened, Details, RowDetails:
		if t := m.Table(); t != nil {
			r.Table = t.Name
			if n := m.rowIndex(t); p.View == RowDetails && n >= 0 {
				r.Fields = fieldsOfRow(t, n)
			}
		}
	case Overview:
		rows := m.Rows()
		first := max(0, p.Selected-len(m.Findings())-m.Height)
		for _, row := range rows[min(first, len(rows)):min(first+2*m.Height, len(rows))] {
			if !m.Live() || !m.filled[row.Key] {
				r.Rates = append(r.Rates, row.Key)
			}
		}
	}
	return r
}

// rowIndex is the open row of a table; -1 if the window has no such row.
func (m *Model) rowIndex(t *api.Table) int {
	for n := range t.Rows {
		if label(t, n) == m.Place().Row {
			return n
		}
	}
	return -1
}

// Row is the open row with its table.
func (m *Model) Row() (t *api.Table, row int) {
	if t = m.Table(); t == nil {
		return nil, -1
	}
	return t, m.rowIndex(t)
}

// Take applies an answer. Of one to an earlier request, only what is still valid is used; more reports that the view needs another request.
func (m *Model) Take(a Answer) (more bool) {
	if a.Err != nil {
		m.Trouble = a.Err.Error()
		return false
	}
	if m.Up {
		m.Trouble = ""
	}
	m.Known = true
	m.takeInstances(&a)
	if !a.Request.At.Equal(m.At) {
		return true
	}
	m.Open, m.Over = openFindings(a.Findings.Findings, m.At)
	if !m.Live() {
		for key, row := range a.Rates {
			m.past[key] = row
		}
	}
	now := m.Request()
	if a.Report == nil && a.Request.View == Overview && m.Place().View != Overview {
		return true
	}
	if a.Request.same(now) || a.Request.Key == now.Key && a.Request.Algorithm == now.Algorithm {
		m.Answer = a
		m.seek()
	}
	m.clamp()
	after := m.Request()
	return !a.Request.same(after) || slices.ContainsFunc(after.Rates, func(key string) bool { return !slices.Contains(a.Request.Rates, key) })
}

func (m *Model) takeInstances(a *Answer) {
	m.Instances = a.Instances
	known := map[string]bool{}
	for n := range a.Instances.Instances {
		i := &a.Instances.Instances[n]
		if len(i.Algorithms) == 0 {
			continue
		}
		known[i.Key] = true
		r, before := rowOf(i), m.rows[i.Key]
		m.Latest = max(m.Latest, r.End)
		if before != nil {
			r.Rates = before.Rates
		}
		switch filled := a.Rates[i.Key]; {
		case filled != nil && a.Request.At.IsZero():
			r.Rates = filled.Rates
			m.filled[i.Key] = true
		case before == nil || before.End != r.End:
			r.Rates = append(r.Rates[max(0, len(r.Rates)-sparkPoints+1):len(r.Rates):len(r.Rates)], r.Packets)
		}
		m.rows[i.Key] = r
	}
	for key := range m.rows {
		if !known[key] {
			delete(m.rows, key)
			delete(m.filled, key)
		}
	}
}

// clamp limits the selection to existing items.
func (m *Model) clamp() {
	p := m.Place()
	p.Selected = max(0, min(p.Selected, m.Count()-1))
}

// Count is the number of selectable items.
func (m *Model) Count() int {
	switch m.Place().View {
	case Overview:
		return len(m.Findings()) + len(m.Rows())
	case Opened:
		return len(m.Cells().Rows)
	case Interfaces:
		return len(m.Interfaces())
	}
	return math.MaxInt32 // lines: only the screen knows their number
}

// Event applies an event of the stream; fetch reports whether the view must be requested again.
func (m *Model) Event(e client.Event) (fetch bool) {
	switch e.Kind {
	case client.Hello:
		if !m.Up {
			m.Up, m.Changed, m.Trouble = true, m.Now(), ""
		}
		return true
	case client.Window:
		m.Latest = max(m.Latest, e.Window.Window.EndMS)
		p := m.Place()
		return m.Live() && (p.Key == "" || e.Window.Key == p.Key)
	case client.Finding:
		return m.Live()
	case client.Missed:
		m.Missed += e.Missed
		return m.Live()
	}
	return false
}

// Lost records the end of the stream.
func (m *Model) Lost(err error) {
	if m.Up || m.Trouble == "" {
		m.Changed = m.Now()
	}
	m.Up, m.Trouble = false, err.Error()
	clear(m.filled) // the windows in between are not known
}

// Note adds a message for the operator.
func (m *Model) Note(text string) {
	m.Notices = append(m.Notices[max(0, len(m.Notices)-mostNotices+1):], Notice{text, m.Now()})
}

// ShownEnd is the end of the displayed window, in ms of Unix time; 0: none.
func (m *Model) ShownEnd() (end int64) {
	if p := m.Place(); p.Key != "" {
		if r := m.Report(); r != nil {
			return r.Window.EndMS
		}
	}
	for _, r := range m.Rows() {
		end = max(end, r.End)
	}
	return end
}

// window is the length of the displayed windows.
func (m *Model) window() time.Duration {
	least := time.Duration(0)
	for _, i := range m.Instances.Instances {
		if p := m.Place(); p.Key == "" || p.Key == i.Key {
			if w := time.Duration(i.WindowNS); w > 0 && (least == 0 || w < least) {
				least = w
			}
		}
	}
	if least == 0 {
		return time.Second
	}
	return least
}

// move shows the window n later or earlier; after the latest it is live.
func (m *Model) move(n int) {
	end := m.ShownEnd()
	if end == 0 || !m.Live() && m.At.UnixMilli() > end+2*m.window().Milliseconds() {
		end = m.At.UnixMilli() // a gap: move within it
	}
	if m.Live() && end <= 0 {
		return
	}
	at := MS(end) // the window before the displayed one
	if n < -1 {
		at = at.Add(time.Duration(n+1) * m.window())
	}
	if n > 0 {
		at = at.Add(time.Duration(n)*m.window() + m.window()/4)
	}
	m.show(at)
}

// show shows the last window that ended before a time; from the latest on it is live.
func (m *Model) show(at time.Time) {
	if m.Latest > 0 && at.UnixMilli() > m.Latest {
		m.live()
		return
	}
	m.At, m.Paused = at, false
	clear(m.past)
}

func (m *Model) live() {
	m.At, m.Paused = time.Time{}, false
	clear(m.past)
}

// pause freezes the display, or resumes.
func (m *Model) pause() {
	if !m.Live() {
		m.live()
		return
	}
	if end := m.ShownEnd(); end > 0 {
		m.At, m.Paused = MS(end+1), true
		clear(m.past)
		for key, r := range m.rows {
			m.past[key] = r
		}
	}
}
