package fridge

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// bursts is traffic whose rate jumps: for a tenth of every 100 ms requests arrive eight times as fast, and what is asked
// during a burst takes four times as long, as it does when a queue fills. Half a million requests a second on average,
// 40 % of them answered, delays log-uniform over eight octaves.
type bursts struct {
	rng   *rand.Rand
	left  int     // requests
	now   float64 // ns of the next request
	id    uint32
	due   answers
	truth traffic.Truth
}

const (
	burstPeriod = 100e6 // ns
	burstShare  = 0.1   // of the period
	burstRate   = 8     // times the rate between bursts
	burstDelay  = 4     // times the delay between bursts
	burstMean   = 2000  // ns between requests, on average
	burstMost   = 64e6  // ns, longest delay between bursts
	burstSpan   = 8     // octaves
)

func newBursts(requests int, seed uint64) *bursts {
	return &bursts{rng: rand.New(rand.NewPCG(seed, 77)), left: requests, now: float64(traffic.Start)}
}

// Truth is complete when Next has returned false.
func (b *bursts) Truth() *traffic.Truth { return &b.truth }

func (b *bursts) inBurst() bool { return math.Mod(b.now, burstPeriod) < burstShare*burstPeriod }

// Next implements traffic.Model.
func (b *bursts) Next(p *packet.Packet) bool {
	if len(b.due) > 0 && (b.left == 0 || b.due[0].time <= b.now) {
		a := heap.Pop(&b.due).(answer)
		b.truth.Delays = append(b.truth.Delays, int64(a.time)-int64(a.asked))
		handshake(p, a.id, true)
		p.Time = int64(a.time)
		return true
	}
	if b.left == 0 {
		return false
	}
	handshake(p, b.id, false)
	p.Time = int64(b.now)
	if b.rng.Float64() < 0.4 {
		heap.Push(&b.due, answer{time: b.now + b.delay(), asked: b.now, id: b.id})
	}
	b.left--
	b.id++
	b.truth.Requests++
	b.now += b.gap()
	return true
}

func (b *bursts) delay() float64 {
	d := burstMost * math.Exp2(-burstSpan*b.rng.Float64())
	if b.inBurst() {
		d *= burstDelay
	}
	return d
}

// gap to the next request: the rate between bursts is chosen so that the mean over a period is burstMean.
func (b *bursts) gap() float64 {
	g := b.rng.ExpFloat64() * burstMean * (burstShare*burstRate + 1 - burstShare)
	if b.inBurst() {
		g /= burstRate
	}
	return g
}

// handshake makes the SYN of request id, or the SYN-ACK to it.
func handshake(p *packet.Packet, id uint32, answer bool) {
	*p = packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, Len: 54,
		Src: netip.AddrFrom4([4]byte{10, byte(id >> 16), byte(id >> 8), byte(id)}), Dst: netip.AddrFrom4([4]byte{198, 18, 0, 1}),
		SrcPort: 1024 + uint16(id>>24), DstPort: 443, TCPFlags: packet.SYN, Seq: id * 2654435761}
	if answer {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
		p.TCPFlags, p.Ack, p.Seq = packet.SYN|packet.ACK, p.Seq+1, id
	}
}

// answer is a response that is due; times in ns.
type answer struct {
	time, asked float64
	id          uint32
}

// answers is a heap, the earliest first.
type answers []answer

func (a answers) Len() int           { return len(a) }
func (a answers) Less(i, j int) bool { return a[i].time < a[j].time }
func (a answers) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *answers) Push(x any)        { *a = append(*a, x.(answer)) }
func (a *answers) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
