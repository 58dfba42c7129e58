package precision

import (
	"errors"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

var errP4 = errors.New("the P4 twin counts packets by the 5-tuple of IPv4 in two ways, a power of two each, with admission 9/8")

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	if c.ways.Spec.Fields != heavy.FiveTuple || c.bytes || c.ways.Count != 2 || c.ways.Admission != heavy.NineEighths || c.delay > 0 {
		return nil, fmt.Errorf("write P4: %w", errP4)
	}
	return c.ways.P4(), nil
}
