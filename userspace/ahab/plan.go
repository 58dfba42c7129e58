package ahab

import (
	"errors"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

var errPlan = errors.New("plan ahab")

// What a slice, and a countdown, take in registers: bytes. Tallies of both banks are among a slice's.
const (
	cellBytes  = 3 * 8
	debtBytes  = 8
	sliceBytes = 3*4 + 2*8 + 2*8 + 2*2*8
	markBytes  = 2 * 2 * 8 // ... of marks: that of one slice in ahab.form=table, where there are none
	boundBytes = 2 * 8     // ... of a ceiling, and what it refused: that of one slice in ahab.form=table, where there is none
	rootBytes  = 8         // ... of the ceiling of all slices
	waitBytes  = 12        // ... of a user of ahab.act=pace, in the place of a countdown's; of one where it is off
	sumBytes   = 2 * 8     // ... of two sums of a word each: that of one slice in ahab.form=exact, where they share the others' words
)

// columnsFrom and columnsTo are what ahab.columns allows.
const (
	columnsFrom = 64
	columnsTo   = 65536
)

// registerBytes of a sketch with so many columns.
func (c *config) registerBytes(columns int) int64 {
	marks, sums := int64(c.entries()), int64(1)
	if c.table {
		marks, sums = sums, marks
	}
	debts, waits := int64(c.flows), int64(1)
	if c.pace {
		debts, waits = waits, debts
	}
	return int64(columns)*cellBytes + debts*debtBytes + waits*waitBytes + int64(c.entries())*sliceBytes + marks*(markBytes+boundBytes) + rootBytes + sums*sumBytes
}

// Plan implements algo.Planner: the columns that fit, and how many users they distinguish. Of one user in twenty a rate reads too high by more
// than e / columns of all that arrives (section 6.4.2: three rows).
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	c, err := c.full()
	if err != nil {
		return nil, err
	}
	t := report.Table{Name: "options", Title: "columns", Settings: true, Limit: 4, Help: "what the memory gives, the largest first", Columns: []report.Column{
		{Name: "set", Label: true, Help: "parameters to give"},
		{Name: "memory", Unit: report.Bytes, Help: "what the registers take"},
		{Name: "rate_error", Unit: report.Ratio, Help: "of all that arrives: one user in twenty has more that is not its own"},
		{Name: "users", Unit: report.Count, Help: "that may be above the limit at once, so that this is a tenth of a share"},
	}}
	for columns := columnsTo; columns >= columnsFrom; columns /= 2 {
		if bytes := c.registerBytes(columns); bytes <= a.MemoryBytes {
			t.Rows = append(t.Rows, []any{fmt.Sprintf("columns=%d", columns), bytes, math.E / float64(columns), uint64(float64(columns) / (10 * math.E))})
		}
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("%w: --memory %s: %d slices and %d countdowns take %s with the smallest sketch: give as much, or a smaller ahab.flows", errPlan,
			report.Human(a.MemoryBytes, report.Bytes), c.entries()-1, c.flows, report.Human(c.registerBytes(columnsFrom), report.Bytes))
	}
	least := 8 * fullPacket / c.tau.Seconds()
	return &report.Body{Values: []report.Value{
		{Name: "memory", Value: a.MemoryBytes, Unit: report.Bytes, Help: "what the registers may take"},
		{Name: "least_limit", Value: math.Round(least), Unit: report.BitRate, Help: "what one packet of 1514 bytes reads as: limits should be larger, or ahab.tau"},
		{Name: "most_packets", Value: a.RatePerSecond, Unit: report.PacketUnit, Help: "that arrive in a second"},
	}, Tables: []report.Table{t}, Notes: []string{"a second pass writes a limit once in ahab.epoch and slice that sends: of " + report.Human(a.RatePerSecond, report.PacketUnit) + " a second at most " +
		report.Human(min(a.RatePerSecond, float64(len(c.slices)-1)/c.epoch.Seconds()), report.PacketUnit)}}, nil
}
