// Package report is the single model of an answer. An algorithm fills it; table, JSON and Prometheus metrics are derived from it
// alone, so that they agree.
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

	// Units for counted objects that the field's name does not give: a segment differs from a packet where packets stand for
	// several segments (GSO, GRO).
	Segments   Unit = "segments"
	Requests   Unit = "requests"
	Responses  Unit = "responses"
	Records    Unit = "records"
	Flows      Unit = "flows"
	Prefixes   Unit = "prefixes"
	Attributes Unit = "attributes"
	Events     Unit = "events"
)

// Counted is the name of the counted objects: "packets", "requests"; "" for a unit without one.
func (u Unit) Counted() string {
	switch u {
	case None, Count, Bytes, Nanosecond, Ratio, PerSecond, BitRate:
		return ""
	}
	return string(u)
}

// Kind is the type of the Prometheus metric.
type Kind uint8

const (
	Gauge   Kind = iota // value of this window
	Counter             // adds up over windows
	Info                // text or a setting: JSON and table only
)

// Promise is the kind of an estimate's low and high end.
type Promise uint8

const (
	// Interval: from the samples; it holds the truth in 93 to 98 % of runs. JSON: NAME_low, NAME_high.
	Interval Promise = iota
	// Bound: from theory, where samples are too few for an interval; it holds in 95 % of runs or more, and is wide. JSON:
	// NAME_at_least, NAME_at_most.
	Bound
)

// Value is one number or text with its name. Dots in Name make nested JSON objects ("delay_ns.p50").
type Value struct {
	Name  string
	Value any // int64, uint64, float64, string, bool
	Unit  Unit
	Kind  Kind
	// Low and High enclose Value with 95 % confidence, of the kind Promise; nil if the value is exact or has no bounds.
	Low, High any
	Promise   Promise
	Help      string // one line, for help texts and metrics
	// Answer marks the values that answer the user's question; the others are details of the measurement. JSON and metrics
	// contain all of them.
	Answer bool
}

// Quantile of a distribution.
type Quantile struct {
	Name      string  // JSON key: p50, p999
	Q         float64 // 0.5, 0.999
	Value     float64
	Low, High float64 // 95 % confidence, of the kind Promise
	Promise   Promise
	Defined   bool // false if there are too few samples
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
	// CountLow and CountHigh enclose Count with 95 % confidence, of the kind CountPromise; if both are 0, CountErr applies.
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
	// JSON marks columns for programs only, like a time by the packets' clock: tables omit them.
	JSON bool
	// Metric marks the columns whose values become metrics.
	Metric bool
	// Rate marks the columns that count packets or bytes of the window: tables also show them per second, bytes as bits.
	Rate bool
	// Counter marks the metric columns of a table of settings that are counters over time; their metrics include the time of the last
	// increase.
	Counter bool
	// History marks the columns whose past values a live table draws.
	History bool
	// Low and High name the columns that enclose this one with 95 % confidence, of the kind Promise, and Err the one with its
	// standard error; "" where there is none. A row without bounds has NaN there.
	Low, High, Err string
	Promise        Promise
	// Least and Most name the columns that bound a row without an interval; "" where there are none.
	Least, Most string
	// First: people see it directly after the row's names, if any row has a value; what is at the right is left out first on a narrow screen.
	First bool
	// Together: people see the value with its ends, Low and High, in one cell, and not in columns of their own.
	Together bool
}

// Table is a bounded list, best first: top flows, groups, prefixes.
type Table struct {
	Name    string // JSON key
	Title   string
	Columns []Column
	Rows    [][]any // int64, uint64, float64, string, bool; NaN is shown as "-"
	// Names are the names of the addresses and ports in the rows' labels, one list a row; nil where none are known.
	Names [][]known.Name
	Limit int // most rows, which bounds the label sets of metrics
	Help  string
	// Settings: the rows are named by the configuration of the run (its queries, its fridges), not by traffic.
	Settings bool
	// Details: the table is shown to people only with details.
	Details bool
	// Events: a row is an event of its window, which a live table shows for some more minutes.
	Events bool
	// Whole: names are useless when truncated, so on a narrow screen columns at the right are omitted first.
	Whole bool
}

// Body is the report of one algorithm on one window: report {...} in JSON, and of the same form truth {...}.
type Body struct {
	Values        []Value
	Distributions []Distribution
	Tables        []Table
	// Notes are sentences for the operator: limits of the numbers, and what to change. JSON: "notes".
	Notes    []string
	Overview Overview
}

// Overview names the values that an overview of many instances shows; "": not measured. JSON lines do not contain it.
type Overview struct {
	Lost, Back, Among string // the share of lost packets is (Lost - Back) / Among; Back counts those that arrived late
	Queue             string // the longest queueing delay
}

// Answering marks the values of these names as answers. If a body marks none, all of its values are answers.
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
	Last       bool // the run ends with this window
	// Stretched: more than 5 % longer than configured, because the machine was too busy, asleep or stopped.
	Stretched bool
	// Cut: shorter than configured, because the algorithm was added or removed within the window.
	Cut bool
}

// Packets counts the packets of a window.
type Packets struct {
	Seen, Parsed, Used uint64
	Segments           uint64 // segments of the packets seen: aggregates (GSO, GRO) have several
	UsedSegments       bool   // Used counts segments
	Bytes              uint64
	Reasons            map[string]uint64 // why packets were not fully parsed
	Verdicts           *Verdicts         // actions on packets; nil if no algorithm acts
	Queue              *Queue            // nil if no queue is observed
}

// Verdicts counts the actions of a chain on packets. All other packets passed unchanged.
type Verdicts struct {
	Dropped, DroppedBytes uint64 // bytes on the wire
	Marked                uint64 // ECN bits were set
	MarkedBefore          uint64 // ECN bits were to be set, and were set already
	Steered               uint64 // got another firewall mark, priority or departure time, for use within the host
	Unmarkable            uint64 // ECN bits were to be set, and the sender does not support ECN
}

// Queue counts packets handed to the interface's queue by their fate; in segments on the wire, unless stated otherwise.
type Queue struct {
	Carried, CarriedBytes uint64 // handed over
	Sent, SentBytes       uint64
	Dropped, DroppedBytes uint64
	Queued                uint64 // at the end of the window
	Missed                uint64 // since the start: handed over, but neither sent, dropped nor queued
	Bare                  uint64 // aggregates or packets that were sent without a record of being handed over
	Foreign               uint64 // ... whose metadata words were overwritten by another program
	Stale                 uint64 // ... whose metadata words are too old
	Unparsed              uint64 // ... whose headers could not be read
}

// Passed is how many packets were let through, marked or not.
func (p Packets) Passed() uint64 {
	if p.Verdicts == nil || p.Verdicts.Dropped > p.Seen {
		return p.Seen
	}
	return p.Seen - p.Verdicts.Dropped
}

// Plus adds the verdicts of another host or chain; either may be nil.
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
	Lost    map[string]uint64 // all possible losses, by name, also when 0
	Report  Body
	Truth   *Body  // with --truth
	Error   *Body  // relative errors of Report against Truth where names agree: Compare
	Hosts   *Hosts // hosts whose windows were merged; nil for a host's own window
	// Snapshot is the encoded snapshot that Report was computed from, for merging windows; nil unless requested. JSON omits it.
	Snapshot []byte
	// Encoding keeps the JSON for everybody who writes the line; nil: each encodes it.
	Encoding *Encoding

	recent bool // tables include rows of earlier windows
}

// Memory that an algorithm occupies.
type Memory struct {
	RegisterBytes int64 // declared bits of the register arrays and tallies, both banks, all CPUs
	KernelBytes   int64 // memory that the kernel allocates for them
}
