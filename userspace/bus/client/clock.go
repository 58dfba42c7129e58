package client

import (
	"sync"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// sampled is how many round trips of hellos are stored to measure a clock. The one with the shortest round trip has the smallest
// error.
const sampled = 16

// drift is the largest relative drift of two computers' clocks: 100 ppm.
const drift = 1e-4

type sample struct{ at, offset, err int64 }

// clocks measures an agent's clock against its coordinator's.
type clocks struct {
	mu      sync.Mutex
	samples []sample
}

// add adds a hello and its answer: sent and received on the agent's clock, answered on the coordinator's. The answer was written between these
// two times, so that the middle is wrong by at most half of the round trip.
func (c *clocks) add(sent, answered, received int64) {
	if received < sent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, sample{received, answered - sent - (received-sent)/2, (received-sent)/2 + 1})
	if len(c.samples) > sampled {
		c.samples = c.samples[1:]
	}
}

// forget drops all samples, because another coordinator with another clock answers.
func (c *clocks) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = nil
}

// now is the best estimate of the samples. The error of an old sample grows by drift.
func (c *clocks) now(at int64) bus.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	best := bus.Clock{}
	for _, s := range c.samples {
		if err := s.err + int64(drift*float64(at-s.at)); !best.Known || err < best.Error {
			best = bus.Clock{Known: true, Offset: s.offset, Error: err}
		}
	}
	return best
}
