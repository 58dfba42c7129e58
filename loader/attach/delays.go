package attach

import (
	"strings"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/qdisc"
)

// sayDelays warns of what keeps times of departure from limiting anything: a queue that sends packets when they are there, and aggregates that take longer than a packet may wait.
func (a *Attachment) sayDelays(d *Device, s loader.Steering) {
	late, err := qdisc.Untimed(d.Name, d.Index)
	switch {
	case err != nil:
		a.say("WARNING: %s: it is not known whether its queue keeps times of departure, which %s sets: %v", d.Name, s.By, err)
	case len(late) > 0:
		a.say("WARNING: %s: its queue (%s) does not keep times of departure, which %s sets: packets leave at once, and nothing is limited. "+
			"Use fq: tc qdisc replace dev %s root fq", d.Name, strings.Join(late, ", "), s.By, d.Name)
	}
	if s.Aggregate > 0 && uint64(d.GSOMax) > s.Aggregate {
		a.say("%s: three aggregates of %d bytes take longer than packets may wait with %s, and some are dropped: ip link set dev %s gso_max_size %d",
			d.Name, d.GSOMax, s.By, d.Name, s.Aggregate)
	}
}
