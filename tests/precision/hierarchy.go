package precision

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/hhh"
)

// Hierarchy runs hhh over the sources of a stream, and returns the estimates of all prefixes that have an entry.
func (b *Bench) Hierarchy(set map[string]string, stream *Stream) (map[heavy.Prefix]float64, error) {
	object, instance, err := configured(hhh.Name, set)
	if err != nil {
		return nil, err
	}
	if err := b.inst.Replace([]loader.Object{object}); err != nil {
		return nil, err
	}
	b.replay.Restart(b.seed)
	if err := feed(b.replay, stream); err != nil {
		return nil, err
	}
	return estimates(b.inst, instance)
}

func estimates(inst *loader.Instance, instance algo.Instance) (map[heavy.Prefix]float64, error) {
	set, err := inst.Set(hhh.Name)
	if err != nil {
		return nil, err
	}
	if err := instance.Bind(set); err != nil {
		return nil, err
	}
	return instance.(interface {
		Estimates(bank int) (map[heavy.Prefix]float64, error)
	}).Estimates(inst.Control().Bank())
}

// Networks are the exact counts of the byte prefixes of a stream's sources.
func (st *Stream) Networks() map[heavy.Prefix]float64 {
	counts := map[heavy.Prefix]float64{}
	of := map[netip.Addr]float64{}
	for _, rank := range st.Order {
		of[st.Packet(rank, 1).Src]++
	}
	for src, n := range of {
		for bits := 0; bits <= 32; bits += 8 {
			counts[heavy.Prefix{Src: netip.PrefixFrom(src, bits).Masked()}] += n
		}
	}
	return counts
}
