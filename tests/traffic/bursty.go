package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// BurstyOptions describe a data center's link: many flows of very different sizes that fill a part of it, and every so often a few
// that together send faster than it can carry (microbursts, as in Chen's dissertation, section 5.5.1).
type BurstyOptions struct {
	Packets  int           // 1,000,000
	Flows    int           // 20,000
	Rate     float64       // of the link, bits a second; 10e9
	Load     float64       // share of it that the background fills; 0.1
	Every    time.Duration // mean time from one burst's start to the next; 4 ms
	Shortest time.Duration // bursts last from this to Longest, evenly on a logarithmic axis; 50 us
	Longest  time.Duration // 2 ms
	Senders  int           // a burst has 1 to so many flows, few more often than many; 24
	Seed     uint64
}

// Bursty is a model: see BurstyOptions. Every burst's flows start within its first half and send with weights of their own.
type Bursty struct {
	opts    BurstyOptions
	rng     *rand.Rand
	alias   *alias
	flows   []packet.Packet
	seq     []uint32
	left    int
	next    float64 // ns, of the next background packet
	burst   float64 // ns, start of the next burst
	senders queue   // packets of bursts: id is the flow, aux the gap to its next packet (ns), seen the end
}

func (o *BurstyOptions) defaults() {
	setInt(&o.Packets, 1_000_000)
	setInt(&o.Flows, 20_000)
	setFloat(&o.Rate, 10e9)
	setFloat(&o.Load, 0.1)
	setInt(&o.Every, 4*time.Millisecond)
	setInt(&o.Shortest, 50*time.Microsecond)
	setInt(&o.Longest, 2*time.Millisecond)
	setInt(&o.Senders, 24)
}

// Bytes on the wire: a full segment, and the mean of the background's (half of them full, half of them small).
const (
	burstyFull  = 1514
	burstySmall = 90
	burstyMean  = (burstyFull + burstySmall) / 2
)

// NewBursty makes the model.
func NewBursty(o BurstyOptions) (*Bursty, error) {
	o.defaults()
	if o.Packets < 0 || o.Flows < 1 || o.Flows > maxFlows || o.Rate <= 0 || o.Load <= 0 || o.Load >= 1 || o.Every <= 0 || o.Shortest <= 0 ||
		o.Longest < o.Shortest || o.Senders < 1 || o.Senders > o.Flows {
		return nil, fmt.Errorf("make bursty traffic: impossible options %+v", o)
	}
	b := &Bursty{opts: o, rng: newRand(o.Seed, 9), left: o.Packets, next: float64(Start), seq: make([]uint32, o.Flows), flows: make([]packet.Packet, o.Flows)}
	shares := make([]float64, o.Flows)
	for i := range shares {
		shares[i] = math.Pow(float64(i+10), -0.8)
		p := &b.flows[i]
		endpoints(p, b.rng.Uint32(), false) // the server's address
		p.Src = sourceIn(uint32(i>>8), byte(i), false)
		p.SrcPort = 1024 + uint16(i>>24)
		segment(p, packet.ACK, mss)
	}
	b.alias = newAlias(shares)
	b.burst = b.next + b.exponential(float64(o.Every))
	return b, nil
}

func (b *Bursty) exponential(mean float64) float64 { return mean * b.rng.ExpFloat64() }

// begin starts a burst: one and a half times to five times the link's rate, shared by its flows.
func (b *Bursty) begin() {
	o := &b.opts
	lasts := float64(o.Shortest) * math.Pow(float64(o.Longest)/float64(o.Shortest), b.rng.Float64())
	senders := 1 + int(float64(o.Senders)*math.Pow(b.rng.Float64(), 3))
	weights, sum := make([]float64, senders), 0.0
	for i := range weights {
		weights[i] = math.Exp(1.5 * b.rng.NormFloat64())
		sum += weights[i]
	}
	rate := o.Rate * (1.5 + 3.5*b.rng.Float64())
	for _, w := range weights {
		begins := b.burst + lasts/2*b.rng.Float64()
		gap := burstyFull * 8e9 / (rate * w / sum)
		b.senders.Push(event{time: int64(begins + gap*b.rng.Float64()), id: uint32(b.rng.IntN(o.Flows)), aux: uint32(min(gap, math.MaxUint32)), seen: int64(b.burst + lasts)})
	}
	b.burst += b.exponential(float64(o.Every))
}

// Next implements Model.
func (b *Bursty) Next(p *packet.Packet) bool {
	if b.left == 0 {
		return false
	}
	b.left--
	for b.burst <= b.next && (len(b.senders) == 0 || b.burst <= float64(b.senders[0].time)) {
		b.begin()
	}
	if len(b.senders) > 0 && float64(b.senders[0].time) <= b.next {
		e := b.senders.Pop()
		b.emit(p, e.id, e.time, burstyFull)
		if e.time += int64(b.exponential(float64(e.aux))); e.time < e.seen {
			b.senders.Push(e)
		}
		return true
	}
	size := uint32(burstyFull)
	if b.rng.IntN(2) == 0 {
		size = burstySmall
	}
	b.emit(p, uint32(b.alias.draw(b.rng)), int64(b.next), size)
	b.next += b.exponential(burstyMean * 8e9 / (b.opts.Rate * b.opts.Load))
	return true
}

func (b *Bursty) emit(p *packet.Packet, flow uint32, time int64, size uint32) {
	*p = b.flows[flow]
	segment(p, packet.ACK, size-ethernet-ipv4-tcpHeader)
	p.Time, p.Seq = time, b.seq[flow]
	p.IPID = uint16(b.seq[flow] / 7)
	b.seq[flow] += p.Payload
}
