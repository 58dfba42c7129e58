package conquest

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	fewestDepartures = 100
	standing         = .2 // share of a window's packets that wait conquest.tau: a burst now and then is no queue that stands
	moreStanding     = .15
	timesWait        = 3 // of the usual mean delay
	longerWait       = 5e6
	dropped          = .001
	fewestDropped    = 10
	dropScatter      = .001 // of the share that is dropped, between windows: most queues drop nothing
)

// findings are whether the queue stands or drops, and whose packets are in it.
func findings(l report.Line) (seen finding.Seen) {
	b, subject := l.Report, finding.Subject{Type: finding.Queue, Name: l.Place()}
	departures, congested := finding.Num(b, "departures"), finding.Num(b, "congested")
	m := finding.New(l, finding.QueueStands, subject, finding.Share(congested, departures), "share of packets that wait "+report.Human(finding.Num(b, "tau_ns"), report.Nanosecond)+" or longer",
		"conquest.congested", "conquest.departures", "conquest.culprits")
	m.Trials, m.Delta = departures, moreStanding
	if congested < standing*departures {
		m.Value.Low = 0
	}
	if !(departures >= fewestDepartures) {
		m.Weak = "fewer than 100 packets left the queue"
	}
	m.Blames = blames(b)
	wait := finding.New(l, finding.QueueWait, subject, waited(finding.Num(b, "mean_delay_ns")), "time that packets wait", "conquest.mean_delay_ns", "conquest.culprits")
	wait.Ratio, wait.Factor, wait.Delta, wait.Weak, wait.Blames = true, timesWait, longerWait, m.Weak, m.Blames
	peak := finding.New(l, finding.QueuePeak, subject, waited(finding.Num(b, "peak_delay_ns")), "longest time that a packet waits", "conquest.peak_delay_ns")
	peak.Weak = "it explains what is late, and is no symptom of its own"
	seen.Measures = append(seen.Measures, m, wait, peak)
	if q := l.Packets.Queue; q != nil && q.Carried > 0 {
		d := finding.New(l, finding.QueueDrops, subject, finding.Share(float64(q.Dropped), float64(q.Carried)), "share of packets that the queue drops", "packets.queue.dropped", "packets.queue.carried")
		d.Trials, d.Delta, d.Scatter = float64(q.Carried), dropped, dropScatter
		if q.Dropped < fewestDropped {
			d.Value.Low = 0
		}
		d.Blames = m.Blames
		seen.Measures = append(seen.Measures, d)
	}
	if unknown := float64(l.Lost["unmatched"]); unknown > departures/2 && departures >= fewestDepartures {
		seen.Unable = append(seen.Unable, "most packets on "+l.Place()+" have no known arrival at the queue: no delays (set conquest.source)")
	}
	return seen
}

func waited(ns float64) finding.Estimate {
	return finding.Estimate{Value: ns, Low: ns, High: ns, Unit: report.Nanosecond}
}

// blames are the flows of the queue: what left of each, and its share for certain.
func blames(b report.Body) (list []finding.Blame) {
	finding.Rows(b, "culprits", func(r finding.Row) {
		low, left := r.Num("share_at_least"), r.Num("left")
		if math.IsNaN(low) {
			low = 0
		}
		list = append(list, finding.Blame{Source: r.Text("src"), Destination: r.Text("dst"), Flow: r.FlowText(), Part: left, Low: low, High: r.Num("share_at_most")})
	})
	return list
}
