package precision

import (
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Plan implements algo.Planner: the maximum of entries, and the smallest flow that is found.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	load, err := heavy.ReadLoad(a)
	if err != nil {
		return nil, err
	}
	return c.ways.Plan(load, 1)
}
