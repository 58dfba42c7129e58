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

// output writes windows as JSON lines. It has its own goroutine; what it cannot write in time is lost to this output alone.
type output struct {
	cfg   settings.Output
	sub   *feed.Subscription
	log   *slog.Logger
	clock func() report.Clock
	done  chan struct{}

	mu     sync.Mutex
	file   io.WriteCloser
	failed uint64
	torn   bool // the last line is incomplete
	err    error
}

// openOutput opens the file with permissions for the operator alone.
func openOutput(o settings.Output, stdout io.Writer) (io.WriteCloser, error) {
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

func newOutput(o settings.Output, file io.WriteCloser, set *Set) *output {
	out := &output{cfg: o, file: file, log: set.opts.Log, clock: set.opts.Clock, done: make(chan struct{}), sub: set.hub.Subscribe(feed.Options{Name: "json " + o.JSON, Depth: 4096})}
	go out.run()
	return out
}

// reopen continues with another file, for example after the old one was rotated.
func (o *output) reopen(f io.WriteCloser) {
	o.mu.Lock()
	old := o.file
	o.file, o.torn = f, false
	o.mu.Unlock()
	_ = old.Close()
}

func (o *output) run() {
	defer close(o.done)
	var b bytes.Buffer
	sink := report.NewJSON(&b, io.Discard)
	if o.cfg.CDF {
		sink.CDF()
	}
	for {
		e, missed, err := o.sub.Next(context.Background())
		if missed > 0 {
			o.log.Warn("output blocked, windows dropped", "output", o.cfg.JSON, "windows_lost", missed)
		}
		if errors.Is(err, feed.ErrClosed) {
			return
		}
		b.Reset()
		sink.SetClock(o.clock())
		switch {
		case e.Run != nil:
			err = sink.Start(*e.Run)
		case e.Line != nil:
			err = sink.Line(*e.Line)
		case e.Finding != nil:
			err = sink.Finding(*e.Finding)
		}
		o.write(b.Bytes(), err)
	}
}

func (o *output) write(text []byte, err error) {
	o.mu.Lock()
	f, n := o.file, 0
	if o.torn {
		text = append([]byte{'\n'}, text...)
	}
	o.mu.Unlock()
	if err == nil {
		n, err = f.Write(text)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > 0 {
		o.torn = n < len(text)
	}
	if err != nil {
		o.failed++
		if o.err == nil {
			o.log.Error("write to output failed", "output", o.cfg.JSON, "error", err)
		}
	}
	o.err = err
}

// endPatience bounds how long closing waits for a blocked reader.
const endPatience = 3 * time.Second

// leave closes an output that the new configuration does not have, after writing what is queued.
func (o *output) leave() {
	o.sub.Finish()
	if err := o.close(); err != nil {
		o.log.Error("close output failed", "output", o.cfg.JSON, "error", err)
	}
}

func (o *output) close() error {
	select {
	case <-o.done:
	case <-time.After(endPatience):
		return fmt.Errorf("output %s blocked for %v: last windows dropped", o.cfg.JSON, endPatience)
	}
	if err := o.file.Close(); err != nil {
		return fmt.Errorf("close output: %w", err)
	}
	return nil
}
