// Package exact follows every flow in unbounded memory: the ground truth for the lean algorithms.
package exact

import (
	"cmp"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// longestDelay is the largest delay that the data plane can measure: 2^19 ticks of 2^13 ns.
const longestDelay = int64(1) << 32

// TruthOptions select what is counted.
type TruthOptions struct {
	Key   heavy.Spec // of the flows that are listed
	ID    string     // the numbers that loss is detected from: ipid, rtp, tcp-bytes
	Bytes bool       // reordering and retransmission in bytes of payload
}

// Truth follows all flows exactly, in unbounded memory. A flow is one direction of a 5-tuple, that of its data; its events are
// counted under its Key.
type Truth struct {
	opts   TruthOptions
	delays *delay.Tracker
	flows  map[direction]*follower
	keys   map[heavy.Key]*Tally
	seen   Seen
}

// direction of a connection.
type direction struct {
	src, dst     netip.Addr
	sport, dport uint16
	proto        uint8
}

// follower is the state of a flow.
type follower struct {
	ids   numbers
	bytes stream
	order order
	tally *Tally
}

// Tally counts the events of one key's flows in a window.
type Tally struct {
	Latency    int64 // ns, sum over segments that were acknowledged
	Answered   uint64
	Lost       int64 // packets, or bytes with tcp-bytes
	OutOfOrder uint64
	Again      uint64
	Duplicates uint64
	Requests   uint64 // segments that ask for an ACK; aggregates count as their segments, here and below
	Numbered   uint64 // packets with the numbers that loss is detected from
	Holes      int64  // packets before which something is missing, less those that arrived late
	Data       uint64 // packets with data, copies of a mirror not counted
}

// Seen counts the packets of a window.
type Seen struct {
	Requests, Answered, Numbered, Data, OutOfOrder, Again, Duplicates uint64
	Lost                                                              int64
}

// NewTruth has seen nothing yet.
func NewTruth(o TruthOptions) *Truth {
	return &Truth{opts: o, delays: delay.NewTracker(delay.Rules{Kind: delay.TCPData, Longest: longestDelay}),
		flows: map[direction]*follower{}, keys: map[heavy.Key]*Tally{}}
}

// Packet takes the next packet.
func (t *Truth) Packet(p *packet.Packet) {
	f := t.follow(p)
	if f == nil {
		return
	}
	t.latency(p)
	t.loss(p, f)
	t.order(p, f)
}

// follow finds the flow of a packet; nil when it has no key.
func (t *Truth) follow(p *packet.Packet) *follower {
	d := direction{p.Src, p.Dst, p.SrcPort, p.DstPort, p.Proto}
	if f := t.flows[d]; f != nil {
		return f
	}
	key, ok := t.opts.Key.Of(p)
	if !ok {
		return nil
	}
	tally := t.keys[key]
	if tally == nil {
		tally = &Tally{}
		t.keys[key] = tally
	}
	f := &follower{tally: tally}
	t.flows[d] = f
	return f
}

func (t *Truth) latency(p *packet.Packet) {
	e := t.delays.Packet(p)
	switch e.Outcome {
	case delay.Request, delay.Repeated:
		t.seen.Requests++
		if f := t.flows[direction{p.Src, p.Dst, p.SrcPort, p.DstPort, p.Proto}]; f != nil {
			f.tally.Requests += uint64(max(p.Segs, 1))
		}
	case delay.Answered:
		t.seen.Answered++
		if f := t.flows[direction{p.Dst, p.Src, p.DstPort, p.SrcPort, p.Proto}]; f != nil {
			f.tally.Latency += e.Delay
			f.tally.Answered++
		}
	}
}

func (t *Truth) loss(p *packet.Packet, f *follower) {
	lost := 0
	switch {
	case p.Has(packet.Fragment):
		return
	case t.opts.ID == "tcp-bytes":
		if !p.Has(packet.TCP) || p.Payload == 0 && p.TCPFlags&(packet.SYN|packet.FIN) == 0 {
			return
		}
		lost = f.bytes.gap(p)
	case t.opts.ID == "ipid" && p.Has(packet.IPID):
		lost = f.ids.next(p.IPID, max(p.Segs, 1))
	case t.opts.ID == "rtp" && p.Has(packet.RTP):
		lost = f.ids.next(uint16(p.Seq), 1)
	default:
		return
	}
	t.seen.Numbered++
	t.seen.Lost += int64(lost)
	f.tally.Lost += int64(lost)
	f.tally.Numbered += uint64(max(p.Segs, 1))
	f.tally.Holes += int64(cmp.Compare(lost, 0))
}

func (t *Truth) order(p *packet.Packet, f *follower) {
	v := f.order.packet(p)
	if !v.data {
		return
	}
	t.seen.Data++
	weight := uint64(max(p.Segs, 1))
	if t.opts.Bytes {
		weight = uint64(p.Payload)
	}
	if v.duplicate {
		t.seen.Duplicates++
		f.tally.Duplicates++
	} else {
		f.tally.Data += uint64(max(p.Segs, 1))
	}
	if v.late {
		t.seen.OutOfOrder += weight
		f.tally.OutOfOrder += weight
	}
	if v.again {
		t.seen.Again += weight
		f.tally.Again += weight
	}
}

// Window returns the counts and starts the next window. Flow state persists.
func (t *Truth) Window() (map[heavy.Key]Tally, Seen) {
	all, seen := make(map[heavy.Key]Tally), t.seen
	for key, tally := range t.keys {
		if *tally != (Tally{}) {
			all[key] = *tally
			*tally = Tally{}
		}
	}
	t.seen = Seen{}
	return all, seen
}
