package precision

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/hhh"
)

// Hierarchy runs hhh over the sources of a stream, and returns the estimates of all prefixes that have an entry and the second
// passes.
func Hierarchy(set map[string]string, stream *Stream, seed uint64) (map[heavy.Prefix]float64, loader.Recirculations, error) {
	var none loader.Recirculations
	d, err := algo.Lookup(hhh.Name)
	if err != nil {
		return nil, none, err
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return nil, none, err
	}
	instance, err := d.New(values, algo.Env{Replay: true, CPUs: maps.PossibleCPUs()})
	if err != nil {
		return nil, none, err
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, none, err
	}
	if err := instance.Configure(spec); err != nil {
		return nil, none, err
	}
	object := loader.Object{Name: d.Name, Spec: spec, RecircShare: instance.(algo.Recirculating).RecirculationShare()}
	inst, err := loader.Load([]loader.Object{object}, loader.Options{Replay: true, Seed: seed, RecircDelay: instance.(algo.Delayed).RecirculationDelay()})
	if err != nil {
		return nil, none, err
	}
	defer inst.Close()
	if err := feed(inst, stream, seed); err != nil {
		return nil, none, err
	}
	return estimates(inst, instance)
}

func estimates(inst *loader.Instance, instance algo.Instance) (map[heavy.Prefix]float64, loader.Recirculations, error) {
	passes, err := inst.Recirculations(hhh.Name)
	if err != nil {
		return nil, passes, err
	}
	set, err := inst.Set(hhh.Name)
	if err != nil {
		return nil, passes, err
	}
	if err := instance.Bind(set); err != nil {
		return nil, passes, err
	}
	found, err := instance.(interface {
		Estimates(bank int) (map[heavy.Prefix]float64, error)
	}).Estimates(inst.Control().Bank())
	return found, passes, err
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
