package top

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// A line is written when something begins, ends, is lost or returns, and none while it stays.
func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := &plain{out: &out, m: model.New("here", func() time.Time { return time.UnixMilli(1_767_323_040_000) }), open: map[string]finding.Finding{}, ends: map[string]int64{"a": 1, "b": 2}, begun: true}
	wrote := func(what string, want ...string) {
		t.Helper()
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.TrimSpace(line))
		}
		if out.Reset(); len(lines) != len(want) || slices.ContainsFunc(want, func(text string) bool {
			return !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) })
		}) {
			t.Errorf("%s: %q, want %q", what, lines, want)
		}
	}
	p.forget([]api.Instance{{Key: "b"}, {Key: "c"}})
	p.forget([]api.Instance{{Key: "b"}, {Key: "c"}})
	wrote("instances", "a is no longer measured")
	one := finding.Finding{ID: "1", Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}, Since: 1_767_323_000_000_000_000}
	p.m.Open = []finding.Finding{one}
	p.findings()
	p.findings()
	wrote("a finding", "finding begins, warning: "+one.Sentence())
	p.m.Open = nil
	p.findings()
	p.findings()
	wrote("its end", "finding ends, warning: "+one.Headline())
	for range 2 { // it is written once
		if p.event(errors.New("refused")) {
			t.Error("an error is a reason to ask")
		}
	}
	wrote("no connection", "no connection, trying again: refused")
	for range 2 {
		if !p.event(client.Event{Kind: client.Hello}) {
			t.Error("a connection is no reason to ask")
		}
	}
	wrote("a connection", "connected again")
	p.event(client.Event{Kind: client.Missed, Missed: 3})
	wrote("missed", "3 events were not received")
}

// At the end of a run its latest windows and the findings that still hold are written, each once, in the order in which they began.
func TestSinkRemembersTheLatest(t *testing.T) {
	var notices bytes.Buffer
	s := NewSink(SinkOptions{Out: io.Discard, Notices: &notices, Style: func() report.Style { return report.Style{} }})
	for _, f := range []report.Finding{{Key: "a", Text: "1"}, {Key: "b", Text: "2"}, {Key: "c", Text: "3"}, {Key: "a", Text: "4"}, {Key: "b", Ended: true}, {Key: "d", Ended: true}} {
		if err := s.Finding(f); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.findings) != 2 || s.findings[0].Text != "3" || s.findings[1].Text != "4" {
		t.Errorf("%+v", s.findings)
	}
	for n, name := range []string{"lean", "hhh", "lean"} {
		if err := s.Line(report.Line{Algorithm: name, Identity: report.Identity{Instance: "i"}, Window: report.Window{Number: n}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.order) != 2 || s.latest[s.order[0]].Window.Number != 2 || s.latest[s.order[1]].Window.Number != 1 {
		t.Errorf("%q, %+v", s.order, s.latest)
	}
	if s.Notice("before the screen"); !strings.Contains(notices.String(), "before the screen") || len(s.notices) > 0 {
		t.Errorf("written: %q, stored: %q", &notices, s.notices)
	}
	notices.Reset()
	s.cancel = func() {}
	for n := range mostNotices + 3 {
		s.Notice(strings.Repeat("n", n))
	}
	if len(s.notices) != mostNotices || len(s.notices[0]) != 3 || len(s.waiting) != cap(s.waiting) || notices.Len() > 0 {
		t.Errorf("%d notices, %d wait for the screen", len(s.notices), len(s.waiting))
	}
}
