package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ZipfOptions describe flows of very different sizes: the share of the flow of rank r (from 1) is proportional to
// 1/(r+Offset)^Skew.
type ZipfOptions struct {
	Packets int     // 1,000,000
	Flows   int     // 100,000
	Skew    float64 // 1; negative: all flows alike
	Offset  float64 // 0
	Rate    float64 // packets a second, as a Poisson process of trains; 1,000,000
	// Train is the mean number of packets that a flow sends in a row (geometric); 1, independent packets, unless given.
	// Packets of a train are Gap apart (exponential, 100 us), and trains of many flows overlap.
	Train float64
	Gap   time.Duration
	// Prefixes is the number of source networks (/24 or /64) that the flows are spread over, 256 unless given, with
	// flow number modulo Prefixes; a network has large and small flows.
	Prefixes int
	V6       float64 // share of flows
	Seed     uint64
}

// Zipf is a model: see ZipfOptions. Packets are full TCP segments with running sequence numbers in each flow.
type Zipf struct {
	opts   ZipfOptions
	rng    *rand.Rand
	alias  *alias
	flows  []packet.Packet // keys: addresses, ports, protocol; by rank-1
	seq    []uint32
	counts []uint64
	start  float64 // ns, of the next train
	left   int
	active queue // trains: id is the flow, aux the packets that are left
}

func (o *ZipfOptions) defaults() {
	setInt(&o.Packets, 1_000_000)
	setInt(&o.Flows, 100_000)
	setFloat(&o.Skew, 1)
	setFloat(&o.Rate, 1e6)
	setFloat(&o.Train, 1)
	setInt(&o.Gap, 100*time.Microsecond)
	setInt(&o.Prefixes, 256)
	o.Skew = max(o.Skew, 0)
}

// maxFlows is how many hosts and ports a prefix has room for.
const maxFlows = 1 << 23

func (o *ZipfOptions) possible() bool {
	return o.Packets >= 0 && o.Flows >= 1 && o.Prefixes >= 1 && o.Prefixes <= 1<<16 && o.Flows/o.Prefixes < maxFlows &&
		o.Offset > -1 && o.Rate > 0 && o.Train >= 1 && o.Gap >= 0 && o.V6 >= 0 && o.V6 <= 1
}

// NewZipf makes the model.
func NewZipf(o ZipfOptions) (*Zipf, error) {
	o.defaults()
	if !o.possible() {
		return nil, fmt.Errorf("make Zipf traffic: impossible options %+v", o)
	}
	z := &Zipf{
		opts: o, rng: newRand(o.Seed, 3), left: o.Packets, start: float64(Start),
		seq: make([]uint32, o.Flows), counts: make([]uint64, o.Flows), flows: make([]packet.Packet, o.Flows),
	}
	shares := make([]float64, o.Flows)
	for i := range shares {
		shares[i] = math.Pow(float64(i+1)+o.Offset, -o.Skew)
	}
	z.alias = newAlias(shares)
	z.makeFlows()
	return z, nil
}

// makeFlows gives every flow its key: the network, and a counter within it, are the flow's number.
func (z *Zipf) makeFlows() {
	for i := range z.flows {
		p := &z.flows[i]
		n := uint32(i)
		network, within := n%uint32(z.opts.Prefixes), n/uint32(z.opts.Prefixes)
		v6 := z.rng.Float64() < z.opts.V6
		endpoints(p, z.rng.Uint32(), v6) // the server's address
		p.Src = sourceIn(network, byte(within), v6)
		p.SrcPort = 1024 + uint16(within>>8)
		z.seq[i] = mix(n)
		segment(p, packet.ACK, mss)
	}
}

func sourceIn(network uint32, host byte, v6 bool) netip.Addr {
	high, low := byte(network>>8), byte(network)
	if v6 {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 3, high, low, 15: host})
	}
	return netip.AddrFrom4([4]byte{10, high, low, host})
}

// Next implements Model.
func (z *Zipf) Next(p *packet.Packet) bool {
	if z.left == 0 {
		return false
	}
	for len(z.active) == 0 || z.active[0].time > int64(z.start) {
		z.newTrain()
	}
	e := z.active.Pop()
	z.packet(p, e)
	if e.aux > 1 {
		e.aux--
		e.time += int64(z.rng.ExpFloat64() * float64(z.opts.Gap))
		z.active.Push(e)
	}
	z.left--
	return true
}

// newTrain starts the next train of a flow drawn by its share.
func (z *Zipf) newTrain() {
	length := uint32(1)
	if z.opts.Train > 1 {
		length += uint32(math.Log1p(-z.rng.Float64()) / math.Log1p(-1/z.opts.Train))
	}
	z.active.Push(event{time: int64(z.start), id: uint32(z.alias.draw(z.rng)), aux: length})
	z.start += z.rng.ExpFloat64() * 1e9 * z.opts.Train / z.opts.Rate
}

func (z *Zipf) packet(p *packet.Packet, e event) {
	*p = z.flows[e.id]
	p.Time = e.time
	p.Seq = z.seq[e.id]
	if p.Has(packet.IPID) {
		p.IPID = uint16(z.counts[e.id])
	}
	z.seq[e.id] += p.Payload
	z.counts[e.id]++
}

// Counts returns the packets of every flow so far, by rank-1: the truth, exact at any time.
func (z *Zipf) Counts() []uint64 { return z.counts }

// Flow returns the key of the flow of a rank, from 0: addresses, ports and protocol.
func (z *Zipf) Flow(rank int) packet.Packet { return z.flows[rank] }

// Share is the expected share of the flow of a rank, from 0.
func (z *Zipf) Share(rank int) float64 { return z.alias.shares[rank] }
