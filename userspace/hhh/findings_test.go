package hhh

import (
	"fmt"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// prefixes is a window's table: names, and shares of the total.
func prefixes(total float64, shares map[string]float64) report.Line {
	t := report.Table{Name: "prefixes"}
	for _, c := range []string{"prefix", "conditioned", "standard_error"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	for name, s := range shares {
		t.Rows = append(t.Rows, []any{name, s * total, .003 * total})
	}
	return report.Line{Algorithm: Name, Report: report.Body{Values: []report.Value{{Name: "total", Value: total}}, Tables: []report.Table{t}}}
}

// A network whose sixteen parts are each just heavy enough to be listed has their traffic; one part that is heavy by itself, and hosts, are their own.
func TestSpreadOverSmallNetworks(t *testing.T) {
	shares := map[string]float64{"10.1.0.0/16": .02, "10.1.200.0/24": .2, "10.1.200.7/32": .1, "fd00:0:1:7::/64": .03}
	for n := range 16 {
		shares[fmt.Sprintf("10.1.%d.0/24", 160+n)] = .025
	}
	got := map[string]finding.Estimate{}
	for _, m := range findings(prefixes(6000, shares)).Measures {
		got[m.Subject.Name] = m.Value
	}
	for name, want := range map[string]float64{"10.1.0.0/16": .42, "10.1.160.0/20": .4, "10.1.200.0/24": .2, "10.1.161.0/24": .025, "fd00:0:1::/48": .03} {
		e := got[name]
		if math.Abs(e.Value-want) > 1e-9 || !(e.Low < want && want < e.High) {
			t.Errorf("%s: %v, want %g", name, e, want)
		}
	}
	if e := got["10.1.0.0/16"]; math.Abs(e.High-e.Low-2*report.Normal95*.003*math.Sqrt(17)) > 1e-9 {
		t.Errorf("the interval of a sum: %v", e)
	}
	if _, is := got["10.1.200.7/32"]; is {
		t.Error("a host is a network")
	}
}

// Windows with too few packets to list any network teach nothing of those that have always had their share.
func TestQuietNight(t *testing.T) {
	s := finding.NewStreams()
	for n := range int64(40) {
		total := 6000.
		if n >= 10 && n < 30 {
			total = 300
		}
		l := prefixes(total, map[string]float64{"10.1.200.0/24": .2, "10.1.7.0/24": .3})
		if total < fewestTotal {
			l.Report.Tables = nil
		}
		for _, r := range s.Window("hhh", findings(l).Measures, n*10e9, (n+1)*10e9) {
			if r.Active || r.Known && r.Symptom == finding.PrefixShare && r.Apart {
				t.Fatalf("window %d: %s is heavy: %v, usually %v", n, r.Subject.Name, r.Value, r.Expected)
			}
		}
	}
}

// A /20 that begins to send is far out beside its own past, where the rest of its /16 had a seventh of the traffic before.
func TestPartOfANetwork(t *testing.T) {
	usual := map[string]float64{"10.1.7.0/24": .045, "10.1.20.0/24": .045, "10.1.55.0/24": .045}
	s, active := finding.NewStreams(), map[string]bool{}
	for n := range int64(10) {
		if n == 8 {
			for k := range 16 {
				usual[fmt.Sprintf("10.1.%d.0/24", 208+k)] = .025
			}
		}
		for _, r := range s.Window("hhh", findings(prefixes(6000, usual)).Measures, n*2e9, (n+1)*2e9) {
			if r.Active {
				active[r.Subject.Name] = true
			}
		}
	}
	if !active["10.1.208.0/20"] || len(active) > 2 || active["10.1.7.0/24"] {
		t.Errorf("heavy: %v", active)
	}
}
