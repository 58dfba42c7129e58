// Package precision measures the heavy-hitter algorithms through the real bytecode, beside plain Go references: the
// tests here are small, lab/eval/precision draws the figures with the same pieces.
package precision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Sizes describes flows whose sizes are proportional to 1/(rank + Offset)^Skew, with ranks from 1, in random order.
type Sizes struct {
	Flows, Packets int
	Offset, Skew   float64
	// Drawn: every packet draws its flow by itself, so that sizes vary by chance as well; else a flow has its share of the
	// packets, rounded.
	Drawn bool
	// Scattered: sources are drawn from a tree in which low bytes are popular (256 u^3 for uniform u, byte by byte), so that
	// networks have different sizes; else they are numbered from 10.0.0.0 by rank.
	Scattered bool
	Seed      uint64
}

// Issue is the model that the bars are stated for.
func Issue(seed uint64) Sizes {
	return Sizes{Flows: 54334, Packets: 400000, Offset: 5, Skew: 0.9, Seed: seed}
}

// Stream is a sequence of flows, by rank from 0.
type Stream struct {
	Order []int32
	Keys  []heavy.Key    // by rank, 5-tuples
	srcs  []netip.Addr   // by rank; nil: numbered
	taken []packet.Frame // of a capture, instead of the model's
	truth map[heavy.Key]float64
}

// Spec is what the flows of a stream are keyed by.
var Spec = heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto, Family: heavy.IPv4}

// New makes the stream. Where there are fewer packets than flows, the smallest have none.
func (s Sizes) New() *Stream {
	rng := rand.New(rand.NewPCG(s.Seed, 0x9e3779b97f4a7c15))
	st := &Stream{}
	if s.Scattered {
		st.scatter(rng, s.Flows)
	}
	if until := s.cumulative(); s.Drawn {
		st.draw(rng, until)
	} else {
		st.share(rng, until)
	}
	st.keys(s.Flows)
	st.count()
	return st
}

// cumulative shares of the packets, by rank.
func (s Sizes) cumulative() []float64 {
	until, sum := make([]float64, s.Flows), 0.0
	for r := range until {
		sum += math.Pow(float64(r+1)+s.Offset, -s.Skew)
		until[r] = sum
	}
	for r := range until {
		until[r] *= float64(s.Packets) / sum
	}
	return until
}

func (st *Stream) share(rng *rand.Rand, until []float64) {
	for r, end := range until {
		for len(st.Order) < int(math.Round(end)) {
			st.Order = append(st.Order, int32(r))
		}
	}
	rng.Shuffle(len(st.Order), func(i, j int) { st.Order[i], st.Order[j] = st.Order[j], st.Order[i] })
}

func (st *Stream) draw(rng *rand.Rand, until []float64) {
	all := until[len(until)-1]
	for range int(math.Round(all)) {
		r, _ := slices.BinarySearch(until, rng.Float64()*all)
		st.Order = append(st.Order, int32(min(r, len(until)-1)))
	}
}

func (st *Stream) scatter(rng *rand.Rand, flows int) {
	for range flows {
		var a [4]byte
		for i := range a {
			a[i] = byte(256 * math.Pow(rng.Float64(), 3))
		}
		a[0] = max(a[0], 1)
		st.srcs = append(st.srcs, netip.AddrFrom4(a))
	}
}

func (st *Stream) keys(flows int) {
	for r := range flows {
		p := st.Packet(int32(r), 1)
		key, ok := Spec.Of(&p)
		if !ok {
			panic(fmt.Sprintf("flow %d has no key", r)) // the model makes IPv4 TCP only
		}
		st.Keys = append(st.Keys, key)
	}
}

func (st *Stream) count() {
	st.truth = map[heavy.Key]float64{}
	for _, r := range st.Order {
		st.truth[st.Keys[r]]++
	}
}

// First is the stream's first n packets.
func (st *Stream) First(n int) *Stream {
	cut := &Stream{Order: st.Order[:n], Keys: st.Keys, srcs: st.srcs}
	cut.count()
	return cut
}

// Truth is what the whole stream counts; it is not to be changed.
func (st *Stream) Truth() map[heavy.Key]float64 { return st.truth }

// Packet is a full TCP segment of the flow of a rank.
func (st *Stream) Packet(rank int32, time int64) packet.Packet {
	n := uint32(rank)
	src := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	if st.srcs != nil {
		src = st.srcs[rank]
	}
	return packet.Packet{
		Time: time, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, TCPFlags: packet.ACK,
		Src: src, Dst: netip.AddrFrom4([4]byte{198, 18, byte(n >> 7), byte(n * 7)}),
		SrcPort: uint16(1024 + n%60000), DstPort: 443, Payload: 1448, Len: 14 + 20 + 20 + 1448,
	}
}

// Model makes packets of it, a microsecond apart.
func (st *Stream) Model() traffic.Model { return &model{stream: st} }

type model struct {
	stream *Stream
	next   int
}

// Next implements traffic.Model.
func (m *model) Next(p *packet.Packet) bool {
	if m.next == len(m.stream.Order) {
		return false
	}
	*p = m.stream.Packet(m.stream.Order[m.next], traffic.Start+int64(m.next)*1000)
	m.next++
	return true
}
