package attach

import (
	"strings"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/qdisc"
)

// warnDelays warns where times of departure cannot limit rates: a queueing discipline that ignores them, and aggregates that take longer than a
// packet may wait.
func (a *Attachment) warnDelays(d *Device, s loader.Steering) {
	late, err := qdisc.Untimed(d.Name, d.Index)
	switch {
	case err != nil:
		a.notify("WARNING: %s: it is not known whether its queueing discipline obeys times of departure, which %s sets: %v", d.Name, s.By, err)
	case len(late) > 0:
		a.notify("WARNING: %s: its queueing discipline (%s) ignores times of departure, which %s sets: packets leave at once, and nothing is limited. "+
			"Use fq: tc qdisc replace dev %s root fq", d.Name, strings.Join(late, ", "), s.By, d.Name)
	}
	if s.Aggregate > 0 && uint64(d.GSOMax) > s.Aggregate {
		a.notify("%s: three aggregates of %d bytes take longer than packets may wait with %s, and some are dropped; use smaller ones: ip link set dev %s gso_max_size %d",
			d.Name, d.GSOMax, s.By, d.Name, s.Aggregate)
	}
}
