package session

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// pacer ticks the controllers of a replay by the packets' time.
type pacer struct {
	controllers []algo.ReplayController
	members     []*member
	due         []int64 // next tick of each controller
	starts      []int64 // start of the window that due was calculated for
}

func newPacer(members []*member) *pacer {
	p := &pacer{}
	for _, m := range members {
		if c, ok := m.instance.(algo.ReplayController); ok {
			p.controllers = append(p.controllers, c)
			p.members = append(p.members, m)
		}
	}
	p.due, p.starts = make([]int64, len(p.controllers)), make([]int64, len(p.controllers))
	return p
}

// at ticks the controllers that are due before a packet of time now; flush first runs the programs up to the packet before. After
// a gap in the capture there is one tick, not one for each interval of the gap.
func (p *pacer) at(now int64, flush func() error) error {
	for n, c := range p.controllers {
		start := p.members[n].group.window.Start
		if p.due[n] == 0 || p.starts[n] != start {
			p.due[n], p.starts[n] = c.NextTick(start, now), start
		}
		if now < p.due[n] {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if err := c.Tick(p.due[n]); err != nil {
			return fmt.Errorf("control %s: %w", p.members[n].selected.Descriptor.Name, err)
		}
		p.due[n] = c.NextTick(start, now)
	}
	return nil
}
