package bench

import (
	"maps"
	"math"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	xmaps "github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// handed are what a packet costs where it is handed to a queue: the whole program of TC egress, stores into the packet included.
func handed() ([]Subject, error) {
	list := []Subject{
		{Name: "tc_empty", Group: GroupEgress, What: "a program that passes everything", bare: true},
		yardstick("nothing", GroupEgress, "entry program, and a slot of the chain with an empty algorithm"),
		yardstick("clock", GroupEgress, "... and the clock"),
	}
	for _, c := range []struct {
		name, what string
		carry      chain.ChainCarryForm
		set        map[string]string
	}{
		{"tc_conquest", "ConQuest: time, flow hash and tag are written into the packet", chain.ChainCarryFormCARRY_WORDS, nil},
		{"tc_conquest_tick", "... where a queue leaves four bytes", chain.ChainCarryFormCARRY_TICK, nil},
		{"tc_conquest_ecn", "... and who is to be marked is looked up", chain.ChainCarryFormCARRY_WORDS, map[string]string{"action": "ecn"}},
	} {
		set := map[string]string{"source": "qdisc"}
		maps.Copy(set, c.set)
		s, err := Configured("conquest", set)
		if err != nil {
			return nil, err
		}
		s.Name, s.Group, s.What, s.object, s.carry = c.name, GroupEgress, c.what, "conquest", c.carry
		list = append(list, s)
	}
	for i := range list {
		list[i].egress = true
	}
	list[1].Name, list[1].object = "tc_nothing", "nothing"
	list[2].Name, list[2].object = "tc_clock", "clock"
	return list, nil
}

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
			err = xmaps.SetConstant(object.Spec, "conquest_live", false)
		}
		return object, instance, err
	}
	asked := written
	asked.Name, asked.What = "conquest_asked", "... one that waited in a model's queue of 4 Gb/s: data and datagrams longer than snapshots reach back, SYNs a part of a window; bursts are kept"
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
			if err := xmaps.SetConstant(object.Spec, name, v); err != nil {
				return object, instance, err
			}
		}
		return object, instance, nil
	}
	waited := written
	waited.Name, waited.front = "conquest_waited", "waited"
	waited.What = "... one that waited 8 ms, as the start of transmission has it: all other snapshots are read, and bursts kept; behind `waited`"
	return []Subject{entered, written, asked, waited}, nil
}
