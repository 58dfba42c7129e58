package emulator

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Fixed is the same delay for every packet.
func Fixed(d time.Duration) Delay {
	return func(*packet.Packet, *rand.Rand) time.Duration { return d }
}

// Uniform is any delay between low and high.
func Uniform(low, high time.Duration) Delay {
	return func(_ *packet.Packet, r *rand.Rand) time.Duration {
		return low + time.Duration(r.Float64()*float64(high-low))
	}
}

// LogUniform is a delay whose logarithm is uniform between those of low and high (Zheng et al., "Unbiased Delay Measurement in the Data Plane", section 5.2).
func LogUniform(low, high time.Duration) Delay {
	ratio := math.Log(float64(high) / float64(low))
	return func(_ *packet.Packet, r *rand.Rand) time.Duration {
		return time.Duration(float64(low) * math.Exp(r.Float64()*ratio))
	}
}

// LogNormal is a delay around a median with a heavy tail: sigma is the deviation of its natural logarithm.
func LogNormal(median time.Duration, sigma float64) Delay {
	return func(_ *packet.Packet, r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	}
}

// Mixture is one of several delays, each with its weight.
func Mixture(weights []float64, delays []Delay) Delay {
	var sum float64
	for _, w := range weights {
		sum += w
	}
	return func(p *packet.Packet, r *rand.Rand) time.Duration {
		u := r.Float64() * sum
		for i, w := range weights {
			if u -= w; u < 0 {
				return delays[i](p, r)
			}
		}
		return delays[len(delays)-1](p, r)
	}
}

// Flow identifies a connection, independent of the packet's direction.
type Flow struct {
	Proto             uint8
	Low, High         netip.Addr
	LowPort, HighPort uint16
}

// FlowOf is the connection that a packet belongs to.
func FlowOf(p *packet.Packet) Flow {
	a, b := netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return Flow{p.Proto, a.Addr(), b.Addr(), a.Port(), b.Port()}
}

// PerFlow draws a delay once for each connection and keeps it for all of its packets, so that they stay in order.
// The draw depends on the seed and the connection alone: the exact delay is known before and after. Both directions of
// a link may share it.
func PerFlow(seed uint64, d Delay) Delay {
	return func(p *packet.Packet, _ *rand.Rand) time.Duration {
		return d(p, rand.New(rand.NewPCG(seed, FlowOf(p).hash())))
	}
}

// hash is FNV-1a over the fields.
func (f Flow) hash() uint64 {
	h := uint64(0xcbf29ce484222325)
	mix := func(b byte) { h = (h ^ uint64(b)) * 0x100000001b3 }
	for _, a := range [2]netip.Addr{f.Low, f.High} {
		for _, b := range a.As16() {
			mix(b)
		}
	}
	for _, v := range [3]uint16{f.LowPort, f.HighPort, uint16(f.Proto)} {
		mix(byte(v >> 8))
		mix(byte(v))
	}
	return h
}
