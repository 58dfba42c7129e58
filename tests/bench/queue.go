package bench

import (
	"math"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// queued are ConQuest's two ways of a packet: the benchmark has no queue, so that by default every packet would be one that nobody saw coming.
func queued() ([]Subject, error) {
	written, err := Configured("conquest", map[string]string{"source": "qdisc"})
	if err != nil {
		return nil, err
	}
	written.Name, written.object, written.What = "conquest_written", "conquest", "... a departure that did not wait: two rows and a total are written"
	entered := written
	entered.Name, entered.What = "conquest_entered", "... what the same does where packets are handed to the queue, behind `carry`"
	begun := written.prepare
	written.prepare = func() (loader.Object, algo.Instance, error) { // the body of the start of transmission, as XDP
		object, instance, err := begun()
		if err == nil {
			err = maps.SetConstant(object.Spec, "conquest_live", false)
		}
		return object, instance, err
	}
	asked := written
	asked.Name, asked.What = "conquest_asked", "... one that waited longer than snapshots reach back: all others are read as well, and bursts kept"
	prepare := asked.prepare
	asked.prepare = func() (loader.Object, algo.Instance, error) {
		object, instance, err := prepare()
		if err != nil {
			return object, instance, err
		}
		for name, v := range map[string]any{
			"conquest_source":      uint32(2), // the model's queue: one register more than a host's own
			"conquest_ns_per_byte": uint32(2 << 16),
			"conquest_room":        uint64(math.MaxInt64),
			"conquest_tau":         uint64(1),
		} {
			if err := maps.SetConstant(object.Spec, name, v); err != nil {
				return object, instance, err
			}
		}
		return object, instance, nil
	}
	return []Subject{entered, written, asked}, nil
}
