package beaucoup

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// half is the traffic of one of two hosts: every other packet of a key, and a tenth of those of the other host.
type half struct {
	scans
	host, n int
}

// Next implements traffic.Model.
func (h *half) Next(p *packet.Packet) bool {
	for h.scans.Next(p) {
		h.n++
		if round := h.n / h.keys; round%2 == h.host || round%20 == 1-h.host {
			return true
		}
	}
	return false
}

// Scans of which two hosts see half each, too little for an alert, cause one alert each when their windows are merged,
// and packets that both have seen count once: the count is that of one host that sees everything.
func TestMergedHosts(t *testing.T) {
	const keys, each = 40, 480
	set := map[string]string{"queries": "spread: count distinct dst by src > 384 in 10m", "export": "true"}
	model := scans{keys: keys, each: each, gap: 1000}
	merger, alone := beaucoup.NewMerger(), 0.0
	for host := range 2 {
		var out bytes.Buffer
		for _, l := range replayed(t, traffic.Frames(&half{scans: model, host: host}), session.Config{Seed: 3}, set) {
			alone += number(t, &l.Report, "alerts_raised")
			if err := json.NewEncoder(&out).Encode(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := merger.Read("host", &out); err != nil {
			t.Fatal(err)
		}
	}
	all := replayed(t, traffic.Frames(&model), session.Config{Seed: 3}, set)[0]
	merged := merger.Report()
	together, seen := map[string]float64{}, alertsOf(t, &all.Report, "spread")
	for _, row := range merged.Tables[0].Rows {
		together[row[1].(string)] = row[2].(float64)
	}
	t.Logf("%g alerts on two hosts, %d together, %d on one that sees everything", alone, len(together), len(seen))
	// With a deviation of a fifth, a threshold of 0.8 of the total is passed by 0.89 of the keys, and by 0.06 of what is 0.69 of that: 36 of
	// 40 keys and 5 of 80, and bounds two deviations away.
	if len(together) != len(seen) || len(seen) < keys*8/10 || alone > keys/4 {
		t.Errorf("%d keys are alerted together, %d on one host that sees everything, %g on each alone", len(together), len(seen), alone)
	}
	for key := range seen {
		if _, ok := together[key]; !ok {
			t.Errorf("%s is not alerted together", key)
		}
	}
}
