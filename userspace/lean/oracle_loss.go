package lean

import "github.com/xdpmon/xdpmon/userspace/packet"

const (
	smallGap   = 64    // identifiers; what leaves out more is no loss but another counter
	smallBytes = 65536 // the same of TCP's bytes
	proof      = 2     // small steps before gaps count: random identifiers make two in a row once in a million
	mostProof  = 3
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

// stream follows the bytes of one direction of a connection.
type stream struct {
	known bool
	next  uint32
}

// gap is how many bytes are missing in front of a segment; less than 0: as many bytes come again, or late.
func (s *stream) gap(p *packet.Packet) int {
	end := p.Seq + p.Payload + uint32(p.TCPFlags>>1&1) + uint32(p.TCPFlags&1)
	if !s.known {
		*s = stream{true, end}
		return 0
	}
	ahead := int32(p.Seq - s.next)
	if int32(end-s.next) > 0 {
		s.next = end
	}
	switch {
	case ahead > smallBytes:
		return 0
	case ahead > 0:
		return int(ahead)
	case ahead < 0:
		return -int(p.Payload)
	}
	return 0
}
