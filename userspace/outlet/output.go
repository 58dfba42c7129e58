package outlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Sink is the form of an output. One goroutine uses it, except for Close, which comes last.
type Sink interface {
	// Write takes an event; the clock is that of its windows.
	Write(e feed.Event, c report.Clock) error
	// Tick is called about once a second.
	Tick() error
	io.Closer
}

// lost is an error that cost several windows.
type lost interface{ Lost() uint64 }

// output writes windows in one form. It has its own goroutine; what it cannot write in time is lost to this output alone.
type output struct {
	cfg   settings.Output
	sub   *feed.Subscription
	log   *slog.Logger
	clock func() report.Clock
	done  chan struct{}

	mu     sync.Mutex
	sink   Sink
	failed uint64
	err    error
}

// openOutput opens what an output writes to, with permissions for the operator alone.
func (s *Set) openOutput(o settings.Output) (Sink, error) {
	if o.Parquet.Dir != "" {
		return s.opts.Parquet(o.Parquet, o.CDF)
	}
	f, err := openLines(o, s.opts.Stdout)
	if err != nil {
		return nil, err
	}
	return newLines(f, o.CDF), nil
}

func openLines(o settings.Output, stdout io.Writer) (io.WriteCloser, error) {
	if o.JSON == "-" {
		return staysOpen{stdout}, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.JSON), 0o700); err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	f, err := os.OpenFile(o.JSON, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	return f, nil
}

// staysOpen is a stream that belongs to the caller and is not closed.
type staysOpen struct{ io.Writer }

func (staysOpen) Close() error { return nil }

// lines are JSON lines.
type lines struct {
	file io.WriteCloser
	text bytes.Buffer
	json *report.JSON
	torn bool // the last line is incomplete
}

func newLines(f io.WriteCloser, cdf bool) *lines {
	l := &lines{file: f}
	l.json = report.NewJSON(&l.text, io.Discard)
	if cdf {
		l.json.CDF()
	}
	return l
}

func (l *lines) Write(e feed.Event, c report.Clock) (err error) {
	l.text.Reset()
	l.json.SetClock(c)
	switch {
	case e.Run != nil:
		err = l.json.Start(*e.Run)
	case e.Line != nil:
		err = l.json.Line(*e.Line)
	case e.Finding != nil:
		err = l.json.Finding(*e.Finding)
	}
	if err != nil {
		return err
	}
	return l.write(l.text.Bytes())
}

func (l *lines) write(text []byte) error {
	if l.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := l.file.Write(text)
	if n > 0 {
		l.torn = n < len(text)
	}
	return err
}

func (l *lines) Tick() error  { return nil }
func (l *lines) Close() error { return l.file.Close() }

func newOutput(o settings.Output, sink Sink, set *Set) *output {
	out := &output{cfg: o, sink: sink, log: set.opts.Log, clock: set.opts.Clock, done: make(chan struct{}), sub: set.hub.Subscribe(feed.Options{Name: o.Name(), Depth: 4096})}
	go out.run()
	return out
}

// reopen continues with another sink, for example after a file was rotated.
func (o *output) reopen(s Sink) {
	o.mu.Lock()
	old := o.sink
	o.sink = s
	o.mu.Unlock()
	_ = old.Close()
}

// tick is how often a sink without windows is told that time passes.
const tick = time.Second

func (o *output) run() {
	defer close(o.done)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), tick)
		e, missed, err := o.sub.Next(ctx)
		cancel()
		if missed > 0 {
			o.log.Warn("output blocked, windows dropped", "output", o.cfg.Path(), "windows_lost", missed)
		}
		switch {
		case errors.Is(err, feed.ErrClosed):
			return
		case err != nil:
			o.do(Sink.Tick)
		default:
			o.do(func(s Sink) error { return s.Write(e, o.clock()) })
		}
	}
}

// do has something done to the sink, to the next one if it was replaced meanwhile, and keeps what went wrong.
func (o *output) do(f func(Sink) error) {
	sink := o.current()
	err := f(sink)
	if next := o.current(); errors.Is(err, os.ErrClosed) && next != sink {
		err = f(next)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.failed += lostBy(err)
		if o.err == nil {
			o.log.Error("write to output failed", "output", o.cfg.Path(), "error", err)
		}
	}
	o.err = err
}

func (o *output) current() Sink {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sink
}

// lostBy is how many windows an error has cost.
func lostBy(err error) uint64 {
	var l lost
	if errors.As(err, &l) {
		return l.Lost()
	}
	return 1
}

// endPatience bounds how long closing waits for a blocked reader.
const endPatience = 3 * time.Second

// leave closes an output that the new configuration does not have, after writing what is queued.
func (o *output) leave() {
	o.sub.Finish()
	if err := o.close(); err != nil {
		o.log.Error("close output failed", "output", o.cfg.Path(), "error", err)
	}
}

func (o *output) close() error {
	select {
	case <-o.done:
	case <-time.After(endPatience):
		return fmt.Errorf("output %s blocked for %v: last windows dropped", o.cfg.Path(), endPatience)
	}
	if err := o.current().Close(); err != nil {
		return fmt.Errorf("close output: %w", err)
	}
	return nil
}
