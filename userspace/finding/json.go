package finding

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// form is a finding as JSON writes it. The names are an interface: they stay.
type form struct {
	ID           string       `json:"id"`
	State        State        `json:"state"`
	Kind         Kind         `json:"kind"`
	Severity     Severity     `json:"severity"`
	Subject      Subject      `json:"subject"`
	Interface    string       `json:"interface"`
	Key          string       `json:"key,omitempty"`
	Since        int64        `json:"since"`
	Until        *int64       `json:"until"`
	SinceTime    *string      `json:"since_time"`
	UntilTime    *string      `json:"until_time"`
	Windows      int          `json:"windows"`
	What         string       `json:"what"`
	Unit         string       `json:"unit"`
	Value        *float64     `json:"value"`
	Low          *float64     `json:"low"`
	High         *float64     `json:"high"`
	Expected     *float64     `json:"expected"`
	ExpectedLow  *float64     `json:"expected_low"`
	ExpectedHigh *float64     `json:"expected_high"`
	Source       Source       `json:"source"`
	Harm         float64      `json:"harm"`
	Because      string       `json:"because"`
	Next         string       `json:"next"`
	Evidence     []string     `json:"evidence"`
	Hosts        []string     `json:"hosts,omitempty"`
	Known        int          `json:"hosts_known,omitempty"`
	Links        []string     `json:"suspect_links,omitempty"`
	Names        []known.Name `json:"names,omitempty"`
	Text         string       `json:"text"`
}

// MarshalJSON writes the finding with its sentence. What is no number is null.
func (f Finding) MarshalJSON() ([]byte, error) {
	w := form{ID: f.ID, State: f.State, Kind: f.Kind, Severity: f.Severity, Subject: f.Subject, Interface: f.Interface, Key: f.Numbers, Since: f.Since, SinceTime: utc(f.Since), Windows: f.Windows,
		What: f.What, Unit: string(f.Value.Unit), Value: some(f.Value.Value), Low: some(f.Value.Low), High: some(f.Value.High), Expected: some(f.Expected.Value),
		ExpectedLow: some(f.Expected.Low), ExpectedHigh: some(f.Expected.High), Source: f.Expected.Source, Harm: f.Harm, Because: f.Because, Next: f.Next, Evidence: f.Evidence,
		Hosts: f.Hosts, Known: f.Known, Links: f.Links, Names: f.Names, Text: f.Sentence()}
	if f.Until > 0 {
		w.Until, w.UntilTime = &f.Until, utc(f.Until)
	}
	if w.Evidence == nil {
		w.Evidence = []string{}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote; the sentence is made anew.
func (f *Finding) UnmarshalJSON(text []byte) error {
	var w form
	if err := json.Unmarshal(text, &w); err != nil {
		return fmt.Errorf("read finding: %w", err)
	}
	if _, known := headlines[w.Kind]; !known {
		return fmt.Errorf("read finding: unknown kind %.40q", w.Kind)
	}
	unit := report.Unit(w.Unit)
	*f = Finding{ID: w.ID, State: w.State, Kind: w.Kind, Severity: w.Severity, Subject: w.Subject, Interface: w.Interface, Numbers: w.Key, Since: w.Since, Windows: w.Windows, What: w.What,
		Value: Estimate{or(w.Value), or(w.Low), or(w.High), unit}, Expected: Expected{Estimate{or(w.Expected), or(w.ExpectedLow), or(w.ExpectedHigh), unit}, w.Source},
		Harm: w.Harm, Because: w.Because, Next: w.Next, Evidence: w.Evidence, Hosts: w.Hosts, Known: w.Known, Links: w.Links, Names: bounded(w.Names)}
	if w.Until != nil {
		f.Until = *w.Until
	}
	return nil
}

// bounded are names of another process, which may be as long as it likes.
func bounded(names []known.Name) []known.Name {
	const most, longest = 8, 255
	names = names[:min(len(names), most)]
	for i := range names {
		n := &names[i]
		for _, text := range []*string{&n.Column, &n.Of, &n.DNS, &n.ASName, &n.Country, &n.Service, &n.Guest.Kind, &n.Guest.Name} {
			*text = known.Sanitized(*text, longest)
		}
	}
	return names
}

func some(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func or(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func utc(ns int64) *string {
	if ns < unix2000 {
		return nil
	}
	text := report.UTC(ns)
	return &text
}
