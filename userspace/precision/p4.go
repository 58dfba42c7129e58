package precision

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// twinForms: the twin counts packets of IPv4, by any key.
var twinForms = []algo.TwinForm{algo.Just("family", "4"), algo.Just("count", "packets"), algo.Just("ways", "2"), algo.Just("admission", "9/8"), algo.Just("delay", "0")}

// P4 implements algo.Twin. p4/precision/keys.p4 makes the key of the fields.
func (c *config) P4() (map[string]string, error) {
	parts := c.ways.P4()
	parts["params"] += fmt.Sprintf("#define PRECISION_FIELDS %d\n", c.ways.Spec.Fields)
	return parts, nil
}
