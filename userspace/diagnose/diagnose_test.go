package diagnose

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// reading is one that its test holds to be there, in the latest window.
func reading(s finding.Symptom, subject finding.Subject, value, usual float64) finding.Reading {
	r := finding.Reading{Known: true, Apart: true, Active: true, Windows: 2, Since: 10, Latest: 30}
	r.Symptom, r.Subject, r.Algorithm, r.Instance, r.Source = s, subject, "test", "eth0", "test"
	r.Value, r.Bound, r.Absent = finding.Estimate{Value: value, Low: value * .9, High: value * 1.1, Unit: report.Ratio}, math.NaN(), math.NaN()
	r.Expected.Value, r.Expected.Source = usual, finding.FromBaseline
	return r
}

func usual(r finding.Reading) finding.Reading {
	r.Apart, r.Active = false, false
	return r
}

// unsure is a reading whose sequential test has not decided yet.
func unsure(r finding.Reading) finding.Reading {
	r.Active = false
	return r
}

// upTo is a reading whose value may be as large as high.
func upTo(r finding.Reading, high float64) finding.Reading {
	r.Value.High = high
	return r
}

// tried is a reading of a share of n.
func tried(r finding.Reading, n float64) finding.Reading {
	r.Trials = n
	return r
}

// lasting is a reading of what was there in n windows.
func lasting(r finding.Reading, n int) finding.Reading {
	r.Windows = n
	return r
}

// gone is a reading of something that is missing for n windows.
func gone(r finding.Reading, n int) finding.Reading {
	r.Gone = n
	return r
}

func prefix(name string) finding.Subject { return finding.Subject{Type: finding.Prefix, Name: name} }
func host(name string) finding.Subject   { return finding.Subject{Type: finding.Host, Name: name} }

var (
	eth0  = finding.Subject{Type: finding.Interface, Name: "eth0"}
	queue = finding.Subject{Type: finding.Queue, Name: "eth0"}
)

func blamed(r finding.Reading, blames ...finding.Blame) finding.Reading {
	r.Blames = blames
	return r
}

func withEvidence(r finding.Reading, evidence ...string) finding.Reading {
	r.Evidence = evidence
	return r
}

// Each cause is named once and at its place; what follows from it is not a finding of its own.
func TestDiagnose(t *testing.T) {
	lossy := []finding.Blame{{Source: "10.1.1.1", Destination: "10.2.2.2", Part: 90}, {Source: "10.3.1.1", Destination: "10.2.2.9", Part: 10}}
	for name, c := range map[string]struct {
		readings []finding.Reading
		want     string
	}{
		"nothing":         {nil, ""},
		"servers' side":   {[]finding.Reading{reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 90, 20), reading(finding.DurationLong, host("10.2.3.4"), 900, 40)}, "slow-network 10.2.3.0/24"},
		"clients' side":   {[]finding.Reading{usual(reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 20, 20)), reading(finding.DataLate, prefix("10.1.3.0/24"), 90, 20)}, "slow-network 10.1.3.0/24"},
		"not the clients": {[]finding.Reading{usual(reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 20, 20)), reading(finding.DataLate, prefix("10.2.3.0/24"), 90, 20)}, ""},
		"one server":      {[]finding.Reading{reading(finding.HandshakeLate, host("10.2.3.4"), 90, 20), usual(reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 20, 20))}, "slow-server 10.2.3.4"},
		"three networks": {[]finding.Reading{reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 90, 20), reading(finding.HandshakeLate, prefix("10.2.5.0/24"), 90, 20),
			reading(finding.HandshakeLate, prefix("10.2.7.0/24"), 90, 20)}, "slow-network 10.2.0.0/21"},
		"thinks":                  {[]finding.Reading{reading(finding.DurationLong, host("10.2.3.4"), 900, 40), usual(reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 20, 20))}, "slow-server 10.2.3.4"},
		"loss before":             {[]finding.Reading{blamed(reading(finding.Holes, eth0, .03, 0), lossy...), reading(finding.DurationLong, host("10.2.2.2"), 900, 40)}, "loss-before 10.1.1.0/24"},
		"loss of one among many":  {[]finding.Reading{blamed(usual(reading(finding.Holes, eth0, .004, .001)), lossy...), blamed(reading(finding.HolesFrom, prefix("10.1.1.0/24"), .0035, .0005), lossy[:1]...)}, "loss-before 10.1.1.0/24"},
		"loss of others, too":     {[]finding.Reading{blamed(usual(reading(finding.Holes, eth0, .004, .001)), lossy...), blamed(reading(finding.HolesFrom, prefix("10.3.1.0/24"), .002, .0005), lossy[1:]...)}, ""},
		"loss of all":             {[]finding.Reading{blamed(reading(finding.Holes, eth0, .03, 0), lossy[0], finding.Blame{Source: "10.3.1.1", Part: 90}), blamed(reading(finding.HolesFrom, prefix("10.1.1.0/24"), .015, .0005), lossy[:1]...)}, "loss-before eth0"},
		"sent again out of order": {[]finding.Reading{blamed(reading(finding.OutOfOrder, eth0, .02, 0), lossy...), blamed(reading(finding.Resent, eth0, .03, 0), lossy...)}, "loss-after 10.2.2.0/24"},
		"loss after":              {[]finding.Reading{blamed(reading(finding.Resent, eth0, .03, 0), lossy...)}, "loss-after 10.2.2.0/24"},
		"one among many is sent to again": {[]finding.Reading{blamed(usual(reading(finding.Resent, eth0, .004, .001)), lossy...), blamed(reading(finding.ResentTo, prefix("10.2.2.0/24"), .0035, .0005), lossy[:1]...)},
			"loss-after 10.2.2.0/24"},
		"others are sent to again": {[]finding.Reading{blamed(usual(reading(finding.Resent, eth0, .004, .001)), lossy...), blamed(reading(finding.ResentTo, prefix("10.3.1.0/24"), .002, .0005), lossy[1:]...)}, ""},
		"a host of it is late": {[]finding.Reading{blamed(usual(reading(finding.Resent, eth0, .004, .001)), lossy...), blamed(reading(finding.ResentTo, prefix("10.2.2.0/24"), .0035, .0005), lossy[:1]...),
			unsure(reading(finding.DataLate, host("10.2.2.2"), 60e6, 20e6))}, ""},
		"own queue":  {[]finding.Reading{blamed(reading(finding.Resent, eth0, .03, 0), lossy...), reading(finding.QueueDrops, queue, .03, 0)}, "loss-in-queue eth0"},
		"reordering": {[]finding.Reading{blamed(reading(finding.OutOfOrder, eth0, .05, 0), lossy...), blamed(reading(finding.Resent, eth0, .03, 0), lossy...)}, "reordering 10.1.1.0/24"},
		"full": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a", Part: .2}, finding.Blame{Flow: "b", Source: "b", Part: .2}), reading(finding.QueueDrops, queue, .003, 0),
			reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 90, 20)}, "link-full eth0"},
		"waits":  {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .4, 0), finding.Blame{Flow: "a", Part: .2}, finding.Blame{Flow: "b", Source: "b", Part: .2})}, "queue-delay eth0"},
		"unfair": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a > b", Part: .7}, finding.Blame{Flow: "c", Part: .1})}, "unfair-user a > b"},
		"unfair host": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a > b", Source: "a", Part: .3}, finding.Blame{Flow: "a > c", Source: "a", Part: .4},
			finding.Blame{Flow: "d > e", Source: "d", Part: .3}), reading(finding.QueueDrops, queue, .03, 0)}, "unfair-user a"},
		"full, and drops perhaps as much": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a", Source: "a", Part: .2}, finding.Blame{Flow: "b", Source: "b", Part: .2}),
			upTo(reading(finding.QueueDrops, queue, .0045, 0), .007)}, "loss-in-queue eth0, link-full eth0"},
		"full and drops": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a", Source: "a", Part: .2}, finding.Blame{Flow: "b", Source: "b", Part: .2}),
			reading(finding.QueueDrops, queue, .03, 0)}, "loss-in-queue eth0, link-full eth0"},
		"scan": {[]finding.Reading{withEvidence(reading(finding.Scanning, host("10.1.1.1"), 200, 100), "beaucoup.alerts[host-scan]"), withEvidence(reading(finding.FloodedByMany, host("10.1.1.1"), 2000, 1000)),
			reading(finding.HandshakeRefused, eth0, .5, 1)}, "scan 10.1.1.1"},
		"flood": {[]finding.Reading{reading(finding.Flooded, finding.Subject{Type: finding.Service, Name: "10.2.2.2:443"}, 9000, 1000), reading(finding.HandshakeRefused, eth0, .1, 1),
			reading(finding.TooSmall, finding.Subject{Type: finding.Instance, Name: "lean on eth0"}, .5, .1)}, "flood 10.2.2.2:443"},
		"flood of many": {[]finding.Reading{reading(finding.Flooded, finding.Subject{Type: finding.Service, Name: "10.2.2.2:443"}, 9000, 1000), reading(finding.FloodedByMany, host("10.2.2.2"), 5000, 1000),
			withEvidence(reading(finding.Scanning, host("10.2.2.2"), 5000, 1000), "beaucoup.alerts[superspreader]")}, "flood-many-sources 10.2.2.2"},
		"dead": {[]finding.Reading{reading(finding.HandshakeRefused, eth0, .5, 1), reading(finding.HandshakeVanished, prefix("10.2.3.0/24"), .1, 50), reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 20),
			usual(reading(finding.HandshakeVanished, prefix("10.2.5.0/24"), 50, 50))}, "unanswered 10.2.3.0/24"},
		"dead, and its SYNs are repeated": {[]finding.Reading{lasting(tried(reading(finding.HandshakeRefused, eth0, .43, 1), 200), 4), reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 9.5),
			usual(reading(finding.HandshakeVanished, prefix("10.2.5.0/24"), 50, 50))}, "unanswered 10.2.3.4"},
		"fewer answers of one do not explain it": {[]finding.Reading{lasting(tried(reading(finding.HandshakeRefused, eth0, .43, 1), 200), 4), reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 3),
			usual(reading(finding.HandshakeVanished, prefix("10.2.5.0/24"), 50, 50))}, "unanswered eth0"},
		"dead, and what it was sent is sent again": {[]finding.Reading{reading(finding.Resent, prefix("10.2.3.0/24"), .02, 0), lasting(tried(reading(finding.HandshakeRefused, eth0, .43, 1), 90), 3),
			reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 12), usual(reading(finding.HandshakeVanished, host("10.2.5.6"), 50, 50))}, "unanswered 10.2.3.4, loss-after 10.2.3.0/24"},
		"clients of another wait": {[]finding.Reading{lasting(tried(reading(finding.HandshakeRefused, eth0, .36, 1), 144), 5), reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 15),
			reading(finding.HandshakeVanished, host("10.2.5.6"), 2, 11)}, "unanswered 10.2.3.4"},
		"another refuses most": {[]finding.Reading{lasting(tried(reading(finding.HandshakeRefused, eth0, .36, 1), 500), 5), reading(finding.HandshakeVanished, host("10.2.3.4"), .1, 15),
			reading(finding.HandshakeVanished, host("10.2.5.6"), 9, 90)}, "unanswered 10.2.5.6, unanswered 10.2.3.4"},
		"one way":       {[]finding.Reading{reading(finding.NoResponse, eth0, 0, 1), usual(reading(finding.DataSegments, eth0, 900, 900)), reading(finding.HandshakeRefused, eth0, 0, 1)}, "one-direction eth0"},
		"all dead":      {[]finding.Reading{reading(finding.NoResponse, eth0, 0, 1), reading(finding.DataSegments, eth0, 10, 900)}, "unanswered eth0"},
		"resolver":      {[]finding.Reading{reading(finding.DNSRefused, eth0, .5, 1), reading(finding.DNSVanished, host("10.9.0.1"), .1, 30), usual(reading(finding.DNSVanished, host("10.9.0.2"), 30, 30))}, "dns-unanswered 10.9.0.1"},
		"slow resolver": {[]finding.Reading{reading(finding.DNSLate, host("10.9.0.1"), 300, 3)}, "dns-slow 10.9.0.1"},
		"slow clock":    {[]finding.Reading{reading(finding.NTPLate, host("10.9.0.3"), 300, 3)}, "ntp-slow 10.9.0.3"},
		"one receiver": {[]finding.Reading{reading(finding.DataLate, prefix("10.1.3.0/24"), 90, 20), reading(finding.DataLate, host("10.1.3.4"), 90, 20), usual(reading(finding.DataLate, host("10.1.3.5"), 20, 20)),
			usual(reading(finding.DataLate, host("10.1.3.6"), 20, 20))}, "slow-receiver 10.1.3.4"},
		"their network": {[]finding.Reading{reading(finding.DataLate, prefix("10.1.3.0/24"), 90, 20), reading(finding.DataLate, host("10.1.3.4"), 90, 20), reading(finding.DataLate, host("10.1.3.5"), 90, 20),
			usual(reading(finding.DataLate, host("10.1.3.6"), 20, 20))}, "slow-network 10.1.3.0/24"},
		"waits here": {[]finding.Reading{blamed(reading(finding.QueueStands, queue, .9, 0), finding.Blame{Flow: "a > b", Part: .7}), usual(reading(finding.QueuePeak, queue, 60, 60)),
			reading(finding.DNSLate, host("10.9.0.1"), 80, 3), reading(finding.DNSLate, host("10.9.0.2"), 400, 3)}, "unfair-user a > b, dns-slow 10.9.0.2"},
		"zero windows": {[]finding.Reading{reading(finding.ZeroWindows, eth0, 40, 0), reading(finding.ZeroWindows, prefix("10.1.3.0/24"), 40, 0), reading(finding.ZeroWindows, host("10.1.3.4"), 40, 0),
			reading(finding.DataLate, host("10.1.3.4"), 90, 20), reading(finding.DurationLong, host("10.2.3.4"), 900, 40)}, "slow-receiver 10.1.3.4"},
		"zero windows of all":       {[]finding.Reading{reading(finding.ZeroWindows, eth0, 40, 0)}, "slow-receiver eth0"},
		"zero windows of one, soon": {[]finding.Reading{reading(finding.ZeroWindows, eth0, 40, 0), unsure(reading(finding.ZeroWindows, host("10.1.3.4"), 40, 0))}, ""},
		"quiet clock": {[]finding.Reading{reading(finding.NTPRefused, eth0, .4, 1), gone(usual(reading(finding.NTPVanished, host("10.9.0.3"), .1, 2)), 2),
			gone(usual(reading(finding.NTPVanished, host("10.9.0.4"), .1, 1)), 1), usual(reading(finding.NTPVanished, host("10.9.0.5"), 5, 5))}, "ntp-unanswered 10.9.0.3"},
		"a server that is seldom asked": {[]finding.Reading{reading(finding.NTPRefused, eth0, .4, 1), gone(usual(reading(finding.NTPVanished, host("10.9.0.3"), .1, 1)), 2),
			usual(reading(finding.NTPVanished, host("10.9.0.5"), 5, 5))}, ""},
		"closed":    {[]finding.Reading{lasting(reading(finding.NotInside, eth0, .2, 0), 3)}, "unparsed eth0"},
		"not known": {[]finding.Reading{reading(finding.NotInside, eth0, .2, 0)}, ""},
		"tunnel": {[]finding.Reading{reading(finding.NotInside, eth0, .2, 0), blamed(usual(reading(finding.FlowShare, eth0, .19, .19)), finding.Blame{Flow: "10.1.1.1 > 10.2.2.2/gre", Part: 19, Low: .18},
			finding.Blame{Flow: "10.1.1.1:5 > 10.2.2.2:6/udp", Part: 9, Low: .09})}, "unparsed eth0"},
		"answers to a flood": {[]finding.Reading{reading(finding.NotInside, eth0, .2, 0), blamed(usual(reading(finding.FlowShare, eth0, .19, .19)), finding.Blame{Flow: "10.2.2.2 > 10.1.1.1/icmp", Part: 19, Low: .18},
			finding.Blame{Flow: "10.1.1.1 > 10.2.2.2/esp", Part: 1, Low: .01})}, ""},
		"not known of whom": {[]finding.Reading{reading(finding.DurationLong, host("10.2.3.4"), 400, 20), unsure(reading(finding.DataLate, prefix("10.1.3.0/24"), 90, 5))}, ""},
		"of a server":       {[]finding.Reading{reading(finding.DurationLong, host("10.2.3.4"), 400, 20), usual(reading(finding.DataLate, prefix("10.1.3.0/24"), 5, 5))}, "slow-server 10.2.3.4"},
		"many small":        {[]finding.Reading{reading(finding.PrefixShare, prefix("10.1.0.0/16"), .4, .01), reading(finding.PrefixShare, prefix("10.1.4.0/24"), .5, .01)}, "heavy-network 10.1.4.0/24"},
		"part of it":        {[]finding.Reading{reading(finding.PrefixShare, prefix("10.1.0.0/16"), .5, .1), reading(finding.PrefixShare, prefix("10.1.208.0/20"), .42, .01), reading(finding.PrefixShare, prefix("10.1.16.0/20"), .2, .01)}, "heavy-network 10.1.208.0/20"},
		"small table":       {[]finding.Reading{reading(finding.TooSmall, finding.Subject{Type: finding.Instance, Name: "lean on eth0"}, .5, .1)}, "table-too-small lean on eth0"},
	} {
		var got []string
		for _, f := range Diagnose(c.readings) {
			got = append(got, f.Key())
			if text := f.Sentence(); strings.Contains(text, "NaN") || strings.Contains(text, "%!") || !strings.Contains(text, f.Subject.Name) {
				t.Errorf("%s: %s", name, text)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// Two incidents at once are two findings, the graver first.
func TestBoth(t *testing.T) {
	got := Diagnose([]finding.Reading{reading(finding.HandshakeLate, prefix("10.2.3.0/24"), 90, 20), reading(finding.DNSRefused, eth0, .5, 1), reading(finding.DNSVanished, host("10.9.0.1"), .1, 30),
		usual(reading(finding.DNSVanished, host("10.9.0.2"), 30, 30))})
	if len(got) != 2 || got[0].Kind != finding.DNSUnanswered || got[1].Kind != finding.SlowNetwork {
		t.Errorf("%+v", got)
	}
}

// handshakes is a fridge's line with one group.
func handshakes(n int, p50 float64) report.Line {
	t := report.Table{Name: "groups"}
	for _, c := range []string{"group", "matched", "estimated", "estimated_low", "estimated_high", "p50_ns", "p50_low_ns", "p50_high_ns"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	if p50 > 0 {
		t.Rows = [][]any{{"10.2.0.0/24", 40., 40., 40., 40., p50, p50 * .95, p50 * 1.05}}
	}
	const length = 10e9
	return report.Line{Algorithm: "fridge", Identity: report.Identity{Instance: "connections", Interfaces: []string{"eth0"}}, Window: report.Window{Start: int64(n) * length, End: int64(n+1) * length}, Packets: report.Packets{Seen: 100, Parsed: 100},
		Report: report.Body{Values: []report.Value{{Name: "requests", Value: 40.}, {Name: "responses", Value: 40.}, {Name: "estimated", Value: 40.}, {Name: "matched", Value: 40.}, {Name: "inserted", Value: 40.}},
			Distributions: []report.Distribution{{Name: "delay_ns", Title: "delay from SYN to SYN-ACK"}}, Tables: []report.Table{t}}}
}

// A finding starts in the second window of its incident, is reported once, continues, and ends.
func TestEngine(t *testing.T) {
	e := New()
	var emitted []string
	for n := range 60 {
		p50 := 20e6
		if n >= 20 && n < 40 {
			p50 = 90e6
		}
		for _, f := range e.Line(handshakes(n, p50)) {
			emitted = append(emitted, string(f.State))
			switch f.State {
			case finding.Begins:
				if f.Numbers != "connections" || !strings.Contains(f.Next, "xdpmon history --algo fridge --instance connections --interface eth0") {
					t.Errorf("numbers of %q, next: %s", f.Numbers, f.Next)
				}
				if n != 21 && n != 22 || f.Kind != finding.SlowNetwork || f.Since != 200e9 {
					t.Errorf("window %d: %+v", n, f)
				}
			case finding.Ends:
				if n < 40 || n > 48 || f.Until != 400e9 {
					t.Errorf("window %d: %+v", n, f)
				}
			}
		}
		if n > 22 && n < 40 && len(e.Open()) != 1 {
			t.Errorf("window %d: %d are open", n, len(e.Open()))
		}
	}
	if strings.Join(emitted, " ") != "begins ends" {
		t.Errorf("got %v", emitted)
	}
}

// opened is a beaucoup's line, with an alert or without.
func opened(n int, alert bool) report.Line {
	l := handshakes(n, 20e6)
	l.Algorithm = "beaucoup"
	queries := report.Table{Name: "queries", Columns: []report.Column{{Name: "query"}, {Name: "threshold"}}, Rows: [][]any{{"port-scan", 200.}}}
	alerts := report.Table{Name: "alerts"}
	for _, c := range []string{"query", "key", "confidence", "count", "count_low", "count_high"} {
		alerts.Columns = append(alerts.Columns, report.Column{Name: c})
	}
	if alert {
		alerts.Rows = [][]any{{"port-scan", "src=10.1.1.7 dst=10.2.0.9", .99, 200., 120., 300.}}
	}
	l.Report = report.Body{Tables: []report.Table{queries, alerts}}
	return l
}

// An alert is raised once: one in a round whose other window was late is found with the next round.
func TestAlertOfAnIncompleteRound(t *testing.T) {
	e := New()
	var begun []string
	take := func(l report.Line) {
		for _, f := range e.Line(l) {
			if f.State == finding.Begins {
				begun = append(begun, f.Key())
			}
		}
	}
	for n := range 12 {
		take(opened(n, n == 8))
		if n != 8 { // its window is not read in time
			take(handshakes(n, 20e6))
		}
		if n < 9 && len(begun) > 0 {
			t.Fatalf("window %d: %v without a whole round", n, begun)
		}
	}
	if strings.Join(begun, ", ") != "scan 10.1.1.7" {
		t.Errorf("%v", begun)
	}
}

// A process that stood still ends some windows late, and others just before: the round that lacks them is not diagnosed, and the next one is of usual length.
func TestStallOfAnIncompleteRound(t *testing.T) {
	e := New()
	var begun []finding.Finding
	take := func(l report.Line, late int64) {
		l.Window.End += late
		for _, f := range e.Line(l) {
			if f.State == finding.Begins {
				begun = append(begun, f)
			}
		}
	}
	for n := range 12 {
		if n == 8 {
			take(opened(n, false), 7e9)
			continue
		}
		take(opened(n, false), 0)
		take(handshakes(n, 20e6), 0)
	}
	if len(begun) != 1 || begun[0].Kind != finding.WindowsLate || begun[0].Value.Value != 17e9 {
		t.Errorf("%+v", begun)
	}
}

// A heavy network stays one finding where for some windows a part of it has most, and for others none.
func TestHeavyNetworkIsOneFinding(t *testing.T) {
	e := New()
	var emitted []string
	wide, part := func(share float64) finding.Reading {
		return reading(finding.PrefixShare, prefix("10.1.0.0/16"), share, .05)
	}, func(share float64) finding.Reading {
		return reading(finding.PrefixShare, prefix("10.1.208.0/20"), share, .01)
	}
	for n, round := range [][]finding.Reading{{unsure(wide(.3)), part(.25)}, {wide(.3), part(.25)}, {wide(.4), part(.2)}, {wide(.4)}, {usual(wide(.05))}} {
		for _, f := range e.settle(Diagnose(round)) {
			emitted = append(emitted, fmt.Sprintf("%d: %s %s", n, f.State, f.Key()))
		}
	}
	if got := strings.Join(emitted, ", "); got != "0: begins heavy-network 10.1.208.0/20, 4: ends heavy-network 10.1.208.0/20" {
		t.Errorf("%s", got)
	}
}

// who makes a queue's packets wait, with a share of them, and what the queue drops.
func queued(n int, s finding.Symptom, share float64) finding.Reading {
	r := blamed(reading(s, queue, .9, .1), finding.Blame{Source: "10.1.1.1", Flow: "10.1.1.1:1 > 10.2.2.2:80/tcp", Part: share / 2}, finding.Blame{Source: "10.1.1.1", Flow: "10.1.1.1:2 > 10.2.2.2:80/tcp", Part: share / 2},
		finding.Blame{Source: "10.1.1.2", Flow: "10.1.1.2:1 > 10.2.2.2:80/tcp", Part: (1 - share) / 2}, finding.Blame{Source: "10.1.1.3", Flow: "10.1.1.3:1 > 10.2.2.2:80/tcp", Part: (1 - share) / 2})
	r.Latest = int64(n)
	return r
}

// A standing queue is one finding, by whichever measure it is seen, and while its user has a little less of it; what it drops meanwhile belongs to it.
func TestQueueIsOneFinding(t *testing.T) {
	e := New()
	var emitted []string
	for n, round := range [][]finding.Reading{
		{queued(0, finding.QueueWait, .7), reading(finding.QueueDrops, eth0, .09, 0)},
		{queued(1, finding.QueueStands, .5), queued(1, finding.QueueWait, .5), reading(finding.QueueDrops, eth0, .09, 0)},
		{queued(2, finding.QueueStands, .8), reading(finding.QueueDrops, eth0, .09, 0)},
		{usual(queued(3, finding.QueueStands, .5)), reading(finding.QueueDrops, eth0, .09, 0)},
	} {
		for _, f := range e.settle(Diagnose(round)) {
			emitted = append(emitted, fmt.Sprintf("%d: %s %s", n, f.State, f.Key()))
		}
	}
	if got := strings.Join(emitted, ", "); got != "0: begins unfair-user 10.1.1.1, 3: begins loss-in-queue eth0, 3: ends unfair-user 10.1.1.1" {
		t.Errorf("%s", got)
	}
}

// The networks of a flood of small flows are named by hhh where the table of large flows has no sender to the host.
func TestFloodNamesNetworks(t *testing.T) {
	flood := reading(finding.Flooded, finding.Subject{Type: finding.Service, Name: "10.2.2.2:443"}, 9000, 1000)
	share := reading(finding.PrefixShare, prefix("203.0.113.0/24"), .4, .01)
	large := blamed(usual(reading(finding.FlowShare, eth0, .1, .1)), finding.Blame{Source: "198.51.100.7", Destination: "10.2.2.2", Part: 500})
	for _, c := range []struct {
		readings []finding.Reading
		want     string
		named    bool
	}{
		{[]finding.Reading{flood, share}, "203.0.113.0/24 40.0 % of all packets", true},
		{[]finding.Reading{flood, reading(finding.PrefixShare, prefix("10.2.2.0/24"), .4, .01)}, "networks", false},
		{[]finding.Reading{flood, usual(share)}, "203.0.113.0/24", false},
		{[]finding.Reading{flood, share, large}, "203.0.113.0/24", false},
		{[]finding.Reading{flood, share, large}, "of the large flows, most packets to it are from 198.51.100.7", true},
	} {
		text := Diagnose(c.readings)[0].Because
		if strings.Contains(text, c.want) != c.named {
			t.Errorf("%q, named %q: want %t", text, c.want, c.named)
		}
	}
}

// The host that a step names is in the subject: the subject, one that is blamed, one that is late or unusual, or any that was measured, in this order.
func TestHostOfASubject(t *testing.T) {
	of := func(s finding.Symptom, name string, change func(*finding.Reading)) *finding.Reading {
		r := usual(reading(s, host(name), 1, 1))
		if change != nil {
			change(&r)
		}
		return &r
	}
	far := reading(finding.HandshakeLate, prefix("10.2.0.0/16"), 1, 1)
	for what, c := range map[string]struct {
		subject string
		blames  []finding.Blame
		hosts   []*finding.Reading
		want    string
	}{
		"a host":         {"10.2.0.7", nil, nil, "10.2.0.7"},
		"nothing":        {"10.2.0.0/16", nil, nil, ""},
		"a source":       {"10.2.0.0/16", []finding.Blame{{Source: "10.3.0.1", Destination: "10.3.0.2"}, {Source: "10.2.0.3", Destination: "10.3.0.2"}}, nil, "10.2.0.3"},
		"a destination":  {"10.2.0.0/16", []finding.Blame{{Source: "10.3.0.1", Destination: "10.2.0.4"}}, nil, "10.2.0.4"},
		"any":            {"10.2.0.0/16", nil, []*finding.Reading{of(finding.FlowShare, "10.3.0.1", nil), of(finding.FlowShare, "10.2.0.9", nil), of(finding.FlowShare, "10.2.0.8", nil)}, "10.2.0.8"},
		"an unusual one": {"10.2.0.0/16", nil, []*finding.Reading{of(finding.FlowShare, "10.2.0.8", nil), of(finding.FlowShare, "10.2.0.9", func(r *finding.Reading) { r.Apart = true })}, "10.2.0.9"},
		"an active one":  {"10.2.0.0/16", nil, []*finding.Reading{of(finding.FlowShare, "10.2.0.8", nil), of(finding.FlowShare, "10.2.0.9", func(r *finding.Reading) { r.Active = true })}, "10.2.0.9"},
		"one that is late": {"10.2.0.0/16", nil, []*finding.Reading{of(finding.FlowShare, "10.2.0.8", func(r *finding.Reading) { r.Active = true }),
			of(finding.HandshakeLate, "10.2.0.9", func(r *finding.Reading) { r.Active = true })}, "10.2.0.9"},
		"late as usual": {"10.2.0.0/16", nil, []*finding.Reading{of(finding.FlowShare, "10.2.0.8", func(r *finding.Reading) { r.Active = true }), of(finding.HandshakeLate, "10.2.0.9", nil)}, "10.2.0.8"},
		"no network":    {"eth0", []finding.Blame{{Source: "10.2.0.3"}}, []*finding.Reading{of(finding.FlowShare, "10.2.0.8", nil)}, ""},
	} {
		v := &view{by: map[finding.Symptom][]*finding.Reading{}}
		for _, r := range c.hosts {
			v.by[r.Symptom] = append(v.by[r.Symptom], r)
		}
		r := blamed(far, c.blames...)
		if got := v.hostIn(c.subject, &r); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if trace, named := v.trace(c.subject, &r), "mtr -rwc 100 "+c.want+":"; c.want != "" != strings.HasPrefix(trace, named) || c.want == "" && !strings.Contains(trace, "any host of "+c.subject) {
			t.Errorf("%s: %s", what, trace)
		}
	}
}

// A sentence names the three largest, and what their shares are of.
func TestLargestAreNamed(t *testing.T) {
	flows := []finding.Blame{{Flow: "b", Part: 1}, {Flow: "a", Part: 1}, {Flow: "d", Part: 6}, {Flow: "", Part: 1}, {Flow: "c", Part: 1}}
	if got, want := largest(flows), "; largest flows: d 60.0 %, a 10.0 %"; got != want { // one of three has no name
		t.Errorf("%q, want %q", got, want)
	}
	if flows[0].Flow != "b" {
		t.Error("the reading is sorted")
	}
	if largest(nil) != "" || largest([]finding.Blame{{Flow: "x"}}) != "" || topUsers(nil) != "" {
		t.Error("nothing is named")
	}
	if got, want := topUsers([]finding.Blame{{Flow: "a", Part: 3e6}, {Flow: "b", Part: 2e6}, {Flow: "c", Part: 1e6}, {Flow: "d", Part: 1}}), "; most: a 3.00 Mbit/s, b 2.00 Mbit/s, c 1.00 Mbit/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	large := reading(finding.FlowShare, eth0, 1, 1)
	large = blamed(large, finding.Blame{Source: "1", Destination: "10.9.9.9", Part: 2}, finding.Blame{Source: "2", Destination: "10.9.9.9", Part: 3}, finding.Blame{Source: "1", Destination: "10.9.9.9", Part: 2}, finding.Blame{Source: "3", Destination: "10.9.9.8", Part: 9},
		finding.Blame{Source: "4", Destination: "10.9.9.9", Part: 1}, finding.Blame{Source: "5", Destination: "10.9.9.9", Part: .5}, finding.Blame{Destination: "10.9.9.9", Part: 9}, finding.Blame{Source: "6", Destination: "10.9.9.9"})
	v := &view{by: map[finding.Symptom][]*finding.Reading{finding.FlowShare: {&large}}}
	if got, want := v.sources("10.9.9.9"), "; of the large flows, most packets to it are from 1, 2, 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i, share := range []float64{.1, .4, .2, .3, .9, .9} {
		r := reading(finding.PrefixShare, prefix([]string{"10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16", "10.9.0.0/16", "10.5.0.0/16"}[i]), share, .01)
		r.Apart = i < 5
		v.by[finding.PrefixShare] = append(v.by[finding.PrefixShare], &r)
	}
	if got, want := v.sources("10.9.9.7"), "; networks that send more than usual meanwhile: 10.2.0.0/16 40.0 %, 10.4.0.0/16 30.0 %, 10.3.0.0/16 20.0 % of all packets"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := v.sources("no address"); got != "" {
		t.Errorf("%q", got)
	}
}

// A capture has no store and no queue: its steps and sentences are about the capture.
func TestStepsOfACapture(t *testing.T) {
	live, capture := reading(finding.Resent, eth0, 1, 1), reading(finding.Resent, eth0, 1, 1)
	capture.Command, live.Source = "xdpmon replay f", "lean\x00uplink/eth0\x00x"
	for got, want := range map[string]string{
		history(&live): "xdpmon history --algo test --instance uplink --interface eth0", history(&capture): "xdpmon replay f --algo test", at(&live): "eth0", at(&capture): "the place of the capture",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if keyOf(&live) != "uplink/eth0" || keyOf(&capture) != "" || !strings.Contains(sentAgain(&live), "left eth0") || !strings.Contains(sentAgain(&capture), "capture") {
		t.Errorf("%q, %q, %q", keyOf(&live), sentAgain(&live), sentAgain(&capture))
	}
	live.Source = "lean\x00eth0\x00x"
	if got := history(&live); strings.Contains(got, "--instance") {
		t.Errorf("%q", got)
	}
}
