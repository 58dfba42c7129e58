// Package emulator is a link in user space between two network interfaces: delay, loss, duplication, reordering, and
// a rate with a queue, chosen packet by packet from a seeded generator and reported packet by packet, so that a test
// has exact values for real TCP. It replaces netem where that is missing.
//
// It reads and writes Ethernet frames through packet sockets. Segments that the kernel has not cut yet (GSO) and
// checksums that it has not filled in yet pass unchanged, with the header that describes them; Start switches the
// offloads of its own two interfaces off, but aggregates are made on the host's end of the
// veth (SingleSegments there makes packets single).
package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ErrOptions is wrapped by errors of invalid options.
var ErrOptions = errors.New("invalid options of a link")

// Direction is the treatment of packets in one direction. The zero value passes everything at once.
type Direction struct {
	Delay     Delay   // nil: none
	Loss      float64 // share of packets
	Drop      Drop    // further packets that are lost, counted as Loss counts; nil: none
	Duplicate float64 // share of packets that are sent twice
	// Reorder is the share of packets that are held back by ReorderBy (1 ms unless given), so that later ones overtake.
	Reorder   float64
	ReorderBy time.Duration
	// KeepOrder makes packets wait for the ones before them, so that a delay that varies does not reorder; packets
	// chosen by Reorder are overtaken all the same.
	KeepOrder bool
	// Rate is the bottleneck in bits a second (0: none) with a drop-tail queue of Queue bytes (64 KiB unless given).
	Rate  float64
	Queue int
	// Limit is how many packets may be on their way, 50,000 unless given; more are counted as Overflowed.
	Limit int
	// OnPacket is called with the event of each packet after its end. It is called on the link's own thread and
	// must not block; calls of the two directions may overlap.
	OnPacket func(Event)
}

// Delay is how long a packet takes; r is the direction's generator. Packets that are not IP, and IPv6 neighbour
// discovery, are never impaired: p is always an IP packet.
type Delay func(p *packet.Packet, r *rand.Rand) time.Duration

// Drop chooses packets to lose, as Delay chooses how long one takes; it is called for every packet, in order.
type Drop func(p *packet.Packet, r *rand.Rand) bool

// Options describe a link between the interfaces A and B.
type Options struct {
	AtoB, BtoA Direction
	Seed       uint64
}

// Fate is the outcome of a packet.
type Fate uint8

const (
	Passed     Fate = iota
	Lost            // by Loss or Drop
	Overflowed      // the queue of the bottleneck, or Limit
	Failed          // the interface refused it
)

func (f Fate) String() string {
	switch f {
	case Passed:
		return "passed"
	case Lost:
		return "lost"
	case Overflowed:
		return "overflowed"
	}
	return "failed"
}

// Event is the exact record of one packet; duplicates have one each. Times are ns of the realtime clock.
type Event struct {
	Packet    packet.Packet // as it arrived; Packet.Time is Arrived
	Fate      Fate
	Arrived   int64
	Due       int64 // when it should leave
	Sent      int64 // when it did leave, 0 unless Passed
	Duplicate bool
	Reordered bool
}

func (d *Direction) defaults() {
	if d.ReorderBy == 0 {
		d.ReorderBy = time.Millisecond
	}
	if d.Queue == 0 {
		d.Queue = 64 << 10
	}
	if d.Limit == 0 {
		d.Limit = 50_000
	}
}

func (d *Direction) check(name string) error {
	for what, v := range map[string]float64{"loss": d.Loss, "duplicate": d.Duplicate, "reorder": d.Reorder} {
		if v < 0 || v > 1 {
			return fmt.Errorf("%s of %s is %g, a share is between 0 and 1: %w", what, name, v, ErrOptions)
		}
	}
	if d.Rate < 0 || d.Queue < 0 || d.Limit < 0 || d.ReorderBy < 0 {
		return fmt.Errorf("negative rate, queue, limit or time of %s: %w", name, ErrOptions)
	}
	return nil
}
