// Package report is the one model of an answer. An algorithm fills it; table, JSON and Prometheus metrics are
// drawn from it and from nothing else, so that they cannot disagree.
package report

import (
	"cmp"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// Unit of a value. JSON carries integers for ns, bytes and counts; tables scale them for people.
type Unit string

const (
	None       Unit = ""
	Count      Unit = "count"
	PacketUnit Unit = "packets" // not Packets: that is the type below
	Bytes      Unit = "bytes"
	Nanosecond Unit = "ns"
	Ratio      Unit = "ratio" // 0..1, shown as per cent
	PerSecond  Unit = "1/s"
	BitRate    Unit = "bit/s" // of bytes on the wire

	// What is counted, where the name alone does not say it: a segment is no packet where packets stand for many (GSO, GRO).
	Segments   Unit = "segments"
	Requests   Unit = "requests"
	Responses  Unit = "responses"
	Records    Unit = "records"
	Flows      Unit = "flows"
	Prefixes   Unit = "prefixes"
	Attributes Unit = "attributes"
	Events     Unit = "events"
)

// Counted is what a unit says that is counted: "packets", "requests"; "" for a unit that does not.
func (u Unit) Counted() string {
	switch u {
	case None, Count, Bytes, Nanosecond, Ratio, PerSecond, BitRate:
		return ""
	}
	return string(u)
}

// Kind tells Prometheus what a value is over time.
type Kind uint8

const (
	Gauge   Kind = iota // value of this window
	Counter             // adds up over windows
	Info                // text or a setting: JSON and table only
)

// Promise says what the low and high end of an estimate are.
type Promise uint8

const (
	// Interval: from the samples; it holds the truth in 93 to 98 % of runs. JSON: NAME_low, NAME_high.
	Interval Promise = iota
	// Bound: from theory, where samples are too few to say; it holds in 95 % of runs or more, and is wide.
	// JSON: NAME_at_least, NAME_at_most.
	Bound
)

// Value is one number or text with its name. Nested JSON objects come from dots in Name ("delay_ns.p50").
type Value struct {
	Name  string
	Value any // int64, uint64, float64, string, bool
	Unit  Unit
	Kind  Kind
	// Low and High enclose Value with 95 % confidence, as Promise says; nil when the value is exact or nothing can be promised.
	Low, High any
	Promise   Promise
	Help      string // one line, for help texts and metrics
	// Answer marks the values that people asked for; the others are details: how the measuring went. Programs get all of them.
	Answer bool
}

// Quantile of a distribution.
type Quantile struct {
	Name      string  // JSON key: p50, p999
	Q         float64 // 0.5, 0.999
	Value     float64
	Low, High float64 // 95 % confidence, as Promise says
	Promise   Promise
	Defined   bool // false when there are too few samples to say
}

// Bucket of a cumulative distribution.
type Bucket struct {
	Upper      float64 // inclusive upper bound, in the distribution's unit
	Cumulative float64 // estimated number of values <= Upper
}

// Distribution is an estimated distribution: percentiles, mean, CDF; a histogram in Prometheus.
type Distribution struct {
	Name     string // JSON key and metric stem: delay_ns
	Title    string
	Unit     Unit
	Count    float64 // estimated number of values
	CountErr float64 // its standard error
	// CountLow and CountHigh enclose Count with 95 % confidence, as CountPromise says; where both are 0 CountErr does.
	CountLow, CountHigh float64
	CountPromise        Promise
	Sum                 float64
	Mean                float64
	Quantiles           []Quantile
	Buckets             []Bucket // increasing
	Help                string
}

// Column of a table.
type Column struct {
	Name string // JSON key
	Unit Unit
	Help string
	// Label marks the columns that name a row; in Prometheus they become labels of a top-k metric.
	Label bool
	// JSON marks what only programs need, like a time in the clock of the packets: tables leave it away.
	JSON bool
	// Metric marks the columns whose values become metrics; the others are for people.
	Metric bool
	// Rate marks the columns that count packets or bytes of the window: people see them by the second as well, in bits where they are bytes.
	Rate bool
	// Counter marks the metric columns of a table of settings that count: over time they are counters, with the time when one last rose.
	Counter bool
	// History marks the columns of which a live table draws how they went.
	History bool
	// Low and High name the columns that enclose this one with 95 % confidence, as Promise says, and Err the one that holds its
	// standard error; "" where there is none. A row without a promise has NaN there.
	Low, High, Err string
	Promise        Promise
	// Least and Most name the columns that bound a row whose interval is not there; "" where there are none.
	Least, Most string
}

// Table is a bounded list, best first: top flows, groups, prefixes.
type Table struct {
	Name    string // JSON key
	Title   string
	Columns []Column
	Rows    [][]any // int64, uint64, float64, string, bool; NaN is shown as "-"
	// Names are what is known of what the rows' labels hold, as many as Rows; nil where nothing is.
	Names [][]known.Name
	Limit int // the bound that keeps label sets small
	Help  string
	// Settings: the rows are named by how the run was set up (its queries, its fridges), not by traffic.
	Settings bool
	// Details: people see the table only when they ask for details.
	Details bool
	// Events: a row is an event of its window, which a live table shows for some minutes more.
	Events bool
	// Whole: names are of no use when they are cut, so that columns at the right go first when there is no room.
	Whole bool
}

// Body is what one algorithm says of one window: report {...} in JSON, and in the same shape truth {...}.
type Body struct {
	Values        []Value
	Distributions []Distribution
	Tables        []Table
	// Notes are sentences for the operator: what the numbers cannot show, what to change. JSON: "notes".
	Notes    []string
	Overview Overview
}

// Overview names the values that an overview of many instances shows; "" is not measured. JSON lines do without it.
type Overview struct {
	Lost, Back, Among string // the share of packets lost on the way is Lost less Back (those that arrived late), of Among
	Queue             string // the longest delay in a queue
}

// Answering marks the values of these names as answers. Where a body marks none, all of its values are.
func (b Body) Answering(names ...string) Body {
	for i := range b.Values {
		b.Values[i].Answer = b.Values[i].Answer || slices.Contains(names, b.Values[i].Name)
	}
	return b
}

// Window is a measured interval, in the clock of the packets (ns).
type Window struct {
	Start, End int64
	Number     int
	Last       bool // the run ends with this one
	// Stretched: more than 5 % longer than asked for, since the machine was too busy, asleep or stopped.
	Stretched bool
	// Cut: shorter than asked for, since the algorithm came or went in the middle of it.
	Cut bool
}

// Packets counts what went through.
type Packets struct {
	Seen, Parsed, Used uint64
	Segments           uint64 // what those seen stand for: aggregates (GSO, GRO) are several
	UsedSegments       bool   // Used counts segments
	Bytes              uint64
	Reasons            map[string]uint64 // why packets were not fully parsed
	Verdicts           *Verdicts         // what was done to them; nil where nothing acts
	Queue              *Queue            // nil where no queue is watched
}

// Verdicts are what a chain did to packets that acts on them. All others passed as they came.
type Verdicts struct {
	Dropped, DroppedBytes uint64 // bytes on the wire
	Marked                uint64 // ECN bits were set
	MarkedBefore          uint64 // ... were to be set, and came so
	Steered               uint64 // got another mark, priority or time of departure of the host's own
	Unmarkable            uint64 // ... were to be set, and the sender does not understand them
}

// Queue is what became of packets that were handed to the interface's queue: segments on the wire, unless something else is said.
type Queue struct {
	Carried, CarriedBytes uint64 // handed over
	Sent, SentBytes       uint64
	Dropped, DroppedBytes uint64
	Queued                uint64 // at the end of the window
	Missed                uint64 // of all since the start, seen in none of these places
	Bare                  uint64 // aggregates or packets that were sent and had not been handed over here
	Foreign               uint64 // ... whose words somebody else has written over
	Stale                 uint64 // ... whose words are too old
	Unparsed              uint64 // ... whose headers could not be read
}

// Passed is how many packets were let through, marked or not.
func (p Packets) Passed() uint64 {
	if p.Verdicts == nil || p.Verdicts.Dropped > p.Seen {
		return p.Seen
	}
	return p.Seen - p.Verdicts.Dropped
}

// Plus adds what was done elsewhere; either may be nil.
func (v *Verdicts) Plus(w *Verdicts) *Verdicts {
	if v == nil || w == nil {
		return cmp.Or(v, w)
	}
	return &Verdicts{v.Dropped + w.Dropped, v.DroppedBytes + w.DroppedBytes, v.Marked + w.Marked, v.MarkedBefore + w.MarkedBefore,
		v.Steered + w.Steered, v.Unmarkable + w.Unmarkable}
}

// Line is one window of one algorithm: one JSON line.
type Line struct {
	Algorithm string
	Identity
	Window  Window
	Packets Packets
	Memory  Memory
	Lost    map[string]uint64 // everything that could be lost, by name, also when 0
	Report  Body
	Truth   *Body  // with --truth
	Error   *Body  // relative errors of Report against Truth where names agree: Compare
	Hosts   *Hosts // whose windows it is made of; nil for one host's own
	// Snapshot is what Report was made of, encoded, for those who merge windows; nil where nobody asked for it. JSON leaves it away.
	Snapshot []byte

	recent bool // tables have rows of earlier windows
}

// Memory that an algorithm occupies.
type Memory struct {
	RegisterBytes int64 // declared bits of the register arrays and tallies, both banks, all CPUs
	KernelBytes   int64 // what the kernel allocates for them
}
