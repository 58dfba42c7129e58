package hhh

import (
	"errors"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

var errP4 = errors.New("the P4 twin counts packets by the bytes of the IPv4 source, by a random prefix, in two ways with admission 9/8: " +
	"--set hhh.ways=2, and the defaults otherwise")

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	if c.stacking || c.bytes || c.step != 8 || c.ways.Spec.Fields != heavy.Src || c.ways.Count != 2 || c.ways.Admission != heavy.NineEighths || c.delay > 0 {
		return nil, fmt.Errorf("write P4: %w", errP4)
	}
	return c.ways.P4(), nil
}
