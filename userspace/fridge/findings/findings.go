// Package findings derives measures from a fridge's reports: delays of networks and servers, and unanswered requests.
package findings

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// symptoms of a matching rule: delays, the answered share, answers of a group.
type symptoms struct{ late, refused, vanished finding.Symptom }

var symptomsOf = map[delay.Kind]symptoms{
	delay.TCPHandshake: {finding.HandshakeLate, finding.HandshakeRefused, finding.HandshakeVanished},
	delay.TCPData:      {late: finding.DataLate},
	delay.TCPTimestamp: {late: finding.DataLate},
	delay.DNS:          {finding.DNSLate, finding.DNSRefused, finding.DNSVanished},
	delay.NTP:          {finding.NTPLate, finding.NTPRefused, finding.NTPVanished},
	delay.TCPDuration:  {late: finding.DurationLong},
}

// Minimum evidence of a window, and the deviations from the usual that are reported as findings.
const (
	fewestAnswers    = 8 // of a group; its median is then within one of the middle four with probability .93
	thinAnswers      = 2 // of a group: fewer are not evaluated, and up to fewestAnswers only large deviations are
	thinTimes        = 3 // times the usual: a large deviation
	thinLater        = 20e6
	fewestHandshakes = 20 // for the answered share
	fewestQuestions  = 6  // ... of questions that are one packet: two windows in which half is answered are then 4 standard deviations each
	durationScatter  = .2 // of a median of durations between windows, log: what is transferred differs
	largerDelay      = 1.5
	laterDelay       = 2e6  // ns
	longerFlow       = 2.5  // times: durations scatter with what is transferred
	laterFlow        = 50e6 // ns
	fewerAnswered    = .1   // share of requests
	overwrittenMost  = .5   // share of the requests whose records were overwritten: above, intervals are wide
	fewestVanished   = 2    // answers fewer than usual
	moreZeroWindows  = 3    // a window, and times the usual: a single window that closes and reopens is normal
	none             = .1   // answers: replaces 0, since logarithms are taken
	fridgeOthers     = "others"
	sizingNext       = "xdpmon plan fridge --rate REQUESTS/s; raise fridge.fridges (more entries, or a smaller probability)"
)

// Of measures delays and answers of a window.
func Of(l report.Line) (seen finding.Seen) {
	b := l.Report
	kind := kindOf(b)
	s, ok := symptomsOf[kind]
	if !ok {
		return seen
	}
	seen.Measures = append(groupMeasures(l, kind, s), refusals(l, s)...)
	if kind == delay.TCPData {
		seen.Measures = append(seen.Measures, zeroWindows(l)...)
	}
	if n := finding.Num(b, "matched"); n == 0 && finding.Num(b, "requests") == 0 {
		seen.Unable = append(seen.Unable, "no "+kind.String()+" requests on "+l.Place()+": their delays cannot be judged")
	}
	requests, evicted := finding.Num(b, "inserted"), float64(l.Lost["evicted"])
	small := finding.Small(l, evicted, requests, overwrittenMost, "share of requests whose records were overwritten", sizingNext, "fridge.lost.evicted", "fridge.fit")
	small.Subject.Name = "fridge (" + kind.String() + ") on " + l.Place()
	if fit, _ := finding.Named(b, "fit"); fit.Value != "over-subscribed" {
		small.Value = finding.Estimate{Unit: report.Ratio} // records of unanswered requests are overwritten in a table of any size
	}
	seen.Measures = append(seen.Measures, small)
	return seen
}

// kindOf reads the matching rule from the title of its delays.
func kindOf(b report.Body) delay.Kind {
	for _, d := range b.Distributions {
		if d.Name != "delay_ns" {
			continue
		}
		for k := range delay.KindNames {
			if delay.Kind(k).Title() == d.Title {
				return delay.Kind(k)
			}
		}
	}
	return delay.Kind(math.MaxUint32)
}

// groupMeasures are delays by group; without groups, those of all requests.
func groupMeasures(l report.Line, kind delay.Kind, s symptoms) (list []finding.Measure) {
	grouped, elsewhere := false, othersOf(l.Report)
	var rows []int
	finding.Rows(l.Report, "groups", func(r finding.Row) {
		grouped = true
		subject, ok := subjectOf(r.Text("group"))
		if !ok {
			return
		}
		rows = append(rows, rowOf(r))
		value := finding.Estimate{Value: r.Num("p50_ns"), Low: r.Num("p50_low_ns"), High: r.Num("p50_high_ns"), Unit: report.Nanosecond}
		list = append(list, late(l, kind, s.late, subject, value, r.Num("matched"), "groups.p50_ns"))
		if s.vanished != "" {
			list = append(list, vanished(l, s.vanished, subject, r, elsewhere))
		}
	})
	if s.vanished != "" && elsewhere > 0 {
		m := finding.New(l, s.vanished, finding.Subject{}, finding.Estimate{High: elsewhere, Unit: report.Requests}, "")
		m.Rows = rows
		list = append(list, m)
	}
	for _, d := range l.Report.Distributions {
		switch {
		case d.Name == "delay_ns" && !grouped && !hasTable(l.Report, "groups"):
			list = append(list, percentiles(l, kind, s.late, d)...)
		case d.Name == "ack_delay_ns":
			m := late(l, kind, finding.ClientLate, finding.Subject{Type: finding.Interface, Name: l.Place()}, quantileOf(d, .5), d.Count, "ack_delay_ns.p50")
			m.What = "median delay from SYN-ACK to ACK"
			list = append(list, m)
		}
	}
	return list
}

func hasTable(b report.Body, name string) bool {
	return slices.ContainsFunc(b.Tables, func(t report.Table) bool { return t.Name == name })
}

// percentiles of all delays: the median is compared with earlier windows, the others with agreements.
func percentiles(l report.Line, kind delay.Kind, s finding.Symptom, d report.Distribution) (list []finding.Measure) {
	subject := finding.Subject{Type: finding.Interface, Name: l.Place()}
	list = append(list, late(l, kind, s, subject, quantileOf(d, .5), d.Count, "delay_ns.p50"))
	if kind != delay.TCPHandshake {
		return list
	}
	for _, p := range []struct {
		symptom finding.Symptom
		at      float64
		name    string
	}{{finding.HandshakeLateP95, .95, "95"}, {finding.HandshakeLateP99, .99, "99"}} {
		m := late(l, kind, p.symptom, subject, quantileOf(d, p.at), d.Count, "delay_ns.p"+p.name)
		if m.What = p.name + "th percentile of the " + kind.Title(); m.Weak == "" {
			list = append(list, m)
		}
	}
	return list
}

func quantileOf(d report.Distribution, at float64) finding.Estimate {
	nan := math.NaN()
	for _, q := range d.Quantiles {
		if q.Q == at && q.Defined {
			e := finding.Estimate{Value: q.Value, Low: nan, High: nan, Unit: d.Unit}
			if q.Bounded() {
				e.Low, e.High = q.Low, q.High
			}
			return e
		}
	}
	return finding.Estimate{Value: nan, Low: nan, High: nan, Unit: d.Unit}
}

// late measures a delay. A window with few answers is not evaluated.
func late(l report.Line, kind delay.Kind, s finding.Symptom, subject finding.Subject, value finding.Estimate, samples float64, field string) finding.Measure {
	m := finding.New(l, s, subject, value, "median "+kind.Title(), "fridge."+field)
	m.Ratio, m.Factor, m.Delta = true, largerDelay, laterDelay
	if kind == delay.TCPDuration {
		m.Factor, m.Delta, m.Scatter = longerFlow, laterFlow, durationScatter
	}
	switch {
	case !(samples >= thinAnswers) || math.IsNaN(value.Value):
		m.Weak = "fewer than 2 answers"
	case samples < fewestAnswers:
		m.Thin, m.Factor, m.Delta = true, max(m.Factor, thinTimes), max(m.Delta, thinLater)
	}
	return m
}

// othersOf is how many answers of a window are of groups whose row another one had: of whom they are is not known.
func othersOf(b report.Body) (most float64) {
	finding.Rows(b, "groups", func(r finding.Row) {
		if n := r.Num("estimated_high"); r.Text("group") == fridgeOthers && n > 0 {
			most = n
		}
	})
	return most
}

// rowOf is the row of a group in the table of the data plane; 0 where it is not known.
func rowOf(r finding.Row) int {
	if n := r.Num("row"); n > 0 {
		return int(n)
	}
	return 0
}

// vanished measures the number of answers of a group; one that is absent from a window had none, but for those of others if another group has its row. The first
// group of a window has a row until its end: all its answers are there.
func vanished(l report.Line, s finding.Symptom, subject finding.Subject, r finding.Row, elsewhere float64) finding.Measure {
	row := rowOf(r)
	if row > 0 {
		elsewhere = 0
	}
	e := finding.Estimate{Value: max(r.Num("estimated"), none), Low: r.Num("estimated_low"), High: r.Num("estimated_high") + elsewhere, Unit: report.Requests}
	m := finding.New(l, s, subject, e, "answered requests", "fridge.groups.estimated")
	m.Lower, m.Ratio, m.Factor, m.Delta, m.Absent, m.Row = true, true, 3, fewestVanished, none, row
	if s == finding.HandshakeVanished {
		m.Delta = fewestAnswers / 2 // the clients of a server change; those of DNS and NTP are steady
	}
	return m
}

// zeroWindows measures how often receivers close their windows: in total, and for each receiver that does.
func zeroWindows(l report.Line) (list []finding.Measure) {
	all := finding.Num(l.Report, "zero_windows")
	if math.IsNaN(all) {
		return nil
	}
	add := func(subject finding.Subject, n float64, evidence string) {
		m := finding.New(l, finding.ZeroWindows, subject, finding.Estimate{Value: n, Low: n, High: n, Unit: report.Count}, "zero windows", evidence) // counted, not estimated
		m.Delta, m.Factor, m.Absent = moreZeroWindows, moreZeroWindows, 0
		list = append(list, m)
	}
	add(finding.Subject{Type: finding.Interface, Name: l.Place()}, all, "fridge.zero_windows")
	finding.Rows(l.Report, "groups", func(r finding.Row) {
		if n := r.Num("zero_windows"); n > 0 {
			if subject, ok := subjectOf(r.Text("group")); ok {
				add(subject, n, "fridge.groups.zero_windows")
			}
		}
	})
	return list
}

// refusals measure the share of requests that was answered.
func refusals(l report.Line, s symptoms) (list []finding.Measure) {
	if s.refused == "" {
		return nil
	}
	b, subject := l.Report, finding.Subject{Type: finding.Interface, Name: l.Place()}
	requests, answered, responses := finding.Num(b, "requests"), finding.Num(b, "estimated"), finding.Num(b, "responses")
	m := finding.New(l, s.refused, subject, finding.Share(min(answered, requests), requests), "share of requests that are answered", "fridge.match_rate", "fridge.requests", "fridge.estimated")
	m.Lower, m.Delta, m.Trials = true, fewerAnswered, requests
	nothing := finding.New(l, finding.NoResponse, subject, finding.Share(responses, requests), "answers of any kind", "fridge.requests", "fridge.responses")
	nothing.Lower, nothing.Bound = true, .001
	if responses == 0 {
		nothing.Value = finding.Estimate{Unit: report.Ratio}
	}
	switch handshakes := s.refused == finding.HandshakeRefused; {
	case handshakes && !(requests >= fewestHandshakes):
		m.Weak, nothing.Weak = "fewer than 20 requests", "fewer than 20 requests"
	case !(requests >= fewestQuestions):
		m.Weak = "fewer than 6 requests"
	}
	if s.refused != finding.HandshakeRefused {
		return []finding.Measure{m}
	}
	return []finding.Measure{m, nothing}
}

// subjectOf a group: "10.2.0.0/16", "192.0.2.1/32"; ports, VLANs and "others" are not networks or hosts.
func subjectOf(group string) (finding.Subject, bool) {
	p, err := netip.ParsePrefix(strings.TrimSpace(group))
	if err != nil {
		a, err := netip.ParseAddr(group)
		return finding.Subject{Type: finding.Host, Name: group}, err == nil && a.IsValid()
	}
	if p.IsSingleIP() {
		return finding.Subject{Type: finding.Host, Name: p.Addr().String()}, true
	}
	return finding.Subject{Type: finding.Prefix, Name: p.String()}, true
}
