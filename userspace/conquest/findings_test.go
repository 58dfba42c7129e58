package conquest

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// A queue that has dropped nothing before and drops one packet in a hundred is found in the second window; one in a thousand, or ten packets once, begins nothing.
func TestFirstDrops(t *testing.T) {
	for name, c := range map[string]struct {
		dropped []uint64 // of 4,000
		want    int
	}{"one in a hundred": {[]uint64{43, 43, 43, 43}, 11}, "one in a thousand": {[]uint64{4, 4, 4, 4, 4, 4}, -1}, "once": {[]uint64{40, 0, 0, 0}, -1}} {
		streams, began := finding.NewStreams(), -1
		for n := range 10 + len(c.dropped) {
			q := &report.Queue{Carried: 4000}
			if n >= 10 {
				q.Dropped = c.dropped[n-10]
			}
			l := report.Line{Algorithm: Name, Identity: report.Identity{Interfaces: []string{"eth0"}}, Packets: report.Packets{Queue: q}, Report: report.Body{Values: []report.Value{{Name: "departures", Value: 4000.}, {Name: "congested", Value: 0.}, {Name: "tau_ns", Value: 1e6}}}}
			for _, r := range streams.Window(Name, findings(l).Measures, int64(n)*2e9, int64(n+1)*2e9) {
				if r.Symptom == finding.QueueDrops && r.Active && began < 0 {
					began = n
				}
			}
		}
		if began != c.want {
			t.Errorf("%s: found in window %d, want %d", name, began, c.want)
		}
	}
}
