package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Sink shows a run: its description, its windows as they finish, and sentences for the operator. Implementations are not safe for
// concurrent use unless documented otherwise.
type Sink interface {
	Start(Run) error
	Line(Line) error
	Notice(text string)
	Close() error
}

// JSON writes one object a line; notices go to another writer, so that a pipe carries objects only.
type JSON struct {
	out, notices io.Writer
	cdf          bool
	clock        Clock
}

// NewJSON returns a sink for pipes and files.
func NewJSON(out, notices io.Writer) *JSON { return &JSON{out: out, notices: notices} }

// CDF adds the steps of every distribution to the lines.
func (s *JSON) CDF() { s.cdf = true }

// SetClock sets the offset of the windows' clock to wall clock time, which may have changed since Start.
func (s *JSON) SetClock(c Clock) { s.clock = c }

// Record is the line as JSON writes it, without the newline, with wall clock times by a clock.
func (l Line) Record(c Clock) ([]byte, error) { return l.encode(layout{clock: &c}) }

// Start writes the line that describes the run, its parameters included.
func (s *JSON) Start(r Run) error {
	s.clock = r.Clock
	return s.write(r)
}

// Line writes a window of an algorithm.
func (s *JSON) Line(l Line) error {
	text, err := l.encode(layout{clock: &s.clock, cdf: s.cdf})
	return s.put(text, err)
}

func (s *JSON) write(v any) error {
	text, err := ordered.Marshal(v)
	return s.put(text, err)
}

func (s *JSON) put(text []byte, err error) error {
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if _, err := s.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Notice writes a sentence to the notices' writer.
func (s *JSON) Notice(text string) { notice(s.notices, text) }

// Close does nothing: every line was written at once.
func (s *JSON) Close() error { return nil }

// Plain writes one block after the other, for tables into a pipe and for short runs.
type Plain struct {
	out, notices io.Writer
	style        Style
	run          Run

	// Lines of the current round of windows: a brief table writes findings before the round's blocks, so it waits until all have
	// arrived.
	round    []Line
	findings []Finding // active
}

// NewPlain returns a sink that never moves the cursor.
func NewPlain(out, notices io.Writer, style Style) *Plain {
	return &Plain{out: out, notices: notices, style: style}
}

// Start writes the description of the run.
func (s *Plain) Start(r Run) error {
	s.run = r
	return s.write(r.Text(s.style))
}

// Line writes a block, or a brief table the round that it ends.
func (s *Plain) Line(l Line) error {
	if s.style.Brief {
		return s.collect(l)
	}
	return s.write(append([]string{""}, Text(l, s.run, s.style)...))
}

func (s *Plain) write(lines []string) error {
	if _, err := io.WriteString(s.out, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Notice writes a sentence to the notices' writer.
func (s *Plain) Notice(text string) { notice(s.notices, text) }

// Close writes what is left of a round.
func (s *Plain) Close() error { return s.flush() }

// collect writes a round when it is complete, or when the next one begins.
func (s *Plain) collect(l Line) (err error) {
	if slices.ContainsFunc(s.round, func(o Line) bool { return o.Algorithm == l.Algorithm && o.Key() == l.Key() }) {
		err = s.flush()
	}
	s.round = append(s.round, l)
	of := len(s.run.Algorithms)
	if s.run.Each {
		of *= len(s.run.Interfaces)
	}
	if len(s.round) < of {
		return err
	}
	return errors.Join(err, s.flush())
}

func (s *Plain) flush() error {
	if len(s.round) == 0 {
		return nil
	}
	lines := briefBlocks(s.round, foundLines(s.findings, s.style), s.run, s.style)
	if lines[0] != "" {
		lines = append([]string{""}, lines...)
	}
	s.round = nil
	return s.write(lines)
}

func notice(out io.Writer, text string) {
	fmt.Fprintf(out, "xdpmon: %s\n", Printable(strings.TrimRight(text, "\n")))
}

// Text describes the run in a line or two.
func (r Run) Text(style Style) []string {
	var where, names []string
	for _, name := range append(append([]string{}, r.Interfaces...), r.Files...) {
		where = append(where, typeset.Printable(name)+r.placesOf(name))
	}
	for _, a := range r.Algorithms {
		names = append(names, a.Name)
	}
	text := fmt.Sprintf("xdpmon %s %s %s: %s", r.Version, r.Command, strings.Join(where, ", "), strings.Join(names, ", "))
	return typeset.Wrap(text, style.width(), 2)
}

// placesOf lists in brackets where an interface's programs are.
func (r Run) placesOf(iface string) string {
	var places []string
	for _, a := range r.Attached {
		if a.Interface == iface {
			places = append(places, a.where())
		}
	}
	if len(places) == 0 {
		return ""
	}
	return " [" + strings.Join(places, ", ") + "]"
}
