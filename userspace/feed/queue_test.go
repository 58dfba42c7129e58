package feed

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

func run(version string) Event { return Event{Run: &report.Run{Version: version}} }

// left is what a reader still gets, in words: a version, or a window's number in letters.
func left(t *testing.T, s *Subscription) (list []string, missed uint64) {
	t.Helper()
	for {
		e, n, ok, _ := s.take()
		if !ok {
			return list, missed
		}
		missed += n
		if e.Run != nil {
			list = append(list, e.Run.Version)
		} else {
			list = append(list, string(rune('a'+e.Line.Window.Number)))
		}
	}
}

// The last description of the run stays while there is something else to drop.
func TestWhatIsDropped(t *testing.T) {
	for _, c := range []struct {
		depth int
		put   []Event
		want  []string
	}{
		{3, []Event{run("1"), line(0), line(1)}, []string{"1", "a", "b"}},
		{3, []Event{run("1"), line(0), line(1), line(2)}, []string{"1", "b", "c"}},
		{3, []Event{line(0), run("1"), line(1), line(2)}, []string{"1", "b", "c"}},
		{3, []Event{run("1"), run("2"), line(0), line(1)}, []string{"2", "a", "b"}},
		{3, []Event{run("1"), line(0), run("2"), line(1)}, []string{"a", "2", "b"}},
		{2, []Event{run("1"), line(0), line(1), line(2)}, []string{"1", "c"}},
		{1, []Event{run("1"), line(0)}, []string{"a"}},
	} {
		var h Hub
		s := h.Subscribe(Options{Depth: c.depth})
		for _, e := range c.put {
			h.Publish(t.Context(), e)
		}
		if got, missed := left(t, s); !slices.Equal(got, c.want) || int(missed) != len(c.put)-len(c.want) {
			t.Errorf("room for %d of %d: %v, %d missed; want %v", c.depth, len(c.put), got, missed, c.want)
		}
	}
}

// Readers are listed with what waits for them and what they lost; without a depth there is room for many.
func TestReaders(t *testing.T) {
	var h Hub
	h.Subscribe(Options{Name: "slow", Depth: 3})
	h.Subscribe(Options{Name: "usual"})
	h.Subscribe(Options{Name: "odd", Depth: -1})
	for n := range DefaultDepth + 2 {
		h.Publish(t.Context(), line(n))
	}
	want := []Reader{{"slow", 3, DefaultDepth - 1}, {"usual", DefaultDepth, 2}, {"odd", DefaultDepth, 2}}
	if got := h.Readers(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A reader whose time is over gets the reason, and nothing is lost by that.
func TestNextGivesUp(t *testing.T) {
	var h Hub
	s := h.Subscribe(Options{Depth: 1})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Next(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	h.Publish(t.Context(), line(0))
	h.Publish(t.Context(), line(1))
	if e, missed, err := s.Next(t.Context()); err != nil || missed != 1 || e.Line.Window.Number != 1 {
		t.Errorf("%+v, %d, %v", e, missed, err)
	}
	h.Publish(t.Context(), line(2))
	if _, missed, _ := s.Next(t.Context()); missed != 0 || s.Missed() != 1 {
		t.Errorf("what was missed is reported again: %d, %d in all", missed, s.Missed())
	}
}

// Events missed after the last one are reported with the end.
func TestMissedAtTheEnd(t *testing.T) {
	var h Hub
	s := h.Subscribe(Options{Depth: 2})
	h.Publish(t.Context(), line(0))
	s.drop() // there is room: nothing has to go
	if n := s.Missed(); n != 0 {
		t.Errorf("%d dropped although there was room", n)
	}
	h.Publish(t.Context(), line(1))
	s.drop()
	if got, _ := left(t, s); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left are %v", got)
	}
	h.Close()
	h.Publish(t.Context(), line(2))
	if _, _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
