package session

import (
	"errors"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// clock is a controller with a tick every ten ns of a window.
type clock struct {
	algo.Instance
	ticks []int64
	fails bool
}

var errClock = errors.New("stopped")

func (c *clock) IntervalNS() int64 { return 10 }

func (c *clock) NextTick(start, now int64) int64 { return start + (now-start)/10*10 + 10 }

func (c *clock) Tick(now int64) error {
	if c.fails {
		return errClock
	}
	c.ticks = append(c.ticks, now)
	return nil
}

// paced is a pacer of one controller, whose windows are those of the group.
func paced(c *clock) (*pacer, *group) {
	m := &member{selected: Selected{Descriptor: &algo.Descriptor{Name: "clock"}}, group: &group{}}
	return &pacer{controllers: []algo.ReplayController{c}, members: []*member{m}, due: make([]int64, 1), starts: make([]int64, 1)}, m.group
}

// A tick is before the first packet that is due or later, once after a gap, and earlier packets are run first. A
// new window restarts counting.
func TestTicksFollowThePackets(t *testing.T) {
	c := &clock{}
	p, g := paced(c)
	g.window.Start = 100
	flushed := 0
	flush := func() error { flushed++; return nil }
	for _, now := range []int64{100, 105, 109, 110, 111, 155, 158, 160} {
		if err := p.at(now, flush); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int64{110, 120, 160}; !slices.Equal(c.ticks, want) || flushed != len(want) {
		t.Errorf("ticks %v after %d flushes, want %v", c.ticks, flushed, want)
	}
	g.window.Start = 203
	for _, now := range []int64{203, 212, 213} {
		if err := p.at(now, flush); err != nil {
			t.Fatal(err)
		}
	}
	if last := c.ticks[len(c.ticks)-1]; last != 213 {
		t.Errorf("the second window's tick is at %d, want 213", last)
	}
}

func TestTickFails(t *testing.T) {
	p, _ := paced(&clock{fails: true})
	err := errors.Join(p.at(0, func() error { return nil }), p.at(10, func() error { return nil }))
	if !errors.Is(err, errClock) {
		t.Errorf("%v", err)
	}
	if err := errors.Join(p.at(30, func() error { return errors.ErrUnsupported })); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("packets in front of a tick did not run, without an error: %v", err)
	}
}
