package link

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Core is one of several that packets of the same link arrive on.
type Core struct {
	link   *Link
	feed   *replay.Replayer
	packer builder.Packer
}

// Core keeps the calling goroutine on that core. Close it there.
func (l *Link) Core(cpu int, seed uint64) (*Core, error) {
	var one unix.CPUSet
	one.Set(cpu)
	runtime.LockOSThread() // not unlocked: the thread ends with its affinity
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("stay on core %d: %w", cpu, err)
	}
	feed, err := replay.New(l.inst, seed)
	if err != nil {
		return nil, err
	}
	return &Core{link: l, feed: feed}, nil
}

// Send sends a packet so many times at one instant, in one system call.
func (c *Core) Send(p packet.Packet, at time.Duration, times int) error {
	p.Time = c.link.stamp(at)
	for range times {
		var f packet.Frame
		if err := c.packer.Frame(&p, &f); err != nil {
			return err
		}
		if err := c.feed.Feed(&f); err != nil {
			return fmt.Errorf("send packet: %w", err)
		}
	}
	return c.feed.Flush()
}

// Close gives up the core.
func (c *Core) Close() error { return c.feed.Close() }
