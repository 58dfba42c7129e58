package traffic

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// LeanOptions describe a minute of a backbone on which some connections suffer: Liu et al., "Memory-Efficient Performance Monitoring on Programmable Switches with Lean Algorithms", section 6.1. Sizes of
// flows have CAIDA-like skew, segments are sent as trains a round trip or more apart, and every segment is acknowledged
// one round trip later. Negative values mean none if 0 means the default.
type LeanOptions struct {
	Packets int           // of both directions, about: 7,000,000
	Flows   int           // connections, each of which sends data one way and is acknowledged the other: 370,000
	Span    time.Duration // 60 s
	// Skew and Offset: the flow of rank r from 1 has a share proportional to 1/(r+Offset)^Skew of the segments, and one
	// at least; 1.1 and 10 give the largest flow 1 %, the first thousand a half, and to half of the flows one segment.
	Skew, Offset float64
	Gap          time.Duration // mean between the segments of a train: 100 us

	Heavy   int // victims are chosen among that many of the largest flows: 1,000
	Victims int // of each kind, chosen independently: 100

	Delay time.Duration // added to every round trip of the victims of delay; 0
	Loss  float64       // share of the victims' segments that are lost; 0
	Late  float64       // ... that arrive one to three places later, within 3 ms; 0
	Again float64       // ... that are repeated at the head of a later train, more than 3 ms later; 0
	// Background is the share of segments of all other flows that are lost, as many that are late, and as many again: 0.0002.
	Background float64
	// Most, if above 0, makes shares independent of sizes: every flow has three shares of its own, log-uniform between Most/1000 and Most, of
	// segments lost, late and sent again; Background and victims of these do not apply. At most 1/3.
	Most   float64
	Repair bool // lost segments are sent again, as retransmissions

	Unanswered float64 // share of segments that are never acknowledged: 0.01
	ZeroID     float64 // share of flows whose IPv4 ID is always 0: 0.1
	RandomID   float64 // ... is random: 0.05; all others count packets
	V6         float64 // share of flows: 0.05
	Mirror     float64 // share of packets that a mirror port shows twice; 0
	Scan       int     // unanswered SYNs of one source to as many addresses, spread over the time; 0
	Seed       uint64
}

func (o *LeanOptions) defaults() {
	setInt(&o.Packets, 7_000_000)
	setInt(&o.Flows, 370_000)
	setInt(&o.Span, 60*time.Second)
	setFloat(&o.Skew, 1.1)
	setFloat(&o.Offset, 10)
	setInt(&o.Gap, 100*time.Microsecond)
	setInt(&o.Heavy, min(1000, o.Flows))
	setInt(&o.Victims, min(100, o.Heavy))
	for _, s := range []struct {
		share *float64
		usual float64
	}{{&o.Background, 0.0002}, {&o.Unanswered, 0.01}, {&o.ZeroID, 0.1}, {&o.RandomID, 0.05}, {&o.V6, 0.05}} {
		setFloat(s.share, s.usual)
		*s.share = max(*s.share, 0)
	}
}

func (o *LeanOptions) possible() bool {
	for _, s := range []float64{o.Loss, o.Late, o.Again, o.Background, o.Unanswered, o.ZeroID + o.RandomID, o.V6, o.Mirror, 3 * o.Most} {
		if s < 0 || s > 1 {
			return false
		}
	}
	return o.Flows > 0 && o.Flows < 1<<30 && o.Packets >= 2*o.Flows && o.Span > 0 && o.Gap > 0 && o.Delay >= 0 && o.Offset > -1 &&
		o.Victims <= o.Heavy && o.Heavy <= o.Flows && o.Scan >= 0 && o.Scan <= 1<<17 && o.Loss+o.Late+o.Again <= 1
}

// LeanKind is what a flow suffers from.
type LeanKind uint8

// The kinds, in the order of the paper.
const (
	LeanDelay LeanKind = iota
	LeanLoss
	LeanLate
	LeanAgain
	leanKinds
)

// LeanTally is what happened to a flow, by construction.
type LeanTally struct {
	Sent  uint32 // segments that were sent for the first time, lost ones included
	Acked uint32
	Delay int64 // ns, sum over the acknowledged segments
	Count [leanKinds]uint32
}

// idKind is how a host fills the IPv4 ID.
type idKind uint8

const (
	idCounts idKind = iota
	idZero
	idRandom
)

// Lean is a model: see LeanOptions.
type Lean struct {
	opts    LeanOptions
	rng     *rand.Rand
	mirror  *rand.Rand // apart, so that a mirror changes nothing else
	flows   []leanFlow
	order   []uint32 // flows by start
	begun   int
	trains  queue // running: next segment of a train
	idle    queue // next train of a flow
	acks    queue
	again   map[uint32][]leanSegment // to be sent at the head of the next train
	victims [leanKinds][]int
	tallies []LeanTally
	scan    int
	twice   *packet.Packet // what a mirror shows again
	copied  packet.Packet
}

// NewLean makes the model.
func NewLean(o LeanOptions) (*Lean, error) {
	o.defaults()
	if !o.possible() {
		return nil, fmt.Errorf("make traffic with victims: impossible options %+v", o)
	}
	m := &Lean{opts: o, rng: newRand(o.Seed, 6), mirror: newRand(o.Seed, 7), flows: make([]leanFlow, o.Flows), tallies: make([]LeanTally, o.Flows),
		again: map[uint32][]leanSegment{}}
	m.sizes()
	for i := range m.flows {
		m.character(uint32(i))
	}
	m.choose()
	m.spread()
	m.sort()
	return m, nil
}

// Victims lists the flows that were made to suffer, by rank from 0.
func (m *Lean) Victims(kind LeanKind) []int { return m.victims[kind] }

// Tally of a flow, by rank from 0; complete when Next has returned false.
func (m *Lean) Tally(rank int) LeanTally { return m.tallies[rank] }

// Counted reports whether a flow's IPv4 IDs count its packets.
func (m *Lean) Counted(rank int) bool { return !m.flows[rank].v6 && m.flows[rank].ids == idCounts }

// Flow returns the key of a flow in the direction of its data: addresses, ports and protocol.
func (m *Lean) Flow(rank int) packet.Packet {
	var p packet.Packet
	m.address(&p, uint32(rank))
	return p
}

// address of a segment: from the server to the client.
func (m *Lean) address(p *packet.Packet, id uint32) {
	endpoints(p, id, m.flows[id].v6)
	reverse(p)
	p.Proto = protoTCP
}

// probe is the SYN number n of the scan.
func (m *Lean) probe(p *packet.Packet, n int) {
	to := mix(uint32(n)) // scattered; the low 17 bits of the number itself keep targets different
	*p = packet.Packet{
		Time: Start + int64(float64(n)/float64(m.opts.Scan)*float64(m.opts.Span)),
		Src:  netip.AddrFrom4([4]byte{10, 255, 1, 1}), Dst: netip.AddrFrom4([4]byte{198, 18 | byte(n>>16), byte(n >> 8), byte(n)}),
		SrcPort: 1024 + uint16(to&0x7fff), DstPort: 22, Seq: to, IPID: uint16(n),
	}
	segment(p, packet.SYN, 0)
}
