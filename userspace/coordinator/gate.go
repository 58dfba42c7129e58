package coordinator

import (
	"sync"
	"time"
)

// gate limits the rate of each agent. It is asked before a message is decoded.
type gate struct {
	rate, agents, bytes int

	mu      sync.Mutex
	buckets map[string]*bucket
	refused map[string]uint64 // by reason, of senders without a bucket
}

type bucket struct {
	tokens  float64
	filled  time.Time
	refused map[string]uint64
	excess  int // messages over the rate in the running second
	second  time.Time
	held    time.Time // until when connections are refused
	last    time.Time
}

// Limits of an agent's rate.
const (
	span    = 10 * time.Second // size of the token bucket, as time at the rate: after an interruption an agent's buffered batches arrive at once
	patient = 10               // times the rate in one second, from which on the agent is disconnected
	hold    = 30 * time.Second // how long its connections are then refused
)

func newGate(rate, agents, bytes int) *gate {
	return &gate{rate: rate, agents: agents, bytes: bytes, buckets: map[string]*bucket{}, refused: map[string]uint64{}}
}

// admit returns the reason for refusing a message, or ""; end is true if its sender has to be disconnected.
func (g *gate) admit(name string, size int, now time.Time) (reason string, end bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.buckets[name]
	if b == nil {
		if len(g.buckets) >= g.agents {
			g.sweep(now)
		}
		if len(g.buckets) >= g.agents {
			g.refused[stranger]++
			return stranger, false
		}
		b = &bucket{tokens: float64(g.rate) * span.Seconds(), filled: now, refused: map[string]uint64{}}
		g.buckets[name] = b
	}
	b.last = now
	if size > g.bytes {
		b.refused[oversized]++
		return oversized, false
	}
	b.tokens = min(b.tokens+now.Sub(b.filled).Seconds()*float64(g.rate), float64(g.rate)*span.Seconds())
	b.filled = now
	if b.tokens >= 1 {
		b.tokens--
		return "", false
	}
	return flood, g.exceed(b, now)
}

// exceed counts a message over the rate.
func (g *gate) exceed(b *bucket, now time.Time) (end bool) {
	b.refused[flood]++
	if now.Sub(b.second) > time.Second {
		b.second, b.excess = now, 0
	}
	b.excess++
	if b.excess == patient*g.rate {
		b.held = now.Add(hold)
		return true
	}
	return false
}

// overflow counts a message that did not fit its mailbox.
func (g *gate) overflow(name string, now time.Time) (end bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.buckets[name]; b != nil {
		return g.exceed(b, now)
	}
	return false
}

// held is the time until which an agent's connections are refused.
func (g *gate) held(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.buckets[name]; b != nil {
		return b.held
	}
	return time.Time{}
}

// sweep removes the buckets of agents that have been silent for long.
func (g *gate) sweep(now time.Time) {
	for name, b := range g.buckets {
		if now.Sub(b.last) > time.Minute && now.After(b.held) {
			for reason, n := range b.refused {
				g.refused[reason] += n
			}
			delete(g.buckets, name)
		}
	}
}

// counts are the refusals of one agent, or of all with "".
func (g *gate) counts(name string) map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]uint64{}
	if name == "" {
		for reason, n := range g.refused {
			all[reason] += n
		}
	}
	for who, b := range g.buckets {
		for reason, n := range b.refused {
			if name == "" || name == who {
				all[reason] += n
			}
		}
	}
	return all
}
