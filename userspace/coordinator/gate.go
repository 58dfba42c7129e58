package coordinator

import (
	"sync"
	"time"
)

// gate lets no agent send more than its share. It is asked before anything of a message is looked at.
type gate struct {
	rate, agents, bytes int

	mu      sync.Mutex
	buckets map[string]*bucket
	refused map[string]uint64 // by reason, of whoever has no bucket
}

type bucket struct {
	tokens  float64
	filled  time.Time
	refused map[string]uint64
	excess  int // floods in the running second
	second  time.Time
	held    time.Time // it may not connect before
	last    time.Time
}

// Bounds of what is borne.
const (
	span    = 10 * time.Second // a rate is kept over this long: what a buffer brings after an interruption may arrive at once
	patient = 10               // times the rate, in one second: then the connection ends
	hold    = 30 * time.Second // ... and for this long there is no other
)

func newGate(rate, agents, bytes int) *gate {
	return &gate{rate: rate, agents: agents, bytes: bytes, buckets: map[string]*bucket{}, refused: map[string]uint64{}}
}

// admit returns why a message is refused, or ""; end is true when its sender's connection should end.
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

// exceed counts a message that is too many.
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

// overflow counts a message that found no room.
func (g *gate) overflow(name string, now time.Time) (end bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.buckets[name]; b != nil {
		return g.exceed(b, now)
	}
	return false
}

// held is until when an agent may not connect.
func (g *gate) held(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.buckets[name]; b != nil {
		return b.held
	}
	return time.Time{}
}

// sweep forgets agents that have sent nothing for long.
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
