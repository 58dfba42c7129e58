package reorder

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Definition of an out-of-order packet: section 2.1.1 of the paper, with payload lengths and modulo 2^32.
type Definition int

const (
	// Below: a sequence number below the predecessor's.
	Below Definition = 1
	// Gap: a sequence number above the one that was expected after the predecessor.
	Gap Definition = 2
	// BelowMax: a sequence number below the largest one of the flow so far.
	BelowMax Definition = 3
)

// flowKey is one direction of a TCP connection.
type flowKey struct {
	src, dst     netip.Addr
	sport, dport uint16
}

func keyOf(p *packet.Packet) flowKey { return flowKey{p.Src, p.Dst, p.SrcPort, p.DstPort} }

// flowState holds the numbers that the three definitions compare with.
type flowState struct {
	start  uint32 // of the predecessor
	end    uint32 // expected after it
	max    uint32 // largest start so far
	number uint32 // of the flow, in the order of their first packets
	open   bool   // the connection has sent payload: there is a predecessor
}

// Verdict on one packet: by which definitions it is out of order.
type Verdict struct {
	Flow     uint32  // number of the flow, in the order of their first packets
	Compared bool    // the packet has a predecessor
	Repeated bool    // start and end are the predecessor's: a duplicate, or an immediate retransmission
	Out      [4]bool // by Definition
}

// Tracker judges every packet of every flow by all three definitions, with unbounded memory. It ignores packets without payload:
// pure ACKs and keep-alives without data have no order. A SYN starts a new connection, also on reused ports: its first packet
// with payload has no predecessor.
type Tracker struct{ flows map[flowKey]*flowState }

// NewTracker starts with no flows.
func NewTracker() *Tracker { return &Tracker{flows: map[flowKey]*flowState{}} }

// numbered reports whether reordering is defined for a packet, if it carries payload. Fragments are excluded: later ones have no
// sequence number, and a first fragment's length is not the segment's.
func numbered(p *packet.Packet) bool { return p.Has(packet.TCP) && !p.Has(packet.Fragment) }

// span is the range of sequence numbers of a packet's payload; a SYN takes the number before it.
func span(p *packet.Packet) (start, end uint32) {
	start = p.Seq
	if p.TCPFlags&packet.SYN != 0 {
		start++
	}
	return start, start + p.Payload
}

// Packet judges one packet; used is false when it carries no TCP payload.
func (t *Tracker) Packet(p *packet.Packet) (v Verdict, used bool) {
	if !numbered(p) {
		return v, false
	}
	f := t.flows[keyOf(p)]
	if f != nil && p.TCPFlags&packet.SYN != 0 {
		f.open = false
	}
	if p.Payload == 0 {
		return v, false
	}
	if f == nil {
		f = &flowState{number: uint32(len(t.flows))}
		t.flows[keyOf(p)] = f
	}
	start, end := span(p)
	v = f.judge(start, end)
	f.advance(start, end)
	return v, true
}

// before reports whether a is below b, modulo 2^32.
func before(a, b uint32) bool { return int32(a-b) < 0 }

func (f *flowState) judge(start, end uint32) Verdict {
	if !f.open {
		return Verdict{Flow: f.number}
	}
	v := Verdict{Flow: f.number, Compared: true, Repeated: start == f.start && end == f.end}
	v.Out[Below] = before(start, f.start)
	v.Out[Gap] = before(f.end, start)
	v.Out[BelowMax] = before(start, f.max)
	return v
}

func (f *flowState) advance(start, end uint32) {
	if !f.open || before(f.max, start) {
		f.max = start
	}
	f.start, f.end, f.open = start, end, true
}
