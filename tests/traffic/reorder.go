package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ReorderOptions describe what servers of many networks send to this one: section 4.1 of the reordering paper. Sizes of
// flows and numbers of flows of a prefix are heavy-tailed; windows of segments are sent as trains, a round trip apart; a
// lost segment is sent again within the next train, and some paths deliver segments late.
type ReorderOptions struct {
	Packets  int           // about that many: 8,200,000, a tenth of the paper's
	Flows    int           // 546,126
	Prefixes int           // 17,097
	Span     time.Duration // flows start within it: 30 s, so that the rate is the paper's
	Gap      time.Duration // mean between the segments of a train: 12 us
	Bad      float64       // share of prefixes whose path is bad: 0.12
	Split    float64       // share of prefixes of whose segments some take another path: gaps that are never filled: 0.02
	V6       float64       // share of prefixes
	Seed     uint64
}

func (o *ReorderOptions) defaults() {
	setInt(&o.Packets, 8_200_000)
	setInt(&o.Flows, 546_126)
	setInt(&o.Prefixes, 17_097)
	setInt(&o.Span, 30*time.Second)
	setInt(&o.Gap, 12*time.Microsecond)
	setFloat(&o.Bad, 0.12)
	setFloat(&o.Split, 0.02)
}

func (o *ReorderOptions) possible() bool {
	return o.Packets > 0 && o.Prefixes > 0 && o.Prefixes <= 1<<16 && o.Flows >= o.Prefixes && o.Flows < 1<<24 &&
		o.Span > 0 && o.Gap > 0 && o.Bad >= 0 && o.Bad <= 1 && o.Split >= 0 && o.Split <= 1 && o.V6 >= 0 && o.V6 <= 1
}

// reorderStart leaves time for a stale empty record: a stored time of 0 is that far back.
const reorderStart = 300 * int64(time.Second)

// sender is one flow.
type sender struct {
	start   int64 // ns
	prefix  int32
	left    int32  // segments that were never sent
	next    uint32 // number of the next one, in segments
	window  int32
	bad     float32 // probability that a segment is lost or late
	hidden  float32 // ... that it takes a path that is not measured
	again   []uint32
	train   []uint32 // packets in flight, in order of arrival
	arrived int
}

// Reorder is a model: see ReorderOptions.
type Reorder struct {
	opts   ReorderOptions
	rng    *rand.Rand
	flows  []sender // by start
	begun  int
	rtt    []int64 // of a prefix, ns
	v6     []bool
	active queue
}

// NewReorder makes the model.
func NewReorder(o ReorderOptions) (*Reorder, error) {
	o.defaults()
	if !o.possible() {
		return nil, fmt.Errorf("make reordered traffic: impossible options %+v", o)
	}
	r := &Reorder{opts: o, rng: newRand(o.Seed, 5), flows: make([]sender, o.Flows),
		rtt: make([]int64, o.Prefixes), v6: make([]bool, o.Prefixes)}
	quality, hidden := make([]float64, o.Prefixes), make([]float32, o.Prefixes)
	for i := range quality {
		quality[i] = r.quality()
		if r.rng.Float64() < o.Split {
			hidden[i] = float32(0.02 * math.Exp(r.rng.Float64()*math.Log(5)))
		}
		r.rtt[i] = int64(10e6 * math.Exp(r.rng.Float64()*math.Log(15)))
		r.v6[i] = r.rng.Float64() < o.V6
	}
	r.assign(quality, hidden)
	r.sizes()
	slices.SortFunc(r.flows, func(a, b sender) int { return int(a.start - b.start) })
	return r, nil
}

// quality of a path: most are good, some lose or reorder up to a tenth of the segments.
func (r *Reorder) quality() float64 {
	if r.rng.Float64() < r.opts.Bad {
		return 0.01 * math.Exp(r.rng.Float64()*math.Log(10))
	}
	return 0.0005 * r.rng.ExpFloat64()
}

// assign gives every prefix one flow and the rest by Zipf's law. A flow may have more or fewer losses than its prefix: that is what
// keeps the correlation of section 4.1.2 weak.
func (r *Reorder) assign(quality []float64, hidden []float32) {
	shares := make([]float64, r.opts.Prefixes)
	for i := range shares {
		shares[i] = 1 / (float64(i) + 8)
	}
	large := newAlias(shares)
	for i := range r.flows {
		f := &r.flows[i]
		f.prefix = int32(i)
		if i >= r.opts.Prefixes {
			f.prefix = int32(large.draw(r.rng))
		}
		luck := r.rng.ExpFloat64() * r.rng.ExpFloat64()
		f.bad, f.hidden = float32(min(0.3, quality[f.prefix]*luck)), hidden[f.prefix]
		f.start = reorderStart + int64(r.rng.Float64()*float64(r.opts.Span))
		f.window = 2 + int32(r.rng.IntN(9))
	}
}

// sizes draws from a Pareto distribution with exponent 1.1 and scales it to the wanted number of packets.
func (r *Reorder) sizes() {
	raw, sum := make([]float64, len(r.flows)), 0.0
	for i := range raw {
		raw[i] = min(math.Pow(1-r.rng.Float64(), -1/1.1), 1e5)
		sum += raw[i]
	}
	scale := float64(r.opts.Packets) / sum
	for i := range raw {
		r.flows[i].left = int32(max(1, math.Round(raw[i]*scale)))
	}
}

// Next implements Model.
func (r *Reorder) Next(p *packet.Packet) bool {
	for r.begun < len(r.flows) && (len(r.active) == 0 || r.active[0].time >= r.flows[r.begun].start) {
		r.send(uint32(r.begun), r.flows[r.begun].start)
		r.begun++
	}
	if len(r.active) == 0 {
		return false
	}
	e := r.active.Pop()
	f := &r.flows[e.id]
	r.packet(p, e, f.train[f.arrived])
	f.arrived++
	if f.arrived < len(f.train) {
		e.time += 1 + int64(r.rng.ExpFloat64()*float64(r.opts.Gap))
		r.active.Push(e)
		return true
	}
	r.send(e.id, e.time+r.rtt[f.prefix])
	return true
}

// send starts the next train of a flow that has something left.
func (r *Reorder) send(id uint32, when int64) {
	f := &r.flows[id]
	for f.build(r.rng); len(f.train) == 0 && f.left > 0; f.build(r.rng) { // trains that were not seen
	}
	if len(f.train) > 0 {
		r.active.Push(event{time: when, id: id})
		return
	}
	f.train, f.again = nil, nil
}

// build makes the next train: new segments, of which some are lost and some late, and lost ones of the train before.
func (f *sender) build(rng *rand.Rand) {
	f.train, f.arrived = f.train[:0], 0
	for n := min(f.window, f.left); n > 0; n-- {
		f.train = append(f.train, f.next)
		f.next++
		f.left--
	}
	f.window = min(2*f.window, 64)
	back := f.again
	f.again = nil
	f.disturb(rng)
	for _, segment := range back {
		f.train = slices.Insert(f.train, rng.IntN(len(f.train)+1), segment)
	}
	if len(f.train) == 0 && len(f.again) > 0 { // all were lost
		f.train, f.again = append(f.train, f.again...), nil
	}
}

// disturb removes lost segments from the train and delivers late ones one to three places later.
func (f *sender) disturb(rng *rand.Rand) {
	rest := f.train[:0]
	for _, segment := range f.train {
		if rng.Float32() < f.hidden {
			continue
		}
		if rng.Float32() < f.bad && rng.IntN(2) == 0 {
			f.again = append(f.again, segment)
			continue
		}
		rest = append(rest, segment)
	}
	f.train = rest
	for i := 0; i+1 < len(f.train); i++ {
		if rng.Float32() >= f.bad || rng.IntN(2) == 0 {
			continue
		}
		late, to := f.train[i], min(i+1+rng.IntN(3), len(f.train)-1)
		copy(f.train[i:to], f.train[i+1:to+1])
		f.train[to] = late
		i = to
	}
}

func (r *Reorder) packet(p *packet.Packet, e event, number uint32) {
	f := &r.flows[e.id]
	*p = packet.Packet{Time: e.time, Src: r.source(f.prefix, e.id), Dst: netip.AddrFrom4([4]byte{198, 18, byte(e.id >> 8), byte(e.id)}),
		SrcPort: 443, DstPort: 1024 + uint16(e.id>>16)}
	if r.v6[f.prefix] {
		p.Dst = addr6(0x2, e.id)
	}
	p.Seq = mix(e.id) + number*mss
	p.IPID = uint16(number)
	segment(p, packet.ACK, mss)
}

// source is a host in the flow's prefix, a /24 or a /48.
func (r *Reorder) source(prefix int32, id uint32) netip.Addr {
	if r.v6[prefix] {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(prefix >> 8), byte(prefix), 15: byte(id)})
	}
	return netip.AddrFrom4([4]byte{10, byte(prefix >> 8), byte(prefix), byte(id)})
}
