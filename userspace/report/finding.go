package report

import (
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Finding is a finding in the form that sinks show. Package finding creates it; it imports this package, so the type is declared
// here.
type Finding struct {
	Key      string // constant from start to end of the finding
	Severity string
	Text     string // the sentence
	Ended    bool
	Object   any // what JSON carries under "finding"
}

// Finder is a Sink that shows findings.
type Finder interface{ Finding(Finding) error }

// Finding writes a line of its own: {"finding":{...}}.
func (s *JSON) Finding(f Finding) error {
	o := ordered.New()
	o.Set("finding", f.Object)
	return s.write(o)
}

func (f Finding) lines(style Style) []string {
	head := f.Severity
	if f.Ended {
		head += ", over"
	}
	return typeset.Wrap(head+": "+typeset.Printable(f.Text), style.width(), 2)
}

// Finding writes the sentence; a brief table writes it at the start of the finding, before its windows, and while it lasts.
func (s *Plain) Finding(f Finding) error {
	s.findings = updated(s.findings, f)
	if s.style.Brief && !f.Ended {
		return nil
	}
	return s.write(append([]string{""}, f.lines(s.style)...))
}

// updated updates the list of active findings with one that has begun, changed or ended.
func updated(findings []Finding, f Finding) []Finding {
	at := slices.IndexFunc(findings, func(g Finding) bool { return g.Key == f.Key })
	switch {
	case f.Ended && at >= 0:
		return append(findings[:at:at], findings[at+1:]...)
	case !f.Ended && at >= 0:
		findings[at] = f
	case !f.Ended:
		return append(findings, f)
	}
	return findings
}

// Finding shows the sentence above all counters until it is over.
func (s *Screen) Finding(f Finding) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = updated(s.findings, f)
	s.draw()
	return s.err
}

// found are the lines of active findings, the most severe first.
func (s *Screen) found(style Style) []string { return foundLines(s.findings, style) }

func foundLines(findings []Finding, style Style) (lines []string) {
	for _, severity := range []string{"critical", "warning", "info"} {
		for _, f := range findings {
			if f.Severity == severity {
				lines = append(lines, f.lines(style)...)
			}
		}
	}
	return lines
}
