package traffic

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// InsistentOptions describe handshakes of clients that send their SYN again. All are answered.
type InsistentOptions struct {
	Requests int
	Gap      time.Duration // between requests, on average
	Share    float64       // of requests that are sent again
	Times    int           // occurrences of these, the first included
	Pause    time.Duration // between them, on average; from half to one and a half of it
	// Delay is the longest from the last occurrence to the answer, or from the first (Early); log-uniform over a factor of 100.
	Delay time.Duration
	Early bool
	// Bursts slows every fourth thousand of requests down by a factor of 8 while they arrive five times as fast.
	Bursts bool
	Seed   uint64
}

// Script is a model of prepared packets.
type Script []packet.Packet

// Next implements Model.
func (s *Script) Next(p *packet.Packet) bool {
	if len(*s) == 0 {
		return false
	}
	*p, *s = (*s)[0], (*s)[1:]
	return true
}

// InTime sorts packets by time.
func InTime(packets []packet.Packet) *Script {
	slices.SortStableFunc(packets, func(a, b packet.Packet) int { return int(a.Time - b.Time) })
	s := Script(packets)
	return &s
}

// NewInsistent makes the packets.
func NewInsistent(o InsistentOptions) *Script {
	rng := newRand(o.Seed, 21)
	var packets []packet.Packet
	at := float64(Start)
	for n := range o.Requests {
		gap, slower := float64(o.Gap), 1.0
		if o.Bursts && n/1000%4 == 3 {
			gap, slower = gap/5, 8
		}
		at += gap * rng.ExpFloat64()
		packets = o.handshake(packets, rng, n, int64(at), slower)
	}
	return InTime(packets)
}

// handshake appends the packets of client n, which starts at a time.
func (o InsistentOptions) handshake(packets []packet.Packet, rng *rand.Rand, n int, first int64, slower float64) []packet.Packet {
	last, times := first, 1
	if rng.Float64() < o.Share {
		times = o.Times
	}
	packets = append(packets, SYN(first, n, false))
	for range times - 1 {
		last += int64(o.Pause)/2 + rng.Int64N(int64(o.Pause))
		packets = append(packets, SYN(last, n, false))
	}
	if o.Early {
		last = first
	}
	took := slower * float64(o.Delay) * math.Pow(0.01, rng.Float64())
	return append(packets, SYN(last+int64(took), n, true))
}

// SYN makes the SYN of client n, or its answer.
func SYN(at int64, n int, answer bool) packet.Packet {
	p := packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: uint32(n) * 7,
		Src: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		SrcPort: uint16(40000 + n>>24), DstPort: 443}
	if answer {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
		p.TCPFlags, p.Seq, p.Ack = packet.SYN|packet.ACK, 1, p.Seq+1
	}
	return p
}
