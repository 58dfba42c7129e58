package conquest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

var errPlan = errors.New("plan conquest")

// falsely is how many packets of small flows may be taken for those of a culprit because they collide with others.
const falsely = 0.01

// Plan implements algo.Planner: for every number of snapshots the columns that fit, and from which alpha on they are enough.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	if a.MaxDelayNS < 20_000 || a.MaxDelayNS > 2e9 {
		return nil, fmt.Errorf("%w: --max-delay %s: allowed are 20us to 2s, the longest delay of the queue", errPlan, report.Human(a.MaxDelayNS, report.Nanosecond))
	}
	t := report.Table{Name: "options", Title: "Snapshots", Settings: true, Limit: 3, Help: "what the memory gives, by the number of snapshots", Columns: []report.Column{
		{Name: "set", Label: true, Help: "parameters to give"},
		{Name: "interval_ns", Unit: report.Nanosecond, Help: "length of a snapshot"},
		{Name: "memory", Unit: report.Bytes, Help: "what the registers take"},
		{Name: "alpha_from", Unit: report.Ratio, Help: "smallest conquest.alpha at which less than 1 % of the packets of small flows collide into a culprit"},
		{Name: "packets", Unit: report.PacketUnit, Help: "that leave in an interval"},
		{Name: "tofino_stages", Help: "stages of its registers, of 12 on Tofino 1"},
	}}
	for n := 4; n <= mostSnapshots; n *= 2 {
		o := c.option(n, a)
		if o == nil {
			continue
		}
		set := fmt.Sprintf("snapshots=%d columns=%d interval=%s tau=%s", n, o.columns, report.Human(o.interval(), report.Nanosecond), report.Human(a.MaxDelayNS/8, report.Nanosecond))
		t.Rows = append(t.Rows, []any{set, o.interval(), o.registerBytes(), o.alphaFrom(), a.RatePerSecond * float64(o.interval()) / 1e9, int64(o.stages())})
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("%w: %s hold no four snapshots of %d columns: give %s or more", errPlan, report.Human(a.MemoryBytes, report.Bytes), leastColumns,
			report.Human(c.with(4, leastColumns, a.MaxDelayNS).registerBytes(), report.Bytes))
	}
	b := &report.Body{Values: []report.Value{gauge("max_delay_ns", a.MaxDelayNS, report.Nanosecond, "longest delay of the queue"),
		gauge("memory", a.MemoryBytes, report.Bytes, "what the registers may take")}, Tables: []report.Table{t}}
	b.Notes = append(b.Notes, "more snapshots round less: take the last row whose alpha_from is below the share that you look for")
	return b, nil
}

// leastColumns of a plan.
const leastColumns = 64

func (c *config) with(snapshots, columns int, longest int64) *config {
	o := *c
	o.snapshots, o.columns, o.longest = snapshots, columns, longest
	o.shift = min(max(bits.Len64(uint64(longest/int64(snapshots)-1)), leastShift), mostShift)
	return &o
}

// option is the widest sketch of so many snapshots that fits.
func (c *config) option(snapshots int, a algo.PlanArgs) (found *config) {
	for columns := leastColumns; columns*c.queues <= mostColumns; columns *= 2 {
		if o := c.with(snapshots, columns, a.MaxDelayNS); o.registerBytes() <= a.MemoryBytes {
			found = o
		}
	}
	return found
}

// alphaFrom: others add 1/columns of the queue to a cell on average, so that a row adds alpha with a probability of at most
// 1/(columns alpha), and all rows with its power.
func (c *config) alphaFrom() float64 {
	return min(1, 1/(float64(c.columns)*math.Pow(falsely, 1/float64(c.rows))))
}

// stages of the registers: the peaks of bursts are in the last one.
func (c *config) stages() int { return c.arrays()["conquest_peak"].stage + 1 }
