package hhh

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Plan implements algo.Planner for random-prefix: counts of the family with the most levels are the least exact.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	load, err := heavy.ReadLoad(a)
	if err != nil {
		return nil, err
	}
	if c.stacking {
		return nil, fmt.Errorf("%w: stacking divides hhh.entries among its levels, each as good as a precision of that part: plan precision, or random-prefix", heavy.ErrPlan)
	}
	if c.whole {
		return nil, fmt.Errorf("%w: whole keys are exact with an entry for every address of a window (report: entries_used), and standard_error states what fewer cost: plan random-prefix", heavy.ErrPlan)
	}
	return c.ways.Plan(load, max(c.draws(true), c.draws(false)))
}
