package exact

import "github.com/xdpmon/xdpmon/userspace/packet"

const (
	smallGap   = 64    // identifiers; a larger step is not a loss but another counter
	smallBytes = 65536 // the same in bytes, for TCP
	proof      = 2     // small steps before gaps count: random identifiers make two in a row once in a million
	mostProof  = 3
	near       = 4096 // identifiers that a host may use while a packet is delayed
)

// numbers follows 16-bit identifiers exactly: IPv4's identification, or RTP's sequence numbers.
type numbers struct {
	known bool
	last  uint16
	good  uint8 // small steps in a row
}

// next returns how many identifiers are missing before this one; -1: this one was missing and arrived late. An aggregate has segs
// identifiers.
func (n *numbers) next(id, segs uint16) int {
	last := id + segs - 1
	if !n.known {
		*n = numbers{known: true, last: last}
		return 0
	}
	proven := n.good >= proof
	switch step := id - n.last; {
	case step <= smallGap:
		n.last, n.good = last, min(n.good+1, mostProof)
		if proven && step > 1 {
			return int(step) - 1
		}
	case -step <= smallGap:
		if proven {
			return -1
		}
	default:
		n.last, n.good = last, 0
	}
	return 0
}

// stream follows the bytes of one direction of a connection, exactly.
type stream struct {
	known bool
	next  uint32 // end of the highest segment
	holes []hole
}

// hole is a range of bytes that was skipped and has not been filled.
type hole struct {
	start, end uint32
	opened     sent
}

// sent is the evidence for the order in which packets were sent.
type sent struct {
	id   uint16 // IPv4's; 0: none
	time int64  // ns, when it was captured
}

func sentOf(p *packet.Packet) sent {
	if p.Has(packet.IPID) {
		return sent{p.IPID, p.Time}
	}
	return sent{time: p.Time}
}

// before reports whether the packet that fills a hole was sent before the packet that opened it: reordered, and not a
// retransmission. Its identifier is then a little smaller, whether the host numbers packets per connection or globally. Without
// an identifier the paper's 3 ms decide.
func (s sent) before(opened sent) bool {
	if s.id != 0 && opened.id != 0 {
		return opened.id-s.id-1 < near-1
	}
	return s.time-opened.time <= orderWindow
}

// gap is how many bytes were skipped before a segment; negative: the segment carries that many late bytes.
func (s *stream) gap(p *packet.Packet) (lost int) {
	end := p.Seq + p.Payload + uint32(p.TCPFlags>>1&1) + uint32(p.TCPFlags&1)
	if !s.known || p.TCPFlags&packet.SYN != 0 {
		*s = stream{known: true, next: end}
		return 0
	}
	if ahead := int32(p.Seq - s.next); ahead > 0 && ahead <= smallBytes {
		s.holes = append(s.holes, hole{s.next, p.Seq, sentOf(p)})
		lost = int(ahead)
	} else if ahead < 0 {
		lost = -s.fill(p.Seq, end, sentOf(p))
	}
	if s.next-end >= far { // ahead, or so far below that it is another connection
		s.next = end
	}
	return lost
}

// fill removes a segment's bytes from the holes, and returns how many of them were late.
func (s *stream) fill(start, end uint32, now sent) (late int) {
	open := s.holes[:0:0]
	for _, h := range s.holes {
		from, to := max(0, int32(start-h.start)), min(int32(h.end-h.start), int32(end-h.start))
		if from >= to {
			if s.next-h.end < far {
				open = append(open, h)
			}
			continue
		}
		if now.before(h.opened) {
			late += int(to - from)
		}
		if from > 0 {
			open = append(open, hole{h.start, h.start + uint32(from), h.opened})
		}
		if h.start+uint32(to) != h.end {
			open = append(open, hole{h.start + uint32(to), h.end, h.opened})
		}
	}
	s.holes = open
	return late
}
