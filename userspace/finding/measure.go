package finding

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Symptom is what an algorithm's rule looks at; diagnosis reads several of them together.
type Symptom string

// Symptoms, by the algorithm that shows them.
const (
	HandshakeLate     Symptom = "handshake-late"     // fridge: SYN to SYN-ACK
	HandshakeLateP95  Symptom = "handshake-late-p95" // the same by percentiles that a promise may name
	HandshakeLateP99  Symptom = "handshake-late-p99"
	ClientLate        Symptom = "client-late"        // fridge: SYN-ACK to ACK
	DataLate          Symptom = "data-late"          // fridge: data to its ACK
	ZeroWindows       Symptom = "zero-windows"       // fridge: a receiver takes nothing more
	DurationLong      Symptom = "duration-long"      // fridge: connections last longer
	QueueWait         Symptom = "queue-wait"         // conquest: how long packets wait
	QueuePeak         Symptom = "queue-peak"         // ... at most
	HandshakeRefused  Symptom = "handshake-refused"  // fridge: share of SYNs that are answered
	HandshakeVanished Symptom = "handshake-vanished" // fridge: answers of a network
	DNSLate           Symptom = "dns-late"
	DNSRefused        Symptom = "dns-refused"
	DNSVanished       Symptom = "dns-vanished"
	NTPLate           Symptom = "ntp-late"
	NTPRefused        Symptom = "ntp-refused"
	NTPVanished       Symptom = "ntp-vanished"
	NoResponse        Symptom = "no-response" // fridge: not one packet that answers
	Holes             Symptom = "holes"       // lean: sequence numbers that are missing
	HolesFrom         Symptom = "holes-from"  // lean: sequence numbers of one network that are missing
	Resent            Symptom = "resent"      // lean: sent again though it had passed here
	ResentTo          Symptom = "resent-to"   // lean: the same to one network
	OutOfOrder        Symptom = "out-of-order"
	DataSegments      Symptom = "data-segments" // lean: segments with payload
	QueueStands       Symptom = "queue-stands"  // conquest: packets that waited
	QueueDrops        Symptom = "queue-drops"   // conquest: packets that the queue dropped
	SliceFull         Symptom = "slice-full"    // ahab: use of a slice's capacity
	SliceUnfair       Symptom = "slice-unfair"  // ahab: Jain's index
	FlowShare         Symptom = "flow-share"    // precision: largest share of a flow
	PrefixShare       Symptom = "prefix-share"  // hhh: share of a network without what is heavy in it
	Scanning          Symptom = "scanning"      // beaucoup
	Flooded           Symptom = "flooded"
	FloodedByMany     Symptom = "flooded-by-many"
	TooSmall          Symptom = "too-small"
	Late              Symptom = "late"
	Unread            Symptom = "unread"
	NotInside         Symptom = "not-inside"     // only addresses are read
	ReceiverWaits     Symptom = "receiver-waits" // waits: a connection whose receiver closes its window or acknowledges late
	PathWaits         Symptom = "path-waits"     // ... whose path is slow
	ServerWaits       Symptom = "server-waits"   // ... whose server answers late
)

// Blame is somebody's part of a measure, for symptoms whose place is known only from tables of the worst flows.
type Blame struct {
	Source, Destination string // addresses
	Flow                string
	Part                float64 // of the measure, in any unit
	Low, High           float64 // share of a whole, where it is one
}

// Measure is one number of a window that can show a symptom: what a rule makes of a report. One whose Subject has no name is about those that the window does not
// list: with Weak it can show the symptom of nobody, and why; without, each may have as much as Value.High. With Absent of at least that, a window that lists nobody is a window of the past of all who are listed later.
type Measure struct {
	Symptom   Symptom
	Subject   Subject
	Algorithm string
	Source    string // of the window: algorithm, instance, and what distinguishes several of an algorithm; set by Streams
	Instance  string // as windows name it (report.Line.Interface)
	Command   string // that looks at it again; "": xdpmon attach and the instance
	What      string // of what Value is, for the sentence
	Value     Estimate
	// Lower: small values are bad. Ratio: deviations multiply (delays); else they add (shares).
	Lower, Ratio bool
	// Trials of a share; 0 where it is none. Their binomial scatter is added to that of the past.
	Trials float64
	// Scatter is the smallest that is believed between windows, where it differs from that of most measures: of logarithms with Ratio.
	Scatter float64
	// Thin: so few values that chance makes large ones.
	Thin bool
	// Factor and Delta are the smallest deviation from the usual that counts, times and plus.
	Factor, Delta float64
	// Enough: from so many times the usual on one window is evidence, where it cannot be chance; 0: none is.
	Enough float64
	// Bound, where it is not NaN, is expected of anybody: no past is needed.
	Bound float64
	// Certain: the measure is an event of itself that needs no comparison.
	Certain bool
	// Absent is what a subject that is not in a window has, in families where that is known; NaN else.
	Absent float64
	// Row is the row of the subject in a table where several may have the same and one of a window takes it; 0: not known. Rows, of a measure whose Subject has
	// no name, are those that are taken: only subjects of these may have as much as Value.High.
	Row      int
	Rows     []int
	Blames   []Blame
	Evidence []string
	Next     string // what to change or look at, where the rule knows it
	Weak     string // why this window cannot show the symptom; "" when it can
}

// Seen is what the rules of an algorithm make of a window.
type Seen struct {
	Measures []Measure
	// Unable are sentences: what is not known of this window, and why.
	Unable []string
}

// Rule makes measures of a window. It is pure.
type Rule func(report.Line) Seen

// Named finds a value of a body by its name.
func Named(b report.Body, name string) (report.Value, bool) {
	for _, v := range b.Values {
		if v.Name == name {
			return v, true
		}
	}
	return report.Value{}, false
}

// Num is a value of a body as a number; NaN where it is missing or none.
func Num(b report.Body, name string) float64 {
	v, ok := Named(b, name)
	if !ok {
		return math.NaN()
	}
	return toNumber(v.Value)
}

func toNumber(value any) float64 {
	f, ok := report.Number(value)
	if !ok {
		return math.NaN()
	}
	return f
}

// Rows calls fn with a reader of each row of a table.
func Rows(b report.Body, table string, fn func(Row)) {
	for _, t := range b.Tables {
		if t.Name != table {
			continue
		}
		at := map[string]int{}
		for i, c := range t.Columns {
			at[c.Name] = i
		}
		for _, cells := range t.Rows {
			fn(Row{at, cells})
		}
	}
}

// Row reads cells by the names of their columns.
type Row struct {
	at    map[string]int
	cells []any
}

// Num is a cell as a number; NaN where it is missing or none.
func (r Row) Num(column string) float64 {
	i, ok := r.at[column]
	if !ok || i >= len(r.cells) {
		return math.NaN()
	}
	return toNumber(r.cells[i])
}

// Text is a cell as text.
func (r Row) Text(column string) string {
	i, ok := r.at[column]
	if !ok || i >= len(r.cells) {
		return ""
	}
	return report.Human(r.cells[i], report.None)
}

// FlowText writes a row's flow: "10.1.1.1:1234 > 10.2.2.2:443/tcp".
func (r Row) FlowText() string {
	end := func(address, port string) string {
		a, p := r.Text(address), r.Text(port)
		if p == "" || p == "0" {
			return a
		}
		return joinPort(a, p)
	}
	text := end("src", "sport") + " > " + end("dst", "dport")
	if proto := r.Text("proto"); proto != "" {
		text += "/" + proto
	}
	return text
}

func joinPort(address, port string) string {
	for _, c := range address {
		if c == ':' {
			return "[" + address + "]:" + port
		}
	}
	return address + ":" + port
}

// Share makes a measure's value of events among trials, with Wilson's 95 % interval.
func Share(events, trials float64) Estimate {
	if !(trials > 0) {
		return Estimate{math.NaN(), math.NaN(), math.NaN(), report.Ratio}
	}
	const z = report.Normal95
	p := min(1, max(0, events/trials))
	mid := (p + z*z/(2*trials)) / (1 + z*z/trials)
	half := z / (1 + z*z/trials) * math.Sqrt(p*(1-p)/trials+z*z/(4*trials*trials))
	return Estimate{p, max(0, min(p, mid-half)), min(1, max(p, mid+half)), report.Ratio}
}
