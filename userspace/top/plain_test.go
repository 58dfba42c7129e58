package top

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
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
	if p.event(errors.New("refused")) || p.event(errors.New("refused")) {
		t.Error("an error is a reason to ask")
	}
	wrote("no connection", "no connection, trying again: refused")
	if !p.event(client.Event{Kind: client.Hello}) || !p.event(client.Event{Kind: client.Hello}) {
		t.Error("a connection is no reason to ask")
	}
	wrote("a connection", "connected again")
	p.event(client.Event{Kind: client.Missed, Missed: 3})
	wrote("missed", "3 events were not received")
}
