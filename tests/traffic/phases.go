package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Phase is a time of steady traffic: requests in a Poisson process, delays log-uniform from Max / 2^Octaves to Max.
type Phase struct {
	Length  time.Duration
	Rate    float64 // requests a second
	Max     time.Duration
	Octaves float64 // 5
}

// PhasesOptions describe traffic whose load and delays jump.
type PhasesOptions struct {
	Phases   []Phase
	Answered float64 // share of requests; 0.4
	Seed     uint64
}

// Phases is a model: see PhasesOptions. A request has the delay of the phase in which it was sent.
type Phases struct {
	pairs
	phases []Phase
	ends   []float64 // ns
}

// NewPhases makes the model. All answered requests get their response: the trace ends with the last of them.
func NewPhases(o PhasesOptions) (*Phases, error) {
	setFloat(&o.Answered, 0.4)
	m := &Phases{pairs: pairs{rng: newRand(o.Seed, 9), now: float64(Start)}}
	end, requests := float64(Start), 0.0
	for _, p := range o.Phases {
		setFloat(&p.Octaves, 5)
		if p.Length <= 0 || !(p.Rate > 0) || p.Max <= 0 {
			return nil, fmt.Errorf("make traffic in phases: impossible phase %+v", p)
		}
		end += float64(p.Length)
		requests += p.Rate * p.Length.Seconds()
		m.phases, m.ends = append(m.phases, p), append(m.ends, end)
	}
	if requests < 1 || requests >= strayFlows || o.Answered < 0 || o.Answered > 1 {
		return nil, fmt.Errorf("make traffic in phases: impossible options %+v", o)
	}
	requests += 4 * math.Sqrt(requests) // a Poisson number: the last phase is not cut short
	m.carrier = newCarrier(Handshake, Handshake, connections(int(requests)), false)
	m.left.requests, m.left.answered = int(requests), share(o.Answered, int(requests))
	m.gap = func(r *rand.Rand) float64 { return r.ExpFloat64() * 1e9 / m.phase().Rate }
	m.delay = func(r *rand.Rand) int64 {
		return int64(float64(m.phase().Max) * math.Exp2(-m.phase().Octaves*r.Float64()))
	}
	return m, nil
}

// phase of the next arrival; the last one does not end.
func (m *Phases) phase() Phase {
	i := 0
	for i+1 < len(m.ends) && m.now >= m.ends[i] {
		i++
	}
	return m.phases[i]
}
