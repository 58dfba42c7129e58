package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

const last = 1_767_323_040_000 // ms: 2026-01-02 03:04:00

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// instance measures fridge and lean, in windows of 10 s.
func instance(key string, seen uint64, interfaces ...string) api.Instance {
	w := api.Window{StartMS: last - 10_000, EndMS: last}
	return api.Instance{Key: key, Interfaces: interfaces, WindowNS: 10e9, Algorithms: []api.Measuring{
		{Name: "lean", Window: api.Window{StartMS: last - 20_000, EndMS: last - 10_000}, Seen: 1, Lost: 2, Loss: &api.Loss{Lost: "a", Among: "b", Share: float64(seen) / 1e6}},
		{Name: "fridge", Window: w, Seen: seen, Bytes: 100 * seen, Lost: 3, Delay: &api.Delay{Title: "delay", Field: "report.delay_ns", Of: []api.Quantile{{Name: "p50", Value: raw("5"), Low: raw("4"), High: raw("7")}, {Name: "p99", Value: raw("9"), Promise: "bound"}}}}}}
}

func filled(t *testing.T) *Model {
	t.Helper()
	m := New("here", func() time.Time { return MS(last + 5000) })
	m.Up = true
	a := Answer{Request: m.Request(), Instances: api.Instances{Instances: []api.Instance{instance("a", 1000, "eth0"), instance("b", 3000, "eth1"), instance("c", 2000, "eth0", "eth2")}}}
	a.Findings.Findings = []finding.Finding{
		{ID: "1", Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}, Interface: "eth1", Evidence: []string{"fridge.groups"}},
		{ID: "2", Kind: finding.SlowNetwork, Severity: finding.Critical, Subject: finding.Subject{Type: finding.Prefix, Name: "10.2.0.0/16"}, Interface: "eth0"},
		{ID: "3", Kind: finding.Scan, State: finding.Ends, Until: 5},
	}
	if more := m.Take(a); !more {
		t.Error("the rates of what is shown are not requested")
	}
	return m
}

func keys(m *Model) (list []string) {
	for _, r := range m.Rows() {
		list = append(list, r.Key)
	}
	return list
}

// An instance has the rates of the algorithm with a delay, the losses of all, and an end that is that of its latest window.
func TestRows(t *testing.T) {
	m := filled(t)
	r := m.Rows()[1]
	if r.Packets != 300 || r.Bits != 240000 || r.P50 != (Estimate{5, 4, 7, false}) || r.P99.Value != 9 || !r.P99.Bound || r.P99.Enclosed() || r.Loss != .003 || !math.IsNaN(r.Queue) || r.Unmeasured != 5 || r.End != last || r.main.Name != "fridge" ||
		r.Delay != "delay" || !slices.Equal(r.Rates, []float64{300}) || m.Latest != last || m.All() != 3 || m.ShownEnd() != last {
		t.Errorf("%+v", r)
	}
	r.Guest = "web"
	if r.Place() != "eth1 (web)" || m.Rows()[2].Place() != "eth0,eth2" {
		t.Errorf("%s, %s", r.Place(), m.Rows()[2].Place())
	}
	if p, b := rates(5, 6, api.Window{}); !math.IsNaN(p) || !math.IsNaN(b) {
		t.Errorf("rates of no time: %g, %g", p, b)
	}
	for text, want := range map[string]float64{"1.5": 1.5, "null": math.NaN(), "": math.NaN(), `"x"`: math.NaN()} {
		if got := Number(raw(text)); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %g", text, got)
		}
	}
	if Text(nil, "") != "-" || Text(raw("{"), "") != "-" || Text(raw("1500"), string(report.Bytes)) == "1500" {
		t.Error("texts of values")
	}
}

// Rows are sorted by a column in its natural direction, by the same key in the other; unknown values are last, and a filter and an interface choose.
func TestOrderAndFilter(t *testing.T) {
	m := filled(t)
	for n, c := range []struct {
		press string
		want  string
	}{{"", "abc"}, {"2", "bca"}, {"2", "acb"}, {"S", "bca"}, {"1", "abc"}, {"1", "cba"}, {">", "bca"}, {"<", "abc"}, {"<", "abc"}, {"<", "abc"}, {"s", "abc"}, {"6", "bca"}, {"8", "bca"}} {
		for _, r := range c.press {
			m.Press(Key{Rune: r})
		}
		if got := strings.Join(keys(m), ""); got != c.want {
			t.Errorf("%d, after %q: %s, want %s", n, c.press, got, c.want)
		}
	}
	m.Rows()[0].Loss = math.NaN()
	if got := strings.Join(keys(m), ""); got != "cab" {
		t.Errorf("an unknown loss: %s", got)
	}
	for filter, want := range map[string]string{"ETH1": "b", "c": "c", "lean": "cab", "nowhere": "", "": "cab"} {
		m.Place().Filter = filter
		if got := strings.Join(keys(m), ""); got != want {
			t.Errorf("%q: %s, want %s", filter, got, want)
		}
	}
	m.Place().Filter, m.Interface = "", "eth0"
	if got := strings.Join(keys(m), ""); got != "ca" || len(m.Findings()) != 1 || m.Findings()[0].ID != "2" {
		t.Errorf("%s and %d findings on eth0", got, len(m.Findings()))
	}
	if got := m.Interfaces(); !slices.Equal(got, []string{"", "eth0", "eth1", "eth2"}) {
		t.Errorf("%q", got)
	}
}

// The most severe finding is first, ended ones are apart; a selection stays within what there is.
func TestFindingsAndSelection(t *testing.T) {
	m := filled(t)
	if len(m.Open) != 2 || m.Open[0].ID != "2" || len(m.Over) != 1 || m.Count() != 5 {
		t.Errorf("%d open, %d over, %d items", len(m.Open), len(m.Over), m.Count())
	}
	p := m.Place()
	for _, c := range []struct {
		key  Key
		want int
	}{{Key{Name: "Up"}, 0}, {Key{Name: "Down"}, 1}, {Key{Rune: 'j'}, 2}, {Key{Rune: 'k'}, 1}, {Key{Name: "PageDown"}, 4}, {Key{Name: "Down"}, 4}, {Key{Name: "PageUp"}, 0}, {Key{Rune: 'G'}, 4}, {Key{Rune: 'g'}, 0}, {Key{Name: "Tab"}, 2}, {Key{Name: "Down"}, 3}, {Key{Name: "Tab"}, 0},
		{Key{Name: "BackTab"}, 2}} {
		if e := m.Press(c.key); e != Draw || p.Selected != c.want {
			t.Errorf("%+v: item %d, want %d; effect %v", c.key, p.Selected, c.want, e)
		}
	}
	m.Height = 11
	p.Selected = 0
	if m.Press(Key{Name: "PageDown"}); p.Selected != 3 {
		t.Errorf("a page of a small screen is %d", p.Selected)
	}
	p.Selected = 1
	if e := m.Press(Key{Name: "Enter"}); e != Draw || m.Place().View != FindingDetails || m.Finding().ID != "1" {
		t.Errorf("%v: %+v", e, m.Place())
	}
	if e := m.Press(Key{Name: "Enter"}); e != Ask || m.Place().View != Opened || m.Place().Key != "b" || m.Place().Algorithm != "fridge" || m.Place().Subject != "10.1.1.1" {
		t.Errorf("%v: %+v", e, m.Place())
	}
	m.Open[1].Numbers = "c"
	if key, algorithm := m.placeOf(&m.Open[1]); key != "c" || algorithm != "fridge" {
		t.Errorf("%s %s", key, algorithm)
	}
	m.Open[1].Numbers, m.Open[1].Interface, m.Open[1].Evidence = "none", "eth9,eth2", []string{"x.y"}
	if key, algorithm := m.placeOf(&m.Open[1]); key != "c" || algorithm != "fridge" {
		t.Errorf("%s %s", key, algorithm)
	}
}

// Views are left one by one; a filter is cleared first, and at last the choice of an interface.
func TestKeys(t *testing.T) {
	m := filled(t)
	press := func(k Key, want Effect) {
		t.Helper()
		if e := m.Press(k); e != want {
			t.Errorf("%+v: effect %v, want %v", k, e, want)
		}
	}
	press(Key{Rune: 'i'}, Draw)
	press(Key{Name: "Down"}, Draw)
	press(Key{Name: "Enter"}, Ask)
	if m.Interface != "eth0" || m.Place().View != Overview {
		t.Errorf("%s, %+v", m.Interface, m.Place())
	}
	press(Key{Rune: '/'}, Draw)
	for _, r := range "a\tbé" {
		press(Key{Rune: r}, Draw)
	}
	press(Key{Name: "Backspace"}, Draw)
	press(Key{Rune: 'q'}, Draw)
	if press(Key{Name: "Enter"}, Draw); m.Filtering || m.Place().Filter != "abq" {
		t.Errorf("filter %q", m.Place().Filter)
	}
	m.Filtering = true
	for range 2 * mostFilter {
		press(Key{Rune: 'x'}, Draw)
	}
	if n := len(m.Place().Filter); n != mostFilter {
		t.Errorf("a filter of %d characters", n)
	}
	press(Key{Name: "Escape"}, Draw)
	if m.Filtering || m.Place().Filter != "" {
		t.Errorf("filter %q", m.Place().Filter)
	}
	m.Place().Filter = "eth"
	press(Key{Rune: '?'}, Draw)
	press(Key{Rune: '?'}, Ask)
	press(Key{Name: "Escape"}, Ask)
	if m.Place().Filter != "" || m.Interface == "" {
		t.Errorf("%+v, %s", m.Place(), m.Interface)
	}
	if press(Key{Name: "Backspace"}, Ask); m.Interface != "" {
		t.Errorf("%s", m.Interface)
	}
	press(Key{Rune: 'h'}, Ask)
	press(Key{Rune: 'i'}, Draw)
	if m.Place().View != Health {
		t.Errorf("%+v", m.Place())
	}
	press(Key{Name: "Escape"}, Ask)
	m.Place().Selected = 3 // instance b
	press(Key{Rune: 'd'}, Ask)
	if p := m.Place(); p.View != Details || p.Key != "b" || p.Algorithm != "fridge" || m.Instance().Key != "b" {
		t.Errorf("%+v", p)
	}
	press(Key{Rune: 'd'}, Ask)
	press(Key{Name: "Right"}, Ask)
	if p := m.Place(); p.View != Opened || p.Algorithm != "lean" {
		t.Errorf("%+v", p)
	}
	press(Key{Name: "Left"}, Ask)
	press(Key{Name: "Left"}, Ask)
	if p := m.Place(); p.Algorithm != "lean" || p.Order.Column != -1 {
		t.Errorf("%+v", p)
	}
	press(Key{Rune: 'q'}, Quit)
	press(Key{Name: "Interrupt"}, Quit)
}

// A step is a window; before the earliest there is no end, and after the latest it is live.
func TestTimes(t *testing.T) {
	m := filled(t)
	shows := func(want int64, live bool) {
		t.Helper()
		if at := m.At.UnixMilli(); m.Live() != live || !live && at != want {
			t.Errorf("shows %d (live %v), want %d", at-last, m.Live(), want-last)
		}
	}
	m.Press(Key{Rune: '['})
	shows(last, false)
	if r := m.Rows()[0]; !math.IsNaN(r.Packets) || r.End != 0 || r.Rates != nil {
		t.Errorf("values of now at an earlier time: %+v", r)
	}
	m.past["a"] = &Row{Key: "a", End: last - 10_000}
	m.Press(Key{Rune: '['})
	shows(last-10_000, false)
	m.past["a"] = &Row{Key: "a", End: last - 20_000}
	m.Press(Key{Rune: '{'})
	shows(last-20_000-(far-1)*10_000, false)
	m.past["a"] = &Row{Key: "a", End: last - 100_000}
	m.Press(Key{Rune: ']'})
	shows(last-100_000+10_000+2500, false)
	m.past["a"] = &Row{Key: "a", End: last - 10_000}
	m.Press(Key{Rune: ']'})
	shows(0, true)
	m.Press(Key{Rune: ' '})
	if shows(last+1, false); !m.Paused || m.past["b"].Packets != 300 {
		t.Errorf("paused: %v", m.Paused)
	}
	m.Press(Key{Rune: 'p'})
	shows(0, true)
	if m.Paused || len(m.past) != 0 || m.window() != 10*time.Second || New("", time.Now).window() != time.Second {
		t.Errorf("paused %v, windows of %v", m.Paused, m.window())
	}
}

// Events are news only of what is shown now.
func TestEvents(t *testing.T) {
	m := filled(t)
	m.Lost(errors.New("closed"))
	changed := m.Changed
	m.Now = func() time.Time { return MS(last + 9000) }
	if m.Lost(errors.New("again")); m.Up || m.Trouble != "again" || !m.Changed.Equal(changed) || len(m.filled) != 0 {
		t.Errorf("%+v", m)
	}
	if !m.Event(client.Event{Kind: client.Hello}) || !m.Up || m.Trouble != "" || !m.Changed.Equal(MS(last+9000)) {
		t.Errorf("%+v", m)
	}
	window := client.Event{Kind: client.Window, Window: api.Closed{Key: "a", Window: api.Window{EndMS: last + 10_000}}}
	if !m.Event(window) || m.Latest != last+10_000 || !m.Event(client.Event{Kind: client.Finding}) || m.Event(client.Event{Kind: client.Quiet}) {
		t.Error("events on the overview")
	}
	m.open("b", "fridge")
	if m.Event(window) {
		t.Error("a window of another instance")
	}
	if m.Event(client.Event{Kind: client.Missed, Missed: 3}); m.Missed != 3 {
		t.Errorf("%d are missed", m.Missed)
	}
	m.At = MS(last)
	window.Window.Key = "b"
	if m.Event(window) || m.Event(client.Event{Kind: client.Finding}) || m.Event(client.Event{Kind: client.Missed, Missed: 1}) || m.Missed != 4 {
		t.Error("events while another time is shown")
	}
	for n := range mostNotices + 5 {
		m.Note(fmt.Sprint(n))
	}
	if len(m.Notices) != mostNotices || m.Notices[0].Text != "5" {
		t.Errorf("%d notices from %s", len(m.Notices), m.Notices[0].Text)
	}
	if m.Take(Answer{Err: errors.New("refused")}) || m.Trouble != "refused" {
		t.Errorf("%s", m.Trouble)
	}
}

// Counting columns are shown per second with their intervals, ends and empty columns are not; a filter looks at what is shown.
func TestCells(t *testing.T) {
	table := api.Table{Name: "t", Columns: []api.Column{{Name: "prefix", Label: true}, {Name: "bytes", Unit: string(report.Bytes), Rate: true, Low: "bytes_low", High: "bytes_high"}, {Name: "bytes_low", Unit: string(report.Bytes), Rate: true},
		{Name: "bytes_high", Unit: string(report.Bytes), Rate: true}, {Name: "note"}, {Name: "secret", Hidden: true}, {Name: "delay_ns", Unit: string(report.Nanosecond), Err: "sd"}, {Name: "sd", Unit: string(report.Nanosecond)}},
		Rows: [][]json.RawMessage{
			{raw(`"10.1.0.0/16"`), raw("1000"), raw("900"), raw("1100"), raw(`""`), raw("1"), raw("5e6"), raw("1e6")},
			{raw(`"10.0.0.0/8"`), raw("5000"), raw("null"), raw("null"), raw("null"), raw("1"), raw("null"), raw("null")},
			{raw(`"10.1.2.3"`), raw("2000"), raw("1"), raw("2"), raw(`""`), raw("1"), raw("7e6"), raw("null")},
			{raw(`"192.0.2.0/24"`), raw("1"), raw("1"), raw("2"), raw(`""`), raw("1"), raw("1"), raw("null")},
		}}
	c := cellsOf(&table, 10, Order{Column: -1}, "")
	if !slices.Equal(c.Heads, []string{"prefix", "bits", "delay"}) || !slices.Equal(c.Columns, []int{0, 1, 6}) || !slices.Equal(c.Right, []bool{false, true, true}) || c.All != 4 {
		t.Errorf("%+v", c)
	}
	var rows []string
	for _, r := range c.Rows {
		rows = append(rows, fmt.Sprint(r.Depth, r.Row, r.Short, r.Texts))
	}
	if want := []string{"0 1 [10.0.0.0/8 4.00 kbit/s -] [10.0.0.0/8 4.00 kbit/s -]", "1 0 [10.1.0.0/16 800 bit/s 5.00 ms] [10.1.0.0/16 800 bit/s (720 .. 880) 5.00 ms ± 1.00 ms]"}; !slices.Equal(rows[:2], want) || !strings.HasPrefix(rows[2], "2 2 ") || !strings.HasPrefix(rows[3], "0 3 ") {
		t.Errorf("%q, want %q", rows, want)
	}
	order := func(o Order, filter string) (list []int) {
		for _, r := range cellsOf(&table, 10, o, filter).Rows {
			list = append(list, r.Row)
		}
		return list
	}
	if got := order(Order{Column: 1}, ""); !slices.Equal(got, []int{1, 2, 0, 3}) {
		t.Errorf("by bytes: %d", got)
	}
	if got := order(Order{Column: 2, Reverse: true}, ""); !slices.Equal(got, []int{1, 3, 0, 2}) {
		t.Errorf("by delay, the least first: %d", got)
	}
	if got := order(Order{Column: 0}, "10.1"); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("by name, of 10.1: %d", got)
	}
	if Words("p50_delay_ns", string(report.Nanosecond)) != "p50 delay" || Words("a.b_ns", "") != "a b ns" || label(&table, 2) != "10.1.2.3" {
		t.Error("names of columns and rows")
	}
	table.Columns[6].History = true
	if got := fieldsOfRow(&table, 3); !slices.Equal(got, []string{"report.t[192.0.2.0/24].delay_ns"}) {
		t.Errorf("%q", got)
	}
	table.Rows[3][0] = raw(`"a,b"`)
	if got := fieldsOfRow(&table, 3); got != nil {
		t.Errorf("%q", got)
	}
}
