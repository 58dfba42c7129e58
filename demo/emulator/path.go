package emulator

import (
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// path decides about the packets of one direction. It knows no sockets and no clock, so the same packets at the same
// times always have the same fate.
type path struct {
	Direction
	rng      *rand.Rand
	free     int64 // ns; when the bottleneck has sent all that is in its queue
	latest   int64 // ns; when the last packet that keeps its order leaves
	underway int   // packets on their way
}

// verdict is path's decision on a packet.
type verdict struct {
	fate      Fate
	due       int64 // ns
	twice     bool
	reordered bool
}

func newPath(d Direction, seed, stream uint64) *path {
	d.defaults()
	return &path{Direction: d, rng: rand.New(rand.NewPCG(seed, stream))}
}

// isControl reports whether a packet is one that keeps a link usable: anything but IP, and neighbour discovery.
func isControl(p *packet.Packet, reason packet.Reason) bool {
	const icmpv6 = 58
	return !p.Has(packet.IP) || p.Proto == icmpv6 && reason == packet.NoTransport
}

// decide takes the random numbers of a packet in a fixed order, whatever is done with them.
func (l *path) decide(now int64, p *packet.Packet, size int) verdict {
	lost, twice, reordered := l.chance(l.Loss), l.chance(l.Duplicate), l.chance(l.Reorder)
	if l.Drop != nil && l.Drop(p, l.rng) {
		lost = true
	}
	if lost {
		return verdict{fate: Lost, due: now}
	}
	due, ok := l.bottleneck(now, size)
	if !ok || l.underway >= l.Limit {
		return verdict{fate: Overflowed, due: now}
	}
	if l.Delay != nil {
		due += max(int64(l.Delay(p, l.rng)), 0)
	}
	switch {
	case reordered:
		due += int64(l.ReorderBy)
	case l.KeepOrder:
		due = max(due, l.latest)
		l.latest = due
	}
	return verdict{fate: Passed, due: due, twice: twice, reordered: reordered}
}

func (l *path) chance(share float64) bool { return share > 0 && l.rng.Float64() < share }

// bottleneck returns when the packet has been sent at the rate, or false when it does not fit into the queue.
func (l *path) bottleneck(now int64, size int) (int64, bool) {
	if l.Rate == 0 {
		return now, true
	}
	start := max(now, l.free)
	queued := float64(start-now) / 1e9 * l.Rate / 8
	if queued+float64(size) > float64(l.Queue) {
		return 0, false
	}
	l.free = start + int64(float64(size)*8/l.Rate*1e9)
	return l.free, true
}
