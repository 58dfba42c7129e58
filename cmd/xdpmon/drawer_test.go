package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// lazy is a reader that waits for a signal to read.
type lazy struct {
	buffer
	reads chan struct{}
}

func (l *lazy) Write(p []byte) (int, error) {
	<-l.reads
	return l.buffer.Write(p)
}

// A blocked pipe delays nothing: all windows are measured, and a late reader gets a notice of the missing ones.
func TestALateReader(t *testing.T) {
	w := newWorld()
	out := &lazy{reads: make(chan struct{})}
	w.stdout = out
	const windows = 2000
	w.engine.live = func(_ context.Context, cfg session.LiveConfig) error {
		for n := range windows {
			if err := cfg.Emit(testLine("fridge", n)); err != nil {
				return err
			}
		}
		close(out.reads) // only now: had anybody waited for the reader, this would not be reached
		return nil
	}
	if code := w.run("attach", "eth0", "--algo", "fridge"); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
	text := out.String()
	if n := strings.Count(text, `"algorithm":"fridge"`); n < 200 || n > 300 {
		t.Errorf("%d of %d windows were queued for the reader", n, windows)
	}
	if !strings.HasPrefix(text, `{"run":`) {
		t.Errorf("the description of the run is lost: %.100s", text)
	}
	contains(t, text, `"number":1999`)
	contains(t, w.err.String(), "reports were not shown: this output was too slow")
}

// A reader that never reads does not keep the process alive: it ends, and reports what is lost.
func TestAReaderThatNeverReads(t *testing.T) {
	w := newWorld()
	out := &lazy{reads: make(chan struct{})}
	defer close(out.reads)
	w.stdout = out
	w.patient <- testEpoch
	w.emitting(5, false)
	if code := w.run("attach", "eth0", "--algo", "fridge"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, w.err.String(), "output blocked: the last reports are lost")
}

// A replay waits for its reader: nothing is left out, however slow that is, and Ctrl-C ends the wait.
func TestAReplayWaits(t *testing.T) {
	w := newWorld()
	out := &lazy{reads: make(chan struct{})}
	w.stdout = out
	w.emitting(2000, false)
	go func() {
		for range 2001 {
			out.reads <- struct{}{}
		}
	}()
	if code := w.run("replay", "x.pcap", "--algo", "fridge"); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
	if n := strings.Count(out.String(), `"algorithm":"fridge"`); n != 2000 {
		t.Errorf("%d of 2000 windows were shown", n)
	}
	stuck := newWorld()
	never := &lazy{reads: make(chan struct{})}
	defer close(never.reads)
	stuck.stdout = never
	stuck.patient <- testEpoch
	stuck.emitting(2000, false)
	stuck.signal <- nil
	if code := stuck.run("replay", "x.pcap", "--algo", "fridge"); code != cli.ExitFailed {
		t.Errorf("exit code %d of a replay that was ended: %s", code, stuck.err.String())
	}
}

// broken is a pipe whose other end is closed.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestABrokenPipeEndsTheRun(t *testing.T) {
	w := newWorld()
	w.stdout = io.Writer(broken{})
	w.emitting(1, true)
	if code := w.run("attach", "eth0", "--algo", "fridge"); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(w.err.String(), "broken pipe"); n != 1 {
		t.Errorf("the reason stands there %d times: %s", n, w.err.String())
	}
}
