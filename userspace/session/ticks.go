package session

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// pacer ticks the controllers of a replay by the packets' time.
type pacer struct {
	controllers []algo.ReplayController
	names       []string
	due         []int64 // next tick of each controller; 0: not known yet
}

func newPacer(members []*member) *pacer {
	p := &pacer{}
	for _, m := range members {
		if c, ok := m.instance.(algo.ReplayController); ok {
			p.controllers = append(p.controllers, c)
			p.names = append(p.names, m.selected.Descriptor.Name)
		}
	}
	p.restart()
	return p
}

// restart resets the due times at the start of a window.
func (p *pacer) restart() { p.due = make([]int64, len(p.controllers)) }

// at ticks the controllers that are due before a packet of time now; flush first runs the programs up to the packet before. After
// a gap in the capture there is one tick, not one for each interval of the gap.
func (p *pacer) at(start, now int64, flush func() error) error {
	for n, c := range p.controllers {
		if p.due[n] == 0 {
			p.due[n] = c.NextTick(start, now)
		}
		if now < p.due[n] {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if err := c.Tick(p.due[n]); err != nil {
			return fmt.Errorf("control %s: %w", p.names[n], err)
		}
		p.due[n] = c.NextTick(start, now)
	}
	return nil
}
