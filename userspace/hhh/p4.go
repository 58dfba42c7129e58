package hhh

import "github.com/xdpmon/xdpmon/userspace/algo"

// twinForms: the twin counts packets by the bytes of the IPv4 source, by a random prefix.
var twinForms = []algo.TwinForm{algo.Just("method", auto, "random-prefix"), algo.Just("dimension", "src"), algo.Just("family", "4"), algo.Just("level", "byte"),
	algo.Just("count", "packets"), algo.Just("ways", "2"), algo.Just("admission", "9/8"), algo.Just("delay", "0")}

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	return c.ways.P4(), nil
}
