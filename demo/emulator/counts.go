package emulator

import (
	"sync/atomic"
	"time"
)

// Counts are the counters of one direction.
type Counts struct {
	Received   uint64 // packets that arrived
	Control    uint64 // of them: not IP, or neighbour discovery; passed at once
	Sent       uint64 // packets that left, duplicates included
	Bytes      uint64 // that left
	Lost       uint64 // by Loss or Drop
	Overflowed uint64 // by the queue or Limit
	Failed     uint64 // refused by the interface
	Missed     uint64 // dropped by the kernel before this link, which was too slow
	Duplicated uint64
	Reordered  uint64
	Aggregates uint64 // arrivals that were more than one segment
	// Late is by how much packets left after they were due, on average and at most: the emulator's own error.
	MeanLate, MaxLate time.Duration
}

type counters struct {
	received, control, sent, bytes, lost, overflowed, failed, missed, duplicated, reordered, aggregates atomic.Uint64

	lateSum, lateMax atomic.Int64 // ns
}

func (c *counters) fate(f Fate) {
	switch f {
	case Lost:
		c.lost.Add(1)
	case Overflowed:
		c.overflowed.Add(1)
	case Failed:
		c.failed.Add(1)
	}
}

func (c *counters) left(bytes int, late int64) {
	c.sent.Add(1)
	c.bytes.Add(uint64(bytes))
	c.lateSum.Add(late)
	if late > c.lateMax.Load() { // one writer
		c.lateMax.Store(late)
	}
}

func (c *counters) snapshot() Counts {
	control := c.control.Load() // before what it is a part of
	counts := Counts{
		Received: c.received.Load(), Control: control, Sent: c.sent.Load(), Bytes: c.bytes.Load(),
		Lost:       c.lost.Load(),
		Overflowed: c.overflowed.Load(), Failed: c.failed.Load(), Missed: c.missed.Load(),
		Duplicated: c.duplicated.Load(), Reordered: c.reordered.Load(), Aggregates: c.aggregates.Load(),
		MaxLate: time.Duration(c.lateMax.Load()),
	}
	if counts.Sent > 0 {
		counts.MeanLate = time.Duration(c.lateSum.Load() / int64(counts.Sent))
	}
	return counts
}
