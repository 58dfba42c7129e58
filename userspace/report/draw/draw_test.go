package draw

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// seen records its input, and fails from one window on.
type seen struct {
	calls []string
	fails int
}

var errBroken = errors.New("broken pipe")

func (s *seen) Start(r report.Run) error { s.calls = append(s.calls, "run "+r.Version); return nil }
func (s *seen) Line(l report.Line) error {
	s.calls = append(s.calls, "line "+l.Algorithm)
	if s.fails > 0 && len(s.calls) >= s.fails {
		return errBroken
	}
	return nil
}
func (s *seen) Notice(text string) { s.calls = append(s.calls, "notice "+text) }
func (s *seen) Close() error       { s.calls = append(s.calls, "close"); return nil }

func never(time.Duration) <-chan time.Time { return nil }

// Everything is drawn in order, the progress line is cleared before each, and losses are reported, even at the end.
func TestDrawn(t *testing.T) {
	var hub feed.Hub
	s := &seen{}
	line := func(name string) feed.Event { return feed.Event{Line: &report.Line{Algorithm: name}} }
	sub := hub.Subscribe(feed.Options{Depth: 4})
	for _, e := range []feed.Event{line("lost"), {Run: &report.Run{Version: "1"}}, line("a"), {Notice: "n"}, line("b")} {
		hub.Publish(t.Context(), e)
	}
	hub.Close()
	d := New(s, sub, func(err error) { t.Error(err) })
	if err := d.Close(never); err != nil {
		t.Fatal(err)
	}
	if len(s.calls) != 6 || !strings.HasPrefix(s.calls[0], "notice 1 reports were not shown: this output") || !slices.Equal(s.calls[1:], []string{"run 1", "line a", "notice n", "line b", "close"}) {
		t.Errorf("%q", s.calls)
	}
	hub, s = feed.Hub{}, &seen{}
	sub = hub.Subscribe(feed.Options{Depth: 1})
	hub.Publish(t.Context(), line("lost"))
	hub.Publish(t.Context(), line("forgotten"))
	sub.Leave()
	d = New(s, sub, func(err error) { t.Error(err) })
	if err := d.Close(never); err != nil || len(s.calls) != 2 || !strings.HasPrefix(s.calls[0], "notice 1 reports") {
		t.Errorf("%q, %v", s.calls, err)
	}
}

// A failed write is reported once, and nothing else is written; the run continues to its end.
func TestBroken(t *testing.T) {
	var hub feed.Hub
	s, calls, cleared := &seen{fails: 2}, []error{}, 0
	sub := hub.Subscribe(feed.Options{Wait: true})
	d := New(s, sub, func(err error) { calls = append(calls, err) })
	d.Clearing(func() { cleared++ })
	for range 5 {
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "a"}})
	}
	hub.Close()
	if err := d.Close(never); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || !errors.Is(calls[0], errBroken) || !slices.Equal(s.calls, []string{"line a", "line a", "close"}) || cleared != 3 {
		t.Errorf("got %v, written %q, cleared %d times", calls, s.calls, cleared)
	}
}

// The end of a run alone clears the progress line once.
func TestNothingIsDrawn(t *testing.T) {
	var hub feed.Hub
	cleared := 0
	d := New(&seen{}, hub.Subscribe(feed.Options{}), func(error) {})
	d.Clearing(func() { cleared++ })
	hub.Close()
	if err := d.Close(never); err != nil || cleared != 1 {
		t.Errorf("%v, cleared %d times", err, cleared)
	}
}

// The end waits for a blocked reader as long as configured, and no longer.
func TestNotRead(t *testing.T) {
	var hub feed.Hub
	d := New(&seen{}, hub.Subscribe(feed.Options{}), func(error) {})
	late := make(chan time.Time, 1)
	late <- time.Now()
	patience := time.Duration(0)
	if err := d.Close(func(d time.Duration) <-chan time.Time { patience = d; return late }); !errors.Is(err, errBlocked) || patience != Patience {
		t.Errorf("%v after %v", err, patience)
	}
	hub.Close()
	<-d.done
}

// The progress line is cleared before each thing that is drawn and at the end, and for nothing else.
func TestCleared(t *testing.T) {
	var hub feed.Hub
	s, cleared := &seen{}, 0
	d := New(s, hub.Subscribe(feed.Options{Wait: true}), func(err error) { t.Error(err) })
	d.Clearing(func() { cleared++ })
	for range 2 {
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "a"}})
	}
	hub.Close()
	if err := d.Close(never); err != nil || cleared != 3 || len(s.calls) != 3 {
		t.Errorf("cleared %d times for %q, %v", cleared, s.calls, err)
	}
}
