package precision

import (
	"errors"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

var errP4 = errors.New("the P4 twin counts packets of IPv4, by any key, in two ways, a power of two each, with admission 9/8: " +
	"precision.family=4, and the defaults otherwise")

// P4 implements algo.Twin. p4/precision/keys.p4 makes the key of the fields.
func (c *config) P4() (map[string]string, error) {
	if c.ways.Spec.Family != heavy.IPv4 || c.bytes || c.ways.Count != 2 || c.ways.Admission != heavy.NineEighths || c.delay > 0 {
		return nil, fmt.Errorf("write P4: %w", errP4)
	}
	parts := c.ways.P4()
	parts["params"] += fmt.Sprintf("#define PRECISION_FIELDS %d\n", c.ways.Spec.Fields)
	return parts, nil
}
