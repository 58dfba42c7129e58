package delay

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Rules of a measurement, exact or in a data plane.
type Rules struct {
	Kind    Kind
	Side    Side
	Finals  bool  // tcp-handshake: wait for the ACK that ends it
	Restart bool  // a repeated request restarts the clock
	Longest int64 // ns; a request that is older is forgotten
}

// end is one end of a flow.
type end [18]byte

func endpoint(addr netip.Addr, port uint16) end {
	var e end
	a := addr.As16()
	copy(e[:], a[:])
	binary.BigEndian.PutUint16(e[16:], port)
	return e
}

func (e end) after(o end) bool { return bytes.Compare(e[:], o[:]) > 0 }

// key identifies a request: the flow in the request's direction, and its discriminator.
type key struct {
	from, to end
	v4       bool
	proto    uint8
	disc     uint64
}

func keyOf(p *packet.Packet, q question) key {
	k := key{from: endpoint(p.Src, p.SrcPort), to: endpoint(p.Dst, p.DstPort), v4: p.Src.Is4(), proto: p.Proto, disc: q.disc}
	if q.reverse {
		k.from, k.to = k.to, k.from
	}
	return k
}

// waiting is a request without its response.
type waiting struct {
	since    int64
	answered int64 // time of the SYN-ACK, 0 before it
	volume   Volume
	reverse  bool // copied from its question
}

// Volume of a flow.
type Volume struct {
	Bytes   uint64 // on the wire, both directions
	Packets uint64 // segments
}

func (v *Volume) add(p *packet.Packet) {
	v.Bytes += uint64(p.Len)
	v.Packets += uint64(p.Segs)
}

// Outcome is the tracker's classification of a packet.
type Outcome uint8

const (
	Nothing  Outcome = iota
	Request          // a request
	Repeated         // a repeated request
	Unknown          // a response, or a later packet, without a request
	Answered         // a response: Event.Delay, and Event.Volume for tcp-duration
	Finished         // the end of a handshake: Event.Delay is the whole, Event.Second its second leg
)

// Event is an outcome with its measurements.
type Event struct {
	Outcome Outcome
	Delay   int64 // ns
	Second  int64 // ns
	Volume  Volume
	Reverse bool // the request had the direction opposite to this packet
}

// Tracker matches responses with requests exactly, in unbounded memory. It drops requests older than Rules.Longest, which no data
// plane measures either.
type Tracker struct {
	Rules   Rules
	pending map[key]waiting
	queue   []asked // in order of time
}

type asked struct {
	key   key
	since int64
}

// NewTracker has no pending requests.
func NewTracker(r Rules) *Tracker { return &Tracker{Rules: r, pending: map[key]waiting{}} }

// Pending is the number of requests without a response.
func (t *Tracker) Pending() int { return len(t.pending) }

// Packet applies the rules to the next packet.
func (t *Tracker) Packet(p *packet.Packet) Event {
	t.forget(p.Time)
	q := t.Rules.ask(p)
	if q.role == roleNone {
		return Event{}
	}
	k := keyOf(p, q)
	w, found := t.pending[k]
	if q.role == roleRequest {
		return t.request(p, k, w, found, q)
	}
	if !found {
		return Event{Outcome: Unknown}
	}
	switch q.role {
	case roleResponse:
		return t.response(p, k, w, q)
	case roleFinal:
		return t.final(p, k, w)
	}
	w.volume.add(p)
	t.pending[k] = w
	return Event{}
}

func (t *Tracker) request(p *packet.Packet, k key, w waiting, found bool, q question) Event {
	outcome := Request
	if found {
		outcome = Repeated
		if !t.Rules.Restart {
			return Event{Outcome: outcome}
		}
	}
	w = waiting{since: p.Time, reverse: q.reverse}
	w.volume.add(p)
	t.pending[k] = w
	t.queue = append(t.queue, asked{key: k, since: p.Time})
	return Event{Outcome: outcome}
}

func (t *Tracker) response(p *packet.Packet, k key, w waiting, q question) Event {
	e := Event{Outcome: Answered, Delay: p.Time - w.since, Reverse: q.reverse}
	if t.Rules.Kind == TCPDuration {
		w.volume.add(p)
		e.Volume, e.Reverse = w.volume, q.reverse != w.reverse
	}
	if !t.Rules.Finals || t.Rules.Kind != TCPHandshake {
		delete(t.pending, k)
		return e
	}
	if w.answered != 0 {
		return Event{Outcome: Unknown} // the SYN-ACK was sent again
	}
	w.answered = p.Time
	t.pending[k] = w
	return e
}

func (t *Tracker) final(p *packet.Packet, k key, w waiting) Event {
	delete(t.pending, k)
	if w.answered == 0 {
		return Event{Outcome: Unknown}
	}
	return Event{Outcome: Finished, Delay: p.Time - w.since, Second: p.Time - w.answered}
}

// forget drops requests that waited too long.
func (t *Tracker) forget(now int64) {
	n := 0
	for n < len(t.queue) && now-t.queue[n].since > t.Rules.Longest {
		if a := t.queue[n]; t.pending[a.key].since == a.since {
			delete(t.pending, a.key)
		}
		n++
	}
	t.queue = t.queue[n:]
}
