package beaucoup

import (
	"math/bits"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Copies are the events of packets that a switch has copied to its CPU: each has completed a collector, but does not identify it. word
// reads the switch's registers at the end of the window. A packet's query is one whose coupon it draws and whose key has a full
// collector that no other copy has completed; if a packet's time is not the switch's own to a nanosecond, queries that count packets are
// identified by their collectors alone. missing counts packets whose collector was replaced by another key's.
func Copies(v algo.Values, packets []packet.Packet, word func(register string, i int) uint64) (events []bpf.BeaucoupBeaucoupEvent, missing int, err error) {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		return nil, 0, err
	}
	i, err := c.instance(algo.Env{})
	if err != nil {
		return nil, 0, err
	}
	taken := map[uint32]bool{}
	for n := range packets {
		p := &packets[n]
		words := compile.SwitchWords(p, i.seed)
		drawn := i.program.SwitchDraws(&words, compile.ValidOf(p), p.Src.Is4())
		e, slot, ok := i.completed(p, &words, func(query int) bool { return drawn[query] }, taken, word)
		if !ok {
			e, slot, ok = i.completed(p, &words, func(int) bool { return true }, taken, word)
		}
		if !ok {
			missing++
			continue
		}
		taken[slot] = true
		events = append(events, e)
	}
	return events, missing, nil
}

// completed finds the collector that a packet has completed, among some queries: of several, the one with the fewest coupons
// since.
func (i *instance) completed(p *packet.Packet, words *compile.Words, among func(query int) bool, taken map[uint32]bool,
	word func(string, int) uint64) (e bpf.BeaucoupBeaucoupEvent, at uint32, ok bool) {
	least := 0
	for k := range i.program.Queries {
		c := &i.program.Queries[k]
		valid := c.Filter.Valid | c.Key.Valid | c.Attribute.Valid
		if !among(c.ID) || compile.ValidOf(p)&valid != valid || words[compile.WordPorts]&c.Filter.Mask != c.Filter.Value {
			continue
		}
		key := words.And(&c.Key.Mask)
		slot, check := compile.SwitchPlace(&key, p.Src.Is4(), c.ID)
		slot &= i.entries - 1
		coupons := word("beaucoup_vectors", int(slot))
		left := uint32(word("beaucoup_ends", int(slot))) - ticks32(p.Time)
		more := bits.OnesCount64(coupons) - c.Collector.N
		if taken[slot] || word("beaucoup_keys", int(slot)) != uint64(check) || more < 0 || left > compile.Ticks(c.Window) || ok && more >= least {
			continue
		}
		at, least, ok = slot, more, true
		e = bpf.BeaucoupBeaucoupEvent{Time: uint64(p.Time), Age: uint64(compile.Ticks(c.Window)-left) << compile.Tick, Key: key,
			Coupons: coupons, Query: uint32(c.ID), Alert: 1}
	}
	return e, at, ok
}
