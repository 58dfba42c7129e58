package ahab

import (
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// What happens above limits and ceilings.
const (
	actDrop = "drop"
	actPace = "pace"
)

// tolerance is how far a ceiling's word may be from the clock: what was not used before, or what waits.
func (c *config) tolerance() time.Duration {
	if c.pace {
		return c.horizon
	}
	return c.burst
}

// An epoch of pacing is 2^longestGrid ns, 67 ms, so that a user who is waiting has a packet in it, and shorter where that many bytes would fill a sum: 32 bits of 2^-4
// bytes.
const (
	longestGrid  = 26
	shortestGrid = 20
)

func (c *config) grid() uint32 {
	grid := uint32(longestGrid)
	for grid > shortestGrid && c.largest()*float64(int64(1)<<grid)/1e9*(1<<lengthShift) > 1<<31 {
		grid--
	}
	return grid
}

// largest rate that one of the slices may have, bytes a second.
func (c *config) largest() (rate float64) {
	if c.file != nil {
		rate = c.file.Capacity
	}
	for _, s := range c.slices {
		rate = max(rate, s.ceiling, float64(s.capacity))
	}
	return rate
}

// socketAggregates is how many aggregates a local socket hands to its queue before it waits for one to leave (TCP small queues), and one more.
const socketAggregates = 3

// Steers implements algo.Steerer.
func (i *instance) Steers() algo.Steering {
	if !i.pace || i.dry || i.replay {
		return algo.Steering{}
	}
	s := algo.Steering{By: Name + ".act=" + actPace, Delays: true}
	for _, slice := range i.slices[1:] {
		if slice.ceiling > 0 {
			if fits := uint64(slice.ceiling * i.horizon.Seconds() / socketAggregates); s.Aggregate == 0 || fits < s.Aggregate {
				s.Aggregate = max(fits, fullPacket)
			}
		}
	}
	return s
}
