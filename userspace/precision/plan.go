package precision

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

var errPlan = errors.New("a plan for precision")

// plan implements algo.Descriptor.Plan: the most entries that fit, and from which size on a flow is found.
func plan(a algo.PlanArgs) (*report.Body, error) {
	cpus, window := maps.PossibleCPUs(), 10*time.Second
	for key, text := range a.Extra {
		var err error
		switch key {
		case "cpus":
			cpus, err = strconv.Atoi(text)
		case "window":
			window, err = time.ParseDuration(text)
		default:
			err = errors.New("known are cpus, window")
		}
		if err != nil || cpus < 1 || window <= 0 {
			return nil, fmt.Errorf("%w: --extra %s=%s: not allowed", errPlan, key, text)
		}
	}
	c, err := newConfig(a.Values, algo.Env{Replay: true})
	if err != nil {
		return nil, err
	}
	record := int64(8*(c.ways.Words+1)) * 2 * int64(cpus) // two banks
	entries := a.MemoryBytes / record
	if entries < int64(2*c.ways.Count) || a.RatePerSecond <= 0 {
		return nil, fmt.Errorf("%w: %s hold %d flows on %d CPUs, %d are the least; the rate must be positive", errPlan,
			report.Human(a.MemoryBytes, report.Bytes), entries, cpus, 2*c.ways.Count)
	}
	c.ways.Entries = c.ways.Count << (bits.Len64(uint64(entries)/uint64(c.ways.Count)) - 1)
	return c.planBody(a.RatePerSecond*window.Seconds()/float64(cpus), record), nil
}

// planBody: the counters of a CPU add up to the packets that it saw, at most; the smallest of d is below their mean.
func (c *config) planBody(packets float64, record int64) *report.Body {
	mean := packets / float64(c.ways.Entries)
	initial := float64(c.ways.Initial)
	return &report.Body{
		Values: []report.Value{
			{Name: "entries", Value: c.ways.Entries, Unit: report.Count, Help: "precision.entries"},
			{Name: "register_bytes", Value: record * int64(c.ways.Entries), Unit: report.Bytes, Help: "all arrays, both banks, all CPUs"},
			{Name: "record_bytes", Value: record, Unit: report.Bytes, Help: "of a flow, both banks, all CPUs"},
			{Name: "smallest", Value: mean + initial, Unit: report.PacketUnit, Help: "counter that a new flow competes with, at most, at the end of a window on one CPU"},
			{Name: "unseen_below", Value: unseen * (mean + initial), Unit: report.PacketUnit, Help: "with 95 % probability a flow with more packets on one CPU is listed"},
			{Name: "recirculated_share", Value: 1 / (initial + 1), Unit: report.Ratio, Help: "packets that pass twice, at most"},
		},
		Notes: []string{
			fmt.Sprintf("use it: xdpmon attach IFACE --algo precision --set precision.entries=%d", c.ways.Entries),
			"assumed: packets are spread evenly over the CPUs; --extra cpus=, window= change what is assumed.",
		},
	}
}
