package top

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// Sink is the screen of a run, connected to the run's API within the process. When it closes, it writes the start of the run, its notices
// and its last windows to the terminal, as the table output does.
type Sink struct {
	o        SinkOptions
	plain    *report.Plain
	run      report.Run
	notices  []string
	waiting  chan string
	findings []report.Finding
	order    []string
	latest   map[string]report.Line
	cancel   func()
	done     chan error
	within   func() error
}

// SinkOptions are the options of a Sink.
type SinkOptions struct {
	Out, Notices io.Writer
	Style        func() report.Style
	Handler      http.Handler // of the API
	Screen       Options      // without Target, Notices and Ended
	End          func(error)  // ends the run, on q; with an error if the terminal is closed
}

// NewSink is a screen that opens when the run starts.
func NewSink(o SinkOptions) *Sink {
	return &Sink{o: o, plain: report.NewPlain(o.Out, o.Notices, o.Style()), latest: map[string]report.Line{}, waiting: make(chan string, 64), done: make(chan error, 1)}
}

// Start opens the screen; later calls update the description of the run.
func (s *Sink) Start(r report.Run) error {
	s.run = r
	if s.cancel != nil {
		return nil
	}
	o := s.o.Screen
	o.Target, s.within = client.Within(strings.Join(r.Interfaces, ","), s.o.Handler)
	o.Notices = s.waiting
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, l := range r.Text(s.o.Style()) {
		s.pass(l)
	}
	go func() {
		err := Run(ctx, o)
		s.done <- err
		s.o.End(err)
	}()
	return nil
}

// pass sends a message to the screen; if it is blocked, the message is written at the end.
func (s *Sink) pass(text string) {
	select {
	case s.waiting <- text:
	default:
	}
}

// Line stores the last window of each algorithm, for the end.
func (s *Sink) Line(l report.Line) error {
	key := l.Algorithm + "\x00" + l.Key()
	if _, known := s.latest[key]; !known {
		s.order = append(s.order, key)
	}
	s.latest[key] = l
	return nil
}

// Finding stores the active findings, for the end.
func (s *Sink) Finding(f report.Finding) error {
	s.findings = slices.DeleteFunc(s.findings, func(o report.Finding) bool { return o.Key == f.Key })
	if !f.Ended {
		s.findings = append(s.findings, f)
	}
	return nil
}

// mostNotices bounds the notices that are repeated at the end.
const mostNotices = 200

// Notice shows a message, and stores it for the end.
func (s *Sink) Notice(text string) {
	if s.cancel == nil {
		s.plain.Notice(text)
		return
	}
	s.notices = append(s.notices[max(0, len(s.notices)-mostNotices+1):], text)
	s.pass(text)
}

// Close restores the terminal and writes the end of the run to it.
func (s *Sink) Close() error {
	if s.cancel == nil {
		return s.plain.Close()
	}
	s.Restore()
	err := s.within()
	for _, text := range s.notices {
		s.plain.Notice(text)
	}
	err = errors.Join(err, s.plain.Start(s.run))
	for _, f := range s.findings {
		err = errors.Join(err, s.plain.Finding(f))
	}
	for _, key := range s.order {
		err = errors.Join(err, s.plain.Line(s.latest[key]))
	}
	return errors.Join(err, s.plain.Close())
}

// patience is how long the end waits for a blocked terminal.
const patience = 2 * time.Second

// Restore restores the terminal.
func (s *Sink) Restore() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	select {
	case <-s.done:
		s.done <- nil // for the next caller
	case <-time.After(patience):
	}
}
