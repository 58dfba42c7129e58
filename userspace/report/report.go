// Package report is the one model of an answer. An algorithm fills it; table, JSON and Prometheus metrics are
// drawn from it and from nothing else, so that they cannot disagree.
package report

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
)

// Kind tells Prometheus what a value is over time.
type Kind uint8

const (
	Gauge   Kind = iota // value of this window
	Counter             // adds up over windows
	Info                // text or a setting: JSON and table only
)

// Value is one number or text with its name. Nested JSON objects come from dots in Name ("delay_ns.p50").
type Value struct {
	Name  string
	Value any // int64, uint64, float64, string, bool
	Unit  Unit
	Kind  Kind
	// Low and High bound Value with 95 % confidence; nil when the value is exact. JSON: NAME_low, NAME_high.
	Low, High any
	Help      string // one line, for help texts and metrics
}

// Quantile of a distribution.
type Quantile struct {
	Name      string  // JSON key: p50, p999
	Q         float64 // 0.5, 0.999
	Value     float64
	Low, High float64 // 95 % confidence
	Defined   bool    // false when there are too few samples to say
}

// Bucket of a cumulative distribution.
type Bucket struct {
	Upper      float64 // inclusive upper bound, in the distribution's unit
	Cumulative float64 // estimated number of values <= Upper
}

// Distribution is an estimated distribution: percentiles, mean, CDF; a histogram in Prometheus.
type Distribution struct {
	Name      string // JSON key and metric stem: delay_ns
	Title     string
	Unit      Unit
	Count     float64 // estimated number of values
	CountErr  float64 // its standard error
	Sum       float64
	Mean      float64
	Quantiles []Quantile
	Buckets   []Bucket // increasing
	Help      string
}

// Column of a table.
type Column struct {
	Name string // JSON key
	Unit Unit
	Help string
	// Label marks the columns that name a row; in Prometheus they become labels of a top-k metric.
	Label bool
	// Metric marks the columns whose values become metrics; the others are for people.
	Metric bool
}

// Table is a bounded list, best first: top flows, groups, prefixes.
type Table struct {
	Name    string // JSON key
	Title   string
	Columns []Column
	Rows    [][]any // int64, uint64, float64, string, bool; NaN is shown as "-"
	Limit   int     // the bound that keeps label sets small
	Help    string
	// Whole: names are of no use when they are cut, so that columns at the right go first when there is no room.
	Whole bool
}

// Body is what one algorithm says of one window: report {...} in JSON, and in the same shape truth {...}.
type Body struct {
	Values        []Value
	Distributions []Distribution
	Tables        []Table
	// Notes are sentences for the operator: what the numbers cannot show, what to change. JSON: "notes".
	Notes []string
}

// Window is a measured interval, in the clock of the packets (ns).
type Window struct {
	Start, End int64
	Number     int
	Last       bool // the run ends with this one
}

// Packets counts what went through.
type Packets struct {
	Seen, Parsed, Used uint64
	Bytes              uint64
	Reasons            map[string]uint64 // why packets were not fully parsed
}

// Line is one window of one algorithm: one JSON line.
type Line struct {
	Algorithm string
	Interface string // of the instance: "eth0", "eth0,eth1", or the capture's name
	Window    Window
	Packets   Packets
	Memory    Memory
	Lost      map[string]uint64 // everything that could be lost, by name, also when 0
	Params    map[string]any
	Report    Body
	Truth     *Body // with --truth
	Error     *Body // relative errors of Report against Truth where names agree: Compare
}

// Memory that an algorithm occupies.
type Memory struct {
	RegisterBytes int64 // declared bits of the register arrays and tallies, both banks, all CPUs
	KernelBytes   int64 // what the kernel allocates for them
}
