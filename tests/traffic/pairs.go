package traffic

import (
	"math"
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// arrival is the next arrival other than due responses.
type arrival uint8

const (
	isRequest arrival = iota
	isStray
	isNothing
)

// pairs is the engine of the models of requests and responses: arrivals in time, each request answered or not,
// responses from a queue. Counts are exact, not only on average: of n that remain k are chosen with probability
// k/n (selection sampling).
type pairs struct {
	rng     *rand.Rand
	carrier carrier
	delay   func(r *rand.Rand) int64                 // ns
	gap     func(r *rand.Rand) float64               // ns to the next arrival
	left    struct{ requests, answered, strays int } // answered: of the requests
	now     float64                                  // ns, of the next arrival
	kind    arrival                                  // of the next arrival
	started bool
	due     queue
	truth   Truth
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// choose draws one of n of which k are to be chosen.
func choose(r *rand.Rand, k, n int) bool { return k > 0 && (k >= n || r.IntN(n) < k) }

// Truth is complete when Next has returned false.
func (s *pairs) Truth() *Truth { return &s.truth }

// Next implements Model.
func (s *pairs) Next(p *packet.Packet) bool {
	if !s.started {
		s.started = true
		s.plan()
	}
	if len(s.due) > 0 && (s.kind == isNothing || s.due[0].time <= int64(s.now)) {
		s.respond(p, s.due.Pop())
		return true
	}
	if s.kind == isNothing {
		return false
	}
	p.Time = int64(s.now)
	if s.kind == isRequest {
		s.request(p)
	} else {
		s.stray(p)
	}
	s.now += s.gap(s.rng)
	s.plan()
	return true
}

// plan decides what arrives next.
func (s *pairs) plan() {
	n := s.left.requests + s.left.strays
	switch {
	case n == 0:
		s.kind = isNothing
	case choose(s.rng, s.left.strays, n):
		s.kind = isStray
	default:
		s.kind = isRequest
	}
}

func (s *pairs) stray(p *packet.Packet) {
	s.left.strays--
	s.carrier.stray(p, uint32(s.truth.Strays))
	s.truth.Strays++
}

func (s *pairs) request(p *packet.Packet) {
	id := uint32(s.truth.Requests)
	aux := s.carrier.request(p, id)
	if choose(s.rng, s.left.answered, s.left.requests) {
		s.left.answered--
		s.due.Push(event{time: p.Time + s.delay(s.rng), id: id, aux: aux, seen: p.Time})
	}
	s.left.requests--
	s.truth.Requests++
}

func (s *pairs) respond(p *packet.Packet, e event) {
	s.carrier.response(p, e.id, e.aux)
	p.Time = e.time
	s.truth.Delays = append(s.truth.Delays, e.time-e.seen)
}

// everySoOften is a constant rate.
func everySoOften(ns float64) func(*rand.Rand) float64 {
	return func(*rand.Rand) float64 { return ns }
}

// poisson is a rate of independent arrivals.
func poisson(ns float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return r.ExpFloat64() * ns }
}

// share is a part of n, rounded.
func share(part float64, n int) int { return int(math.Round(part * float64(n))) }
