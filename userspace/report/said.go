package report

import "slices"

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
	o := newObject()
	o.set("finding", f.Object)
	return s.write(o)
}

func (f Said) lines(style Style) []string {
	head := f.Severity
	if f.Ended {
		head += ", over"
	}
	return wrap(head+": "+printable(f.Text), style.width(), 2)
}

// Finding writes the sentence.
func (s *Plain) Finding(f Said) error { return s.write(append([]string{""}, f.lines(s.style)...)) }

// Finding shows the sentence above all counters until it is over.
func (s *Screen) Finding(f Said) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.findings, func(g Said) bool { return g.Key == f.Key })
	switch {
	case f.Ended && at >= 0:
		s.findings = append(s.findings[:at:at], s.findings[at+1:]...)
	case !f.Ended && at >= 0:
		s.findings[at] = f
	case !f.Ended:
		s.findings = append(s.findings, f)
	}
	s.draw()
	return s.err
}

// found are the lines of findings that go on, the gravest first.
func (s *Screen) found(style Style) (lines []string) {
	for _, severity := range []string{"critical", "warning", "info"} {
		for _, f := range s.findings {
			if f.Severity == severity {
				lines = append(lines, f.lines(style)...)
			}
		}
	}
	return lines
}
