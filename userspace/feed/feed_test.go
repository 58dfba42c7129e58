package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
)

func line(n int) Event { return Event{Line: &report.Line{Window: report.Window{Number: n}}} }

// A subscriber that reads gets everything in order; one that does not loses the oldest, and gets their number.
func TestASlowReaderLosesForItself(t *testing.T) {
	var h Hub
	quick, slow := h.Subscribe(Options{Depth: 100}), h.Subscribe(Options{Name: "slow", Depth: 3})
	h.Publish(t.Context(), Event{Run: &report.Run{Version: "1"}})
	for n := range 50 {
		h.Publish(t.Context(), line(n))
	}
	h.Close()
	for n := -1; n < 50; n++ {
		e, missed, err := quick.Next(t.Context())
		if err != nil || missed != 0 || (n < 0) != (e.Run != nil) || n >= 0 && e.Line.Window.Number != n {
			t.Fatalf("event %d: %+v, %d missed, %v", n, e, missed, err)
		}
	}
	if e, missed, err := slow.Next(t.Context()); err != nil || e.Run == nil || missed != 48 {
		t.Errorf("the description of the run was lost: %+v, %d missed, %v", e, missed, err)
	}
	for _, want := range []int{48, 49} {
		if e, _, err := slow.Next(t.Context()); err != nil || e.Line.Window.Number != want {
			t.Errorf("want window %d, got %+v, %v", want, e, err)
		}
	}
	if _, _, err := slow.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if slow.Missed() != 48 {
		t.Errorf("%d missed in all", slow.Missed())
	}
}

// A reader that is waited for loses nothing, however slow; an end of the run does not leave the publisher hanging.
func TestWait(t *testing.T) {
	var h Hub
	s := h.Subscribe(Options{Depth: 2, Wait: true})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 20 {
			h.Publish(context.Background(), line(n))
		}
	}()
	for n := range 20 {
		if e, missed, err := s.Next(t.Context()); err != nil || missed != 0 || e.Line.Window.Number != n {
			t.Fatalf("window %d: %+v %d %v", n, e, missed, err)
		}
	}
	<-done
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 5 {
		h.Publish(ended, line(n)) // the reader has left, and the timeout has passed
	}
	if s.Missed() != 3 {
		t.Errorf("%d missed", s.Missed())
	}
}

func TestLeaveEndsAWait(t *testing.T) {
	var h Hub
	s := h.Subscribe(Options{Depth: 1, Wait: true})
	h.Publish(t.Context(), line(0))
	done := make(chan struct{})
	go func() { h.Publish(context.Background(), line(1)); close(done) }()
	s.Leave()
	<-done
	if n := len(h.Readers()); n != 0 {
		t.Errorf("%d readers are left", n)
	}
	if _, _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after leaving: %v", err)
	}
	if late := func() error { h.Close(); _, _, err := h.Subscribe(Options{}).Next(t.Context()); return err }(); !errors.Is(late, ErrClosed) {
		t.Errorf("subscribed after the end: %v", late)
	}
}

// Many publishers, many readers that join, read and leave: every reader's events and losses add up to what was published.
func TestNothingIsLostUnseen(t *testing.T) {
	var h Hub
	const publishers, each = 4, 500
	var readers, writers sync.WaitGroup
	errs := make(chan error, 16)
	for r := range 8 {
		s := h.Subscribe(Options{Depth: 1 + r*20})
		readers.Go(func() {
			got := uint64(0)
			for {
				_, missed, err := s.Next(context.Background())
				got += missed
				if errors.Is(err, ErrClosed) {
					break
				}
				got++
				if r%2 == 0 {
					time.Sleep(time.Microsecond)
				}
			}
			if got != publishers*each {
				errs <- fmt.Errorf("reader %d accounts for %d of %d", r, got, publishers*each)
			}
		})
	}
	for range publishers {
		writers.Go(func() {
			for n := range each {
				h.Publish(context.Background(), line(n))
			}
		})
	}
	writers.Wait()
	h.Close()
	readers.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// Who finishes reads what was published before, and nothing else; who leaves reads nothing more.
func TestFinish(t *testing.T) {
	var h Hub
	finishes, leaves := h.Subscribe(Options{}), h.Subscribe(Options{})
	h.Publish(t.Context(), line(1))
	h.Publish(t.Context(), line(2))
	finishes.Finish()
	leaves.Leave()
	h.Publish(t.Context(), line(3))
	for _, want := range []int{1, 2} {
		if e, missed, err := finishes.Next(t.Context()); err != nil || missed != 0 || e.Line.Window.Number != want {
			t.Errorf("want window %d, got %+v, %d missed, %v", want, e, missed, err)
		}
	}
	for name, s := range map[string]*Subscription{"finished": finishes, "left": leaves} {
		if e, _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("who %s: %+v, %v", name, e, err)
		}
	}
	if got := h.Readers(); len(got) != 0 {
		t.Errorf("still there: %+v", got)
	}
}
