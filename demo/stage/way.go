package stage

import (
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Fault is the treatment of matching packets of one direction.
type Fault struct {
	Match func(*packet.Packet) bool
	Loss  float64       // share of them
	Delay time.Duration // more than usual
	// Hold is the share of them that later packets overtake, HoldBy their extra delay.
	Hold   float64
	HoldBy time.Duration
}

// Way is one direction of a link: a usual delay, in order for each connection, and faults that begin and end.
type Way struct {
	base   func(netip.Addr) time.Duration // usual delay of a host of the far end
	host   func(*packet.Packet) netip.AddrPort
	faults atomic.Pointer[[]Fault]
	latest map[emulator.Flow]int64 // ns; when the connection's last packet leaves; of the link's thread
}

// NewWay makes a direction. host is the end of a packet that its delay depends on.
func NewWay(host func(*packet.Packet) netip.AddrPort, base func(netip.Addr) time.Duration) *Way {
	w := &Way{base: base, host: host, latest: map[emulator.Flow]int64{}}
	w.Set()
	return w
}

// Set replaces all faults, from the next packet on.
func (w *Way) Set(faults ...Fault) { w.faults.Store(&faults) }

// Faults are the present faults.
func (w *Way) Faults() []Fault { return *w.faults.Load() }

func (w *Way) direction() emulator.Direction {
	return emulator.Direction{Delay: w.delay, Drop: w.drop}
}

func (w *Way) drop(p *packet.Packet, r *rand.Rand) bool {
	for _, f := range *w.faults.Load() {
		if f.Loss > 0 && f.Match(p) && r.Float64() < f.Loss {
			return true
		}
	}
	return false
}

// Delays vary by a few per cent, without reordering the packets of a connection.
const (
	jitter   = .04
	maxFlows = 8192 // that are remembered; a flood has more
)

func (w *Way) delay(p *packet.Packet, r *rand.Rand) time.Duration {
	d := time.Duration(float64(w.base(w.host(p).Addr())) * (1 + jitter*r.ExpFloat64()))
	held := false
	for _, f := range *w.faults.Load() {
		if !f.Match(p) {
			continue
		}
		d += f.Delay
		if f.Hold > 0 && r.Float64() < f.Hold {
			d, held = d+f.HoldBy, true
		}
	}
	if held {
		return d
	}
	flow := emulator.FlowOf(p)
	due := max(p.Time+int64(d), w.latest[flow])
	if len(w.latest) > maxFlows {
		clear(w.latest)
	}
	w.latest[flow] = due
	return time.Duration(due - p.Time)
}
