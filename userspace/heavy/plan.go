package heavy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrPlan is wrapped when a plan cannot be made.
var ErrPlan = errors.New("a plan for heavy hitters")

// Load is the traffic and memory that a plan is made for.
type Load struct {
	Packets float64 // of a window, on one CPU
	CPUs    int
	Memory  int64 // bytes
}

// leastEntries is the smallest useful size of a table.
const leastEntries = 64

// ReadLoad reads the arguments of `xdpmon plan`.
func ReadLoad(a algo.PlanArgs) (Load, error) {
	l, window := Load{CPUs: maps.PossibleCPUs(), Memory: a.MemoryBytes}, 10*time.Second
	for key, text := range a.Extra {
		var err error
		switch key {
		case "cpus":
			l.CPUs, err = strconv.Atoi(text)
		case "window":
			window, err = time.ParseDuration(text)
		default:
			err = errors.New("known are cpus, window")
		}
		if err == nil && (l.CPUs < 1 || window <= 0) {
			err = errors.New("it must be positive")
		}
		if err != nil {
			return l, fmt.Errorf("%w: --extra %s=%s: %w", ErrPlan, key, text, err)
		}
	}
	if !(a.RatePerSecond > 0) || l.Memory <= 0 {
		return l, fmt.Errorf("%w: rate and memory must be positive", ErrPlan)
	}
	l.Packets = a.RatePerSecond * window.Seconds() / float64(l.CPUs)
	return l, nil
}

// passes are the second passes of so many packets on one CPU, at most on average: an entry grows from v to v + 1 by one in v + 1.
func (w *Ways) passes(packets float64) float64 {
	entries, initial := float64(w.Entries), float64(w.Initial)
	return min(packets/(initial+1), entries*(math.Sqrt(initial*initial+2*packets/entries)-initial))
}

// plannedUnseen is UnseenAmong for a window of so many packets of flows without an entry, at whose end every entry has the same value: on
// one CPU, and without heavy flows.
func (w *Ways) plannedUnseen(packets, value float64) float64 {
	w.contest = contest{rivals: []rival{{value, 1}}, values: []float64{value}, entries: w.Entries / w.Count, start: float64(w.Initial)}
	return w.UnseenAmong(packets)
}

// Plan gives the ways as many entries as the memory allows, a power of two each. levels is the factor of counts: 1, or
// the levels that a packet's prefix is drawn from.
func (w Ways) Plan(l Load, levels float64) (*report.Body, error) {
	record := int64(8*(w.Words+1)) * 2 * int64(l.CPUs) // two banks
	entries := l.Memory / record
	if entries < leastEntries {
		return nil, fmt.Errorf("%w: %s hold %d records of %s on %d CPUs: give %s at least", ErrPlan, report.Human(l.Memory, report.Bytes),
			entries, report.Human(record, report.Bytes), l.CPUs, report.Human(record*leastEntries, report.Bytes))
	}
	w.Entries = w.Count << (bits.Len64(uint64(entries)/uint64(w.Count)) - 1)
	// The counters of a CPU add up to the packets that it saw, at most; the smallest of d is below their mean.
	value := l.Packets/float64(w.Entries) + float64(w.Initial)
	smallest := levels * value
	return &report.Body{
		Values: []report.Value{
			{Name: "entries", Value: w.Entries, Unit: report.Count, Help: w.Prefix + ".entries"},
			{Name: "register_bytes", Value: record * int64(w.Entries), Unit: report.Bytes, Help: "all arrays, both banks, all CPUs"},
			{Name: "record_bytes", Value: record, Unit: report.Bytes, Help: "of an entry, both banks, all CPUs"},
			{Name: "smallest", Value: smallest, Unit: report.PacketUnit, Help: "what a newcomer competes with at the end of a window, at most; also the standard error of a count"},
			{Name: "unseen_below", Value: levels * w.plannedUnseen(l.Packets, value), Unit: report.PacketUnit, Help: "with 95 % probability what has more packets on one CPU is remembered"},
			{Name: "recirculated_share", Value: w.passes(l.Packets) / l.Packets, Unit: report.Ratio, Help: "packets that pass twice, at most on average"},
		},
		Notes: []string{
			fmt.Sprintf("use it: xdpmon attach IFACE --algo %s --set %s.entries=%d", w.Prefix, w.Prefix, w.Entries),
			"assumed: packets are spread evenly over the CPUs, and no flow is heavy: heavy flows make the other counters smaller. --extra cpus=, window= change the load.",
		},
	}, nil
}
