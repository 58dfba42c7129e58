package findings

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// answered is a window of answers by group.
func answered(groups map[string]float64, rows map[string]int) report.Line {
	t := report.Table{Name: "groups"}
	for _, c := range []string{"group", "matched", "estimated", "estimated_low", "estimated_high", "p50_ns", "p50_low_ns", "p50_high_ns", "row"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	all := 0.
	for name, n := range groups {
		t.Rows, all = append(t.Rows, []any{name, n, n, n, n, 1e6, .9e6, 1.1e6, rows[name]}), all+n
	}
	values := []report.Value{}
	for _, name := range []string{"requests", "responses", "estimated", "matched", "inserted"} {
		values = append(values, report.Value{Name: name, Value: all})
	}
	return report.Line{Algorithm: "fridge", Report: report.Body{Values: values, Distributions: []report.Distribution{{Name: "delay_ns", Title: "delay from SYN to SYN-ACK"}}, Tables: []report.Table{t}}}
}

// Answers of a server whose row another one has are counted among others: it has not fallen silent. Where too few are counted there, or its row is free, it has.
func TestRowTaken(t *testing.T) {
	none, same, apart := map[string]int{}, map[string]int{"10.1.1.1/32": 5, "10.1.1.2/32": 5}, map[string]int{"10.1.1.1/32": 5, "10.1.1.2/32": 6}
	for _, c := range []struct {
		others float64
		rows   map[string]int
		apart  bool
		silent bool
	}{{14, none, false, false}, {0, none, true, true}, {1, none, true, false}, {14, same, false, false}, {0, same, true, true}, {14, apart, true, true}} {
		s, apart := finding.NewStreams(), false
		for n := range int64(10) {
			groups := map[string]float64{"10.1.1.1/32": 14, "10.1.1.2/32": 20}
			if n >= 8 {
				delete(groups, "10.1.1.1/32")
				groups["others"] = c.others
			}
			for _, r := range s.Window("fridge", Of(answered(groups, c.rows)).Measures, n*2e9, (n+1)*2e9) {
				if r.Symptom == finding.HandshakeVanished && r.Apart {
					apart = apart || n >= 8 && r.Subject.Name == "10.1.1.1"
				}
				if r.Symptom == finding.HandshakeVanished && r.Subject.Name == "10.1.1.1" && n == 9 && (r.Gone == 2) != c.silent {
					t.Errorf("%g others: %d windows without an answer", c.others, r.Gone)
				}
			}
		}
		if apart != c.apart {
			t.Errorf("%g others: fell silent: %v", c.others, apart)
		}
	}
}

// A window without a request and an answer can show nothing, and why is reported; one with either can.
func TestNothingWasAsked(t *testing.T) {
	for _, c := range []struct {
		requests, matched float64
		unable            bool
	}{{0, 0, true}, {1, 0, false}, {0, 1, false}, {5, 5, false}} {
		l := answered(map[string]float64{"10.1.1.1/32": 3}, nil)
		for i, v := range l.Report.Values {
			if v.Name == "requests" {
				l.Report.Values[i].Value = c.requests
			} else if v.Name == "matched" {
				l.Report.Values[i].Value = c.matched
			}
		}
		if got := Of(l).Unable; (len(got) > 0) != c.unable {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A group is a host or a network if it is an address or a prefix, and else nobody.
func TestSubjectsOfGroups(t *testing.T) {
	for group, want := range map[string]finding.Subject{"10.2.0.0/16": {Type: finding.Prefix, Name: "10.2.0.0/16"}, " 192.0.2.1/32": {Type: finding.Host, Name: "192.0.2.1"}, "192.0.2.1": {Type: finding.Host, Name: "192.0.2.1"}, "2001:db8::1": {Type: finding.Host, Name: "2001:db8::1"},
		"2001:db8::/32": {Type: finding.Prefix, Name: "2001:db8::/32"}, "others": {}, "443": {}, "": {}} {
		if got, ok := subjectOf(group); ok != (want.Name != "") || ok && got != want {
			t.Errorf("%q: %+v, %v", group, got, ok)
		}
	}
}
