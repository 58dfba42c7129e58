// Package finding is the model of a finding: what is wrong, where, since when, and how far from what is expected. It also holds what decides
// that something is wrong: expectations (promises, or a subject's own past) and the sequential test between them and a window's interval.
//
// The rules that read reports stand beside the algorithms (userspace/ALGORITHM/findings.go); what needs several algorithms stands in
// userspace/diagnose.
package finding

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// Kind of a finding. The words are an interface: they stand in JSON, metrics and alerts.
type Kind string

// What is wrong with traffic.
const (
	SlowNetwork      Kind = "slow-network"
	SlowServer       Kind = "slow-server"
	SlowReceiver     Kind = "slow-receiver"
	Unanswered       Kind = "unanswered"
	LossBefore       Kind = "loss-before"
	LossInQueue      Kind = "loss-in-queue"
	LossAfter        Kind = "loss-after"
	Reordering       Kind = "reordering"
	QueueDelay       Kind = "queue-delay"
	UnfairUser       Kind = "unfair-user"
	LinkFull         Kind = "link-full"
	Scan             Kind = "scan"
	Flood            Kind = "flood"
	FloodManySources Kind = "flood-many-sources"
	DNSSlow          Kind = "dns-slow"
	DNSUnanswered    Kind = "dns-unanswered"
	NTPSlow          Kind = "ntp-slow"
	NTPUnanswered    Kind = "ntp-unanswered"
	HeavyNetwork     Kind = "heavy-network"
	PromiseBroken    Kind = "promise-broken"
)

// What is wrong with measuring.
const (
	TableTooSmall Kind = "table-too-small"
	WindowsLate   Kind = "windows-late"
	Unparsed      Kind = "unparsed"
	OneDirection  Kind = "one-direction"
)

// Severity orders findings by harm.
type Severity int

// Info: worth knowing. Warning: users notice. Critical: a service fails, or a promise is broken.
const (
	Info Severity = iota
	Warning
	Critical
)

var severities = [...]string{"info", "warning", "critical"}

func (s Severity) String() string { return severities[s] }

// MarshalText writes the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Severity) UnmarshalText(text []byte) error {
	for i, word := range severities {
		if word == string(text) {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("read severity: %q is none of %s", text, strings.Join(severities[:], ", "))
}

// Of is the severity of a kind.
func Of(k Kind) Severity {
	switch k {
	case Unanswered, Flood, FloodManySources, DNSUnanswered, PromiseBroken:
		return Critical
	case Reordering, HeavyNetwork, TableTooSmall, WindowsLate, Unparsed, OneDirection:
		return Info
	}
	return Warning
}

// Kinds lists all kinds, the gravest first: metrics and documents are made from it.
func Kinds() []Kind {
	return []Kind{Unanswered, DNSUnanswered, Flood, FloodManySources, PromiseBroken, LossInQueue, LinkFull, UnfairUser, LossBefore, LossAfter,
		SlowNetwork, SlowServer, SlowReceiver, QueueDelay, DNSSlow, NTPUnanswered, NTPSlow, Scan, Reordering, HeavyNetwork, OneDirection, TableTooSmall, WindowsLate, Unparsed}
}

// Subject is who or what a finding is about.
type Subject struct {
	Type string `json:"type"` // one of the constants below
	Name string `json:"name"`
}

// Types of subjects.
const (
	Interface = "interface"
	Host      = "host"
	Service   = "service" // address and port
	Prefix    = "prefix"
	Flow      = "flow"
	Slice     = "slice"
	Queue     = "queue"
	Link      = "link"
	Domain    = "domain" // a pod, a domain: what an interface serves
	Instance  = "instance"
)

func (s Subject) String() string { return s.Name }

// Estimate is a value with the interval that encloses it; NaN ends stand for "no end is known".
type Estimate struct {
	Value, Low, High float64
	Unit             report.Unit
}

func (e Estimate) String() string {
	return report.Enclosed(e.Value, e.Low, e.High, e.Unit, report.Interval)
}

// Source is where an expectation is from.
type Source string

// A promise of the configuration; the subject's own past; a bound that holds for anybody.
const (
	FromPromise  Source = "promise"
	FromBaseline Source = "baseline"
	FromBound    Source = "bound"
)

// Expected is what a value is compared with.
type Expected struct {
	Estimate
	Source Source
}

// State of a finding over its life.
type State string

// States of a finding in the order of its life.
const (
	Begins State = "begins"
	GoesOn State = "goes_on"
	Ends   State = "ends"
)

// Finding is one answer: it begins, goes on and ends, and has the same ID in all of it.
type Finding struct {
	ID        string
	State     State
	Kind      Kind
	Severity  Severity
	Subject   Subject
	Interface string // of the instance that saw it; several are joined by a comma
	Numbers   string // key of the instance whose numbers these are (report.Identity.Key); "" where several hosts see it
	Capture   bool   // Interface is a capture; only known in the process that found it
	Since     int64  // ns since 1970 (or of the packets' clock where that is not known): begin of the first window that shows it
	Until     int64  // end of the last window that showed it; 0 while it goes on
	Seen      int64  // end of the latest window that shows it
	Windows   int    // that show it
	Value     Estimate
	Expected  Expected
	What      string       // of what Value is: "median delay from SYN to SYN-ACK"
	Because   string       // why this kind and no other; what accompanies it
	Next      string       // what to look at
	Evidence  []string     // names of report fields
	Hosts     []string     // that see it, at a coordinator
	Known     int          // hosts that could see it, at a coordinator
	Links     []string     // suspect links, where paths are known
	Names     []known.Name // of the addresses that subject and reason have; nothing is decided by them
	// Harm orders findings of one severity: how many times the value is what it should be.
	Harm float64
	// Lead is the stream of measures that leads to it: as long as that goes on, so does the finding.
	Lead string
	// Fresh: the latest window shows it. What is not may go on, and does not begin.
	Fresh bool
}

// Key names what is wrong and where: no two findings that go on have the same.
func (f *Finding) Key() string { return string(f.Kind) + " " + f.Subject.Name }

// Worse orders findings: the gravest first. Times the usual compare within a kind only: kinds have an order of their own.
func Worse(a, b *Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(b.Harm, a.Harm), cmp.Compare(a.ID, b.ID))
}

// rank is the place of a kind among all.
var rank = func() map[Kind]int {
	m := map[Kind]int{}
	for n, k := range Kinds() {
		m[k] = n
	}
	return m
}()

// headlines begin a sentence, by kind. %s is the subject.
var headlines = map[Kind]string{
	SlowNetwork:      "Slow network at %s",
	SlowServer:       "Slow servers at %s",
	SlowReceiver:     "%s takes data slowly",
	Unanswered:       "%s does not answer",
	LossBefore:       "Packets from %s are lost before they reach %[2]s",
	LossInQueue:      "The queue of %s drops packets",
	LossAfter:        "Packets to %s are lost after they leave %[2]s",
	Reordering:       "Packets from %s arrive out of order",
	QueueDelay:       "Packets wait in the queue of %s",
	UnfairUser:       "One flow fills the queue: %s",
	LinkFull:         "The link of %s is full",
	Scan:             "%s scans",
	Flood:            "%s is flooded",
	FloodManySources: "%s is flooded by many sources",
	DNSSlow:          "DNS server %s is slow",
	DNSUnanswered:    "DNS server %s does not answer",
	NTPSlow:          "Time server %s is slow",
	NTPUnanswered:    "Time server %s does not answer",
	HeavyNetwork:     "%s sends far more than usual, spread over many small hosts",
	PromiseBroken:    "The promise for %s is broken",
	TableTooSmall:    "The table of %s is too small for this traffic",
	WindowsLate:      "Windows on %s end late",
	Unparsed:         "Packets on %s cannot be read",
	OneDirection:     "Only one direction passes %s",
}

// wide are the headlines where the place is not narrower than an interface.
var wide = map[Kind]string{
	SlowNetwork:   "Slow network on %s",
	SlowServer:    "Slow servers on %s",
	SlowReceiver:  "On %s a receiver takes data slowly",
	Unanswered:    "On %s connections are not answered",
	DNSUnanswered: "On %s DNS questions are not answered",
	NTPUnanswered: "On %s NTP questions are not answered",
	DNSSlow:       "On %s DNS answers are slow",
	NTPSlow:       "On %s NTP answers are slow",
	LossBefore:    "Packets are lost before they reach %s",
	LossAfter:     "Packets are lost after they leave %s",
	Reordering:    "Packets arrive out of order on %s",
}

// single are the headlines of one connection.
var single = map[Kind]string{
	SlowNetwork:  "Slow path of one connection: %s",
	SlowServer:   "Slow server of one connection: %s",
	SlowReceiver: "Slow receiver of one connection: %s",
}

// partly are the headlines of an interface on which a part of the requests is answered: the words agree with the number.
var partly = map[Kind]string{
	Unanswered:    "On %s only %s of the connection requests (SYN) are answered",
	DNSUnanswered: "On %s only %s of the DNS questions are answered",
	NTPUnanswered: "On %s only %s of the NTP questions are answered",
}

// noneAnswered is the share of answers below which there are none.
const noneAnswered = .005

// place names where the packets were seen.
func (f *Finding) place() string {
	switch {
	case len(f.Hosts) > 0 || f.Interface == "":
		return "the hosts that see it"
	case f.Capture:
		return "the place of the capture " + f.Interface
	}
	return f.Interface
}

// Headline names kind and subject: "Slow network at 10.2.0.0/16".
func (f *Finding) Headline() string {
	subject := f.Subject.Name
	if n := f.nameOf(subject); n != "" {
		subject += " (" + n + ")"
	}
	words := []any{subject}
	if strings.Contains(headlines[f.Kind], "%[2]s") {
		words = append(words, f.place())
	}
	text := fmt.Sprintf(headlines[f.Kind], words...)
	if words, ok := wide[f.Kind]; ok && f.Subject.Type == Interface {
		text = fmt.Sprintf(words, subject)
	}
	if words, ok := single[f.Kind]; ok && f.Subject.Type == Flow {
		text = fmt.Sprintf(words, subject)
	}
	if words, ok := partly[f.Kind]; ok && f.Value.Unit == report.Ratio && f.Value.Value >= noneAnswered && f.Subject.Type == Interface {
		text = fmt.Sprintf(words, subject, report.Human(f.Value.Value, report.Ratio))
	} else if ok && f.Value.Unit == report.Count && f.Value.Value >= 1 {
		text = strings.Replace(text, "does not answer", "answers fewer requests", 1)
	}
	if f.Subject.Type == Host && f.Kind == SlowServer {
		text = "Slow server " + subject
	}
	if f.Subject.Type == Host && f.Kind == UnfairUser {
		text = "One host fills the queue: " + subject
	}
	if len(f.Hosts) > 0 {
		text += fmt.Sprintf(" (%d of %d hosts see it)", len(f.Hosts), f.Known)
	}
	return text
}

// nameOf is what is known of a word of the finding: "www.example.com, AS64500 Example, DE".
func (f *Finding) nameOf(of string) string {
	for _, n := range f.Names {
		if n.Of == of {
			return n.String()
		}
	}
	return ""
}

// others are names of what is not the subject: "10.0.0.9 is web-3".
func (f *Finding) others() string {
	var parts []string
	for _, n := range f.Names {
		if n.Of != f.Subject.Name && n.Known() {
			parts = append(parts, n.Of+" is "+n.String())
		}
	}
	return strings.Join(parts, ", ")
}

// Sentence is the finding for people: what, where, how much against what, since when, why, and what next.
func (f *Finding) Sentence() string {
	parts := f.Parts()
	text := parts[0] + ": " + strings.Join(parts[1:], "; ") + "."
	if f.Next != "" {
		text += " Next: " + f.Next
	}
	return text
}

// Steps takes the numbered steps of Next apart, each with its number.
func (f *Finding) Steps() (list []string) {
	rest := f.Next
	for n := 2; ; n++ {
		step, more, found := strings.Cut(rest, fmt.Sprintf("; %d. ", n))
		if step != "" {
			list = append(list, step)
		}
		if !found {
			return list
		}
		rest = fmt.Sprintf("%d. %s", n, more)
	}
}

// Parts are the lines of a finding for people: the headline, then what was measured, since when, and why.
func (f *Finding) Parts() []string {
	list := []string{f.Headline(), f.amount(), f.when()}
	for _, text := range []string{f.Because, f.links(), f.others()} {
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (f *Finding) links() string {
	if len(f.Links) == 0 {
		return ""
	}
	return "suspect links: " + strings.Join(f.Links, ", ")
}

// amount is "median delay: 420 ms (380 .. 470), usually 38 ms".
func (f *Finding) amount() string {
	text := f.What + ": " + f.Value.String()
	if f.What == "" {
		text = f.Value.String()
	}
	switch e := f.Expected; e.Source {
	case FromPromise:
		text += ", promised at most " + report.Human(e.High, e.Unit)
		if e.High < e.Low || e.High != e.High {
			text = strings.Replace(text, "at most "+report.Human(e.High, e.Unit), "at least "+report.Human(e.Low, e.Unit), 1)
		}
	case FromBaseline:
		text += ", usually " + report.Human(e.Value, e.Unit)
		if e.High > e.Value {
			text += " (up to " + report.Human(e.High, e.Unit) + ")"
		}
	case FromBound:
		if e.High == e.High {
			text += ", expected at most " + report.Human(e.High, e.Unit)
		} else if e.Low == e.Low {
			text += ", expected at least " + report.Human(e.Low, e.Unit)
		}
	}
	return text
}

// when is "since 03:12:20", or "from 03:12:20 to 03:15:00".
func (f *Finding) when() string {
	if f.Until > 0 {
		return "from " + Clock(f.Since) + " to " + Clock(f.Until)
	}
	return "since " + Clock(f.Since)
}

// unix2000 distinguishes clocks: ns since 1970 are above it, ns since boot below.
const unix2000 = 946684800e9

// Clock writes a time for people: date and time of day (UTC), or seconds of a clock that no calendar knows.
func Clock(ns int64) string {
	if ns < unix2000 {
		return fmt.Sprintf("%.1f s", float64(ns)/1e9)
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC")
}
