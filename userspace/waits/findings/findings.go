// Package findings measures in waits' reports which connections wait for their receiver, the path or their server, for package diagnose.
package findings

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// What makes a connection's waits a finding: all of it is seen in one window, in comparison with the other connections of the same window.
const (
	fewestPeers = 10  // delays of all connections without which nobody's is called long
	longer      = 5   // times their median
	mostAlike   = 3   // connections with the same cause: more are no single ones, but how it is here
	mostClosed  = .1  // of the window that a receiver may make its sender wait
	fewestNS    = 2e8 // ... at least
)

// measure is a kind of finding from a row of the table of causes.
type measure struct {
	symptom  finding.Symptom
	what     string
	evidence string
	value    func(w *window, r finding.Row) (value finding.Estimate, bound float64)
}

var measures = map[string]measure{
	"receiver": {finding.ReceiverWaits, "share of the window that its sender waits", "waits.causes",
		func(w *window, r finding.Row) (finding.Estimate, float64) {
			return each(r, w.length, report.Ratio), max(mostClosed, fewestNS/w.length)
		}},
	"path": {finding.PathWaits, "delay of its path, on average of what waited for it", "waits.causes",
		func(w *window, r finding.Row) (finding.Estimate, float64) {
			e := each(r, r.Num("waits"), report.Nanosecond)
			if !(max(orNone(r.Num("server_leg_ns")), orNone(r.Num("client_leg_ns"))) > longer*w.path) {
				e.Low = 0 // a SYN that was lost makes a handshake long, too, and shows no leg
			}
			return e, longer * w.path
		}},
	"server": {finding.ServerWaits, "delay of its answers without that of the path, on average of those that are waits", "waits.causes",
		func(w *window, r finding.Row) (finding.Estimate, float64) {
			return each(r, r.Num("waits"), report.Nanosecond), longer * w.answer
		}},
}

// window has what all connections of a window take, ns; NaN where there are too few to know.
type window struct{ length, path, answer float64 }

// each is a row's time divided.
func each(r finding.Row, by float64, unit report.Unit) finding.Estimate {
	return finding.Estimate{Value: r.Num("waited_ns") / by, Low: r.Num("waited_at_least_ns") / by, High: r.Num("waited_at_most_ns") / by, Unit: unit}
}

// orNone is 0 for a number that is not known.
func orNone(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// typical is a median, if there are enough delays.
func typical(b report.Body, legs ...string) float64 {
	most := math.NaN()
	for _, leg := range legs {
		if m := finding.Num(b, leg+"_p50_ns"); finding.Num(b, leg+"s") >= fewestPeers && !(m <= most) {
			most = m
		}
	}
	return most
}

// Of measures the connections that wait because of their receiver, the path or their server.
func Of(l report.Line) (seen finding.Seen) {
	w := &window{length: float64(l.Window.End - l.Window.Start), path: typical(l.Report, "server_leg", "client_leg"), answer: typical(l.Report, "answer")}
	alike := map[finding.Symptom][]finding.Measure{}
	finding.Rows(l.Report, "causes", func(r finding.Row) {
		k, known := measures[r.Text("cause")]
		if !known {
			return
		}
		value, bound := k.value(w, r)
		if !(value.Low > bound) {
			return
		}
		m := finding.New(l, k.symptom, finding.Subject{Type: finding.Flow, Name: r.FlowText()}, value, k.what, k.evidence)
		m.Certain, m.Bound = true, bound
		m.Blames = []finding.Blame{{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText()}}
		alike[k.symptom] = append(alike[k.symptom], m)
	})
	for _, s := range []finding.Symptom{finding.ReceiverWaits, finding.PathWaits, finding.ServerWaits} {
		if list := alike[s]; len(list) <= mostAlike {
			seen.Measures = append(seen.Measures, list...)
		}
	}
	return seen
}
