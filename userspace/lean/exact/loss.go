package exact

import "github.com/xdpmon/xdpmon/userspace/packet"

const (
	smallGap   = 64    // identifiers; what leaves out more is no loss but another counter
	smallBytes = 65536 // the same of TCP's bytes
	proof      = 2     // small steps before gaps count: random identifiers make two in a row once in a million
	mostProof  = 3
	near       = 4096 // identifiers that a host uses up while a packet is late
)

// numbers follows identifiers of 16 bits, exactly: those of IPv4, or RTP's.
type numbers struct {
	known bool
	last  uint16
	good  uint8 // small steps in a row
}

// next says how many identifiers are missing before this one; -1: it is one that was missing. An aggregate has segs of them.
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
	next  uint32 // behind what came furthest
	holes []hole
}

// hole is what was left out, and nothing has filled.
type hole struct {
	start, end uint32
	opened     sent
}

// sent is what tells the order in which packets were sent.
type sent struct {
	id   uint16 // IPv4's; 0: none
	time int64  // ns, when it came by
}

func sentOf(p *packet.Packet) sent {
	if p.Has(packet.IPID) {
		return sent{p.IPID, p.Time}
	}
	return sent{time: p.Time}
}

// before says whether what fills a hole was sent before the packet that opened it: late, and not a repetition. Its identifier is
// a little smaller, whether the host counts the packets of a connection or all. Without one the paper's 3 ms decide.
func (s sent) before(opened sent) bool {
	if s.id != 0 && opened.id != 0 {
		return opened.id-s.id-1 < near-1
	}
	return s.time-opened.time <= orderWindow
}

// gap is how many bytes were left out in front of a segment; less than 0: it brings so many that are late.
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

// fill takes what a segment brings out of the holes, and returns how many of the bytes were late.
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
