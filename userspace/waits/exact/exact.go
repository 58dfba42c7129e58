// Package exact follows every connection in unbounded memory: the ground truth of waits.
package exact

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
)

// Options are the thresholds of the data plane.
type Options struct {
	Small      uint32
	Late, Slow int64 // ns
}

// longest is the largest wait that the data plane can measure, ns.
const longest = int64(1) << 38

// A tick, and the time of a segment, are of so many bits of ns.
const (
	tickBits    = 6
	segmentBits = 20
)

// Connection is an exact follower of one.
type Connection struct {
	Client, Server netip.AddrPort
	Legs           [cause.Roles]int64 // ns; -1: not seen
	Waits          [cause.Kinds][cause.Roles]cause.Wait

	scale            [2]uint8 // by end: option plus 1
	syn, synAck      bool
	lower, upper     netip.AddrPort
	synAt, thirdAt   int64 // 0: none
	synSeq, thirdSeq uint32
	closed           [2]int64
	pending          [2]segment
	ask              int64
	again            bool // the SYN was sent more than once
}

type segment struct {
	at  int64
	end uint32
}

// Truth follows all connections.
type Truth struct {
	o     Options
	all   map[[2]netip.AddrPort]*Connection
	Zero  uint64
	Small uint64
}

// New has seen nothing.
func New(o Options) *Truth { return &Truth{o: o, all: map[[2]netip.AddrPort]*Connection{}} }

// Packet takes the next packet.
func (t *Truth) Packet(p *packet.Packet) {
	if !p.Has(packet.TCP) || p.Has(packet.Fragment) || p.TCPFlags&packet.RST != 0 {
		return
	}
	c, from := t.find(p)
	if p.TCPFlags&packet.SYN != 0 {
		t.handshake(c, from, p)
		return
	}
	done := t.window(c, from, p)
	done = t.third(c, from, p, done) || done
	done = t.acknowledged(c, from, p, done) || done
	t.asked(c, from, p, done)
}

// find is a packet's connection, and which end sends: 0 the one with the smaller port.
func (t *Truth) find(p *packet.Packet) (*Connection, int) {
	src, dst := netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)
	from, lower, upper := 0, src, dst
	if src.Port() > dst.Port() || src.Port() == dst.Port() && src.Compare(dst) > 0 {
		from, lower, upper = 1, dst, src
	}
	c := t.all[[2]netip.AddrPort{lower, upper}]
	if c == nil {
		c = &Connection{lower: lower, upper: upper, Client: upper, Server: lower, Legs: [cause.Roles]int64{-1, -1}}
		t.all[[2]netip.AddrPort{lower, upper}] = c
	}
	return c, from
}

// role of an end.
func (c *Connection) role(end int) cause.Role {
	if end == 0 == (c.Server == c.lower) {
		return cause.Server
	}
	return cause.Client
}

// add finishes a wait; it reports whether it counts.
func (c *Connection) add(kind cause.Kind, role cause.Role, ns, least int64) bool {
	if ns >= longest || ns < least {
		return false
	}
	c.Waits[kind][role] = c.Waits[kind][role].Plus(cause.Wait{Number: 1, NS: float64(ns), Low: float64(ns), High: float64(ns)})
	return true
}

func (t *Truth) handshake(c *Connection, from int, p *packet.Packet) {
	ack := p.TCPFlags&packet.ACK != 0
	if !ack {
		c.scale, c.syn, c.synAck = [2]uint8{}, true, false
	} else {
		c.synAck = true
	}
	c.scale[from] = p.Scale
	server := from
	if !ack {
		server = 1 - from
	}
	c.Client, c.Server = c.upper, c.lower
	if server == 1 {
		c.Client, c.Server = c.lower, c.upper
	}
	if !ack {
		if c.again = c.synAt != 0 && c.synSeq == p.Seq+1; !c.again {
			c.synAt, c.synSeq = p.Time, p.Seq+1
		}
		return
	}
	if c.synAt != 0 && c.synSeq == p.Ack {
		if c.Legs = [cause.Roles]int64{cause.Server: p.Time - c.synAt, cause.Client: -1}; c.again {
			c.Legs[cause.Server] = -1
		}
		c.add(cause.Handshake, cause.Server, p.Time-c.synAt, t.o.Slow)
		c.synAt = 0
	}
	c.thirdAt, c.thirdSeq = p.Time, p.Ack
}

// closes and opens: what a packet announces.
func (t *Truth) announces(c *Connection, from int, p *packet.Packet) (closes, opens bool) {
	bare := p.Payload == 0 && p.TCPFlags&packet.FIN == 0
	window := uint32(p.Window)
	if window > 0 && window < t.o.Small {
		switch {
		case !c.synAck || c.scale[from] == 0 && !c.syn && c.role(from) == cause.Client:
			return false, true
		case c.syn && (c.scale[0] == 0 || c.scale[1] == 0) || c.scale[from] == 0:
		default:
			window <<= c.scale[from] - 1
		}
	}
	switch {
	case window >= t.o.Small:
		return false, true
	case !bare:
		return false, false
	case window == 0:
		t.Zero++
	default:
		t.Small++
	}
	return true, false
}

func (t *Truth) window(c *Connection, from int, p *packet.Packet) (done bool) {
	if p.TCPFlags&packet.ACK == 0 {
		return false
	}
	closes, opens := t.announces(c, from, p)
	if c.closed[from] != 0 && (closes || opens) {
		done = c.add(cause.Window, c.role(from), p.Time-c.closed[from], 0)
	}
	switch {
	case closes:
		c.closed[from] = p.Time
	case opens:
		c.closed[from] = 0
	}
	return done
}

func (t *Truth) third(c *Connection, from int, p *packet.Packet, done bool) bool {
	if p.TCPFlags&packet.ACK == 0 || c.thirdAt == 0 || c.thirdSeq != p.Seq || c.role(from) != cause.Client {
		return false
	}
	at := c.thirdAt
	if c.thirdAt = 0; done {
		return false
	}
	c.Legs[cause.Client] = p.Time - at
	c.add(cause.Handshake, cause.Client, p.Time-at, t.o.Slow)
	return true
}

func (t *Truth) acknowledged(c *Connection, from int, p *packet.Packet, done bool) bool {
	if p.Payload > 1 {
		end, s := p.Seq+p.Payload, &c.pending[from]
		switch {
		case s.at == 0:
			*s = segment{p.Time, end}
		case int32(end-s.end) <= 0:
			*s = segment{}
		}
	}
	if p.TCPFlags&packet.ACK == 0 {
		return false
	}
	s := &c.pending[1-from]
	if s.at == 0 || p.Ack-s.end >= 1<<24 {
		return false
	}
	at := s.at
	*s = segment{}
	if done || p.Payload > 0 || p.TCPFlags&packet.FIN != 0 {
		return false
	}
	if (p.Time>>segmentBits-at>>segmentBits)<<segmentBits >= t.o.Late>>tickBits<<tickBits { // what is late is decided by the coarse clock
		c.add(cause.Ack, c.role(from), p.Time-at, 0)
	}
	return true
}

func (t *Truth) asked(c *Connection, from int, p *packet.Packet, done bool) {
	switch {
	case p.Payload <= 1:
	case c.role(from) == cause.Client:
		c.ask = p.Time
	case c.ask != 0:
		at := c.ask
		if c.ask = 0; !done {
			c.add(cause.Answer, cause.Server, p.Time-at, t.o.Slow)
		}
	}
}

// Window calls fn with the connections that waited, and starts the next window.
func (t *Truth) Window(fn func(*Connection)) {
	for _, c := range t.all {
		if c.Waits != [cause.Kinds][cause.Roles]cause.Wait{} {
			fn(c)
			c.Waits = [cause.Kinds][cause.Roles]cause.Wait{}
		}
	}
	t.Zero, t.Small = 0, 0
}
