package hhh

import (
	"errors"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

var errP4 = errors.New("the P4 twin counts packets by the bytes of the IPv4 source, by a random prefix, in two ways with admission 9/8: " +
	"--set hhh.ways=2, and the defaults otherwise")

// p4 implements algo.Descriptor.P4.
func p4(v algo.Values) (map[string]string, error) {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		return nil, err
	}
	if c.stacking || c.bytes || c.step != 8 || c.ways.Spec.Fields != heavy.Src || c.ways.Count != 2 || c.ways.Admission != heavy.NineEighths || c.delay > 0 {
		return nil, fmt.Errorf("write P4: %w", errP4)
	}
	return c.ways.P4(), nil
}
