package lean

import (
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// stat numbers the statistics as enum lean_stat does.
type stat int

const (
	latency stat = iota
	loss
	ooo
	retrans
	stats
)

// statNames are the values of lean.stat and the names of the report's tables.
var statNames = [stats]string{"latency", "loss", "ooo", "retrans"}

func (s stat) String() string { return statNames[s] }

// place is a flow's position in its statistic's registers.
type place = sketch.Place

// layout is how the memory of a statistic is divided.
type layout struct {
	columns int            // of a row
	filter  int            // words of 32 bits of one of the two bit arrays
	tables  map[string]int // entries of the statistic's own arrays
	widths  map[string]int // bytes of an entry of them
}

// bytes of one bank.
func (l layout) bytes() int {
	n := 4*sketch.Rows*l.columns + 2*4*l.filter
	for name, entries := range l.tables {
		n += entries * l.widths[name]
	}
	return n
}

// statistic is one of the four: its layout and constants in the data plane, and how its values are reported.
type statistic interface {
	// layout divides scale times 40,000 bytes; scale is a power of two.
	layout(scale float64) layout
	// constants of the program, for the layout that was chosen.
	constants(l layout) map[constant.Name]any
	// unit converts a value of the sketch to the report's unit: a factor.
	unit() float64
	// value is the column that ranks: its name, unit and help.
	value() report.Column
	// estimate converts the sketch's value to the reported one (Algorithm 2 squares it).
	estimate(sketch float64) float64
	// values and notes of the window, from the counters.
	values(n counts) []report.Value
	notes(n counts) []string
	// lost counts the packets that this statistic could not examine, by the names of algo.Result.Lost.
	lost(n counts) map[string]uint64
}

// sampled is a statistic whose events are sampled. sampling is the variance that this adds to a flow's estimate; event is one
// event of the flow, 0 if unknown.
type sampled interface {
	sampling(estimate, event float64, n counts) float64
}

// keyed is a statistic that may hold its counts under keys instead of in the sketch; ok reports whether it does.
type keyed interface {
	decodeKeyed(array func(name string) []uint64, places []place, n counts) (d sketch.Decoded, ok bool)
	// keyedArrays are the registers that decodeKeyed reads.
	keyedArrays() []string
}

// newStatistic configures a statistic.
func newStatistic(s stat, v algo.Values, crc bool) (statistic, error) {
	switch s {
	case latency:
		return newLatency(v)
	case loss:
		return newLoss(v, crc)
	case ooo:
		return newOOO(v)
	}
	return newRetrans(v)
}

// ownTables are the arrays that belong to one statistic; those of a statistic that is off keep one entry.
var ownTables = func() (names []string) {
	for _, widths := range []map[string]int{latencyWidths, lossWidths, oooWidths, retransWidths, rateWidths} {
		for name := range widths {
			names = append(names, name)
		}
	}
	return names
}()

// eventUnit is what ooo and retrans count.
func eventUnit(bytes bool) report.Unit {
	if bytes {
		return report.Bytes
	}
	return report.PacketUnit
}
