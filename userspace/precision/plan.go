package precision

import (
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// plan implements algo.Descriptor.Plan: the most entries that fit, and from which size on a flow is found.
func plan(a algo.PlanArgs) (*report.Body, error) {
	load, err := heavy.ReadLoad(a)
	if err != nil {
		return nil, err
	}
	c, err := newConfig(a.Values, algo.Env{Replay: true})
	if err != nil {
		return nil, err
	}
	return c.ways.Plan(load, 1)
}
