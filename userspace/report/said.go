package report

import (
	"slices"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Said is a finding as sinks show it: package finding makes it, which reads reports itself.
type Said struct {
	Key      string // the same from its begin to its end
	Severity string
	Text     string // the sentence
	Ended    bool
	Object   any // what JSON carries under "finding"
}

// Finder is a Sink that shows findings.
type Finder interface{ Finding(Said) error }

// Finding writes a line of its own: {"finding":{...}}.
func (s *JSON) Finding(f Said) error {
	o := ordered.New()
	o.Set("finding", f.Object)
	return s.write(o)
}

func (f Said) lines(style Style) []string {
	head := f.Severity
	if f.Ended {
		head += ", over"
	}
	return typeset.Wrap(head+": "+typeset.Printable(f.Text), style.width(), 2)
}

// Finding writes the sentence; a brief table, at its begin, before the windows that it was found in, and as long as it goes on.
func (s *Plain) Finding(f Said) error {
	s.findings = goesOn(s.findings, f)
	if s.style.Brief && !f.Ended {
		return nil
	}
	return s.write(append([]string{""}, f.lines(s.style)...))
}

// goesOn are the findings that go on after one has begun, changed or ended.
func goesOn(findings []Said, f Said) []Said {
	at := slices.IndexFunc(findings, func(g Said) bool { return g.Key == f.Key })
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
func (s *Screen) Finding(f Said) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = goesOn(s.findings, f)
	s.draw()
	return s.err
}

// found are the lines of findings that go on, the gravest first.
func (s *Screen) found(style Style) []string { return foundLines(s.findings, style) }

func foundLines(findings []Said, style Style) (lines []string) {
	for _, severity := range []string{"critical", "warning", "info"} {
		for _, f := range findings {
			if f.Severity == severity {
				lines = append(lines, f.lines(style)...)
			}
		}
	}
	return lines
}
