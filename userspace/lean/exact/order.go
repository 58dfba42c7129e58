package exact

import "github.com/xdpmon/xdpmon/userspace/packet"

// orderWindow is the time up to which a packet below the maximum counts as reordered, and after which as retransmitted: section
// 2.
const orderWindow = int64(3e6) // ns

// far is the largest distance of two sequence numbers of one connection; a larger one means that the port was reused.
const far = 1 << 26

func below(x, y uint32) bool { return y-x-1 < far-1 }

// order follows the sequence numbers of one direction of a connection, exactly.
type order struct {
	previous sighting
	known    bool   // highest and reached are set
	highest  uint32 // end of the highest segment: MaxSeq
	raised   int64  // ns, when a segment last reached it
	reached  []reach
}

// sighting holds the fields in which a mirror port's second copy equals the first.
type sighting struct {
	time              int64
	seq, ack, payload uint32
	id                uint16
	seen              bool
}

// reach is the highest sequence number end, from a time on.
type reach struct {
	since int64
	end   uint32
}

// verdict on a data packet.
type verdict struct {
	data      bool // the packet carries data
	duplicate bool // a mirror port's second copy: the other fields are not set
	late      bool // out of order: definition 11
	again     bool // at least one of its bytes was sent before, more than 3 ms ago
}

// carriesData reports whether order is defined for a packet: it has payload, is no fragment, and neither opens nor resets a
// connection.
func carriesData(p *packet.Packet) bool {
	return p.Has(packet.TCP) && p.Payload > 0 && !p.Has(packet.Fragment) && p.TCPFlags&(packet.SYN|packet.RST) == 0
}

func (o *order) packet(p *packet.Packet) verdict {
	if p.Has(packet.TCP) && p.TCPFlags&packet.SYN != 0 {
		*o = order{previous: o.previous}
	}
	if !carriesData(p) {
		return verdict{}
	}
	v := verdict{data: true, duplicate: o.duplicate(p)}
	if v.duplicate {
		return v
	}
	end := p.Seq + p.Payload
	v.late = o.known && below(end, o.highest) && p.Time-o.raised <= orderWindow
	if passed, ok := o.passed(p.Time); ok && p.Payload > 1 { // one byte keeps a connection alive or probes a window
		v.again = below(p.Seq, passed)
	}
	o.raise(end, p.Time)
	return v
}

func (o *order) duplicate(p *packet.Packet) bool {
	old := o.previous
	o.previous = sighting{p.Time, p.Seq, p.Ack, p.Payload, p.IPID, true}
	now := o.previous
	now.time = old.time
	return old.seen && now == old && p.Time-old.time <= orderWindow
}

// passed is the highest end that was reached more than 3 ms ago.
func (o *order) passed(now int64) (uint32, bool) {
	for len(o.reached) > 1 && now-o.reached[1].since > orderWindow {
		o.reached = o.reached[1:]
	}
	if len(o.reached) == 0 || now-o.reached[0].since <= orderWindow {
		return 0, false
	}
	return o.reached[0].end, true
}

func (o *order) raise(end uint32, now int64) {
	if o.known && below(end, o.highest) {
		return
	}
	if !o.known || end != o.highest {
		o.reached = append(o.reached, reach{now, end})
	}
	o.known, o.highest, o.raised = true, end, now
}
