package carpe

import (
	"fmt"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
)

// wordsOfGroup is the number of words of the prefix table per group: twice what random pairs need.
const wordsOfGroup = 24

// known are the groups that this host has parameters for, or has requested them for.
type known struct {
	config *config
	groups map[Group]*place
	free   []uint32 // unused numbers of the table
	hello  []Group  // to be reported to the coordinator
	full   uint64   // groups beyond carpe.groups
	stale  bool     // the data plane's table differs from groups
	window int
}

type place struct {
	number    uint32 // in the table; 0: no reply of the coordinator yet
	observers uint32
	met, sent int // windows in which the group was last seen, and last reported to the coordinator
}

func newKnown(c *config) known {
	k := known{config: c, groups: map[Group]*place{}}
	for n := c.groups; n > 0; n-- {
		k.free = append(k.free, uint32(n))
	}
	return k
}

// met records that the data plane has seen a group, which it reports once until carpe_heard is reset. The group is reported to the
// coordinator when it is new, when there was no reply, and again before the coordinator would remove this host from its observers.
func (k *known) met(g Group) {
	p := k.groups[g]
	if p == nil {
		if len(k.groups) >= k.config.groups {
			k.full++
			return
		}
		p = &place{sent: k.window - k.config.age}
		k.groups[g] = p
	}
	p.met = k.window
	if p.number == 0 && k.window > p.sent || k.window-p.sent >= k.config.age/2 {
		p.sent = k.window
		k.hello = append(k.hello, g)
	}
}

// update sets a group's parameters. A group that was not met is one of before a restart of this host: with the update its packets
// need not request parameters again.
func (k *known) update(g Group, observers uint32) {
	p := k.groups[g]
	if p == nil {
		if len(k.groups) >= k.config.groups {
			k.full++
			return
		}
		p = &place{met: k.window, sent: k.window}
		k.groups[g] = p
	}
	if p.observers == observers {
		return
	}
	if p.number == 0 {
		p.number = k.free[len(k.free)-1]
		k.free = k.free[:len(k.free)-1]
	}
	p.observers = observers
	k.stale = true
}

// forget removes groups without a packet for carpe.age windows, after which the coordinator removes this observer, too.
func (k *known) forget() {
	for g, p := range k.groups {
		if k.window-p.met <= k.config.age {
			continue
		}
		if p.number != 0 {
			k.free = append(k.free, p.number)
			k.stale = true
		}
		delete(k.groups, g)
	}
}

// age ends a window of groups. It has the data plane report all groups again four times within carpe.age, so that active ones are
// not removed.
func (i *instance) age() error {
	i.known.window++
	if i.known.window%max(1, i.config.age/4) == 0 {
		if err := i.heard.Reset(0); err != nil {
			return err
		}
	}
	i.known.forget()
	if !i.coordinated {
		i.known.hello = i.known.hello[:0] // there is no coordinator
	}
	if !i.known.stale {
		return nil
	}
	return i.write()
}

// write the known groups to the tables: parameters before the prefixes that refer to them.
func (i *instance) write() error {
	i.known.stale = false
	numbers := map[Group]uint32{}
	unknown := i.observers
	if i.coordinated {
		unknown = i.unknown
	}
	if err := i.table.SetElement(0, i.element(unknown)); err != nil {
		return fmt.Errorf("write groups: %w", err)
	}
	for g, p := range i.known.groups {
		if p.number == 0 {
			continue
		}
		numbers[g] = p.number
		if err := i.table.SetElement(p.number, i.element(p.observers)); err != nil {
			return fmt.Errorf("write groups: %w", err)
		}
	}
	roots, rules := rulesOf(numbers)
	return i.prefixes.Replace(roots, rules)
}

func (i *instance) element(observers uint32) *bpf.CarpeCarpeGroup {
	return &bpf.CarpeCarpeGroup{Tau: i.tau(observers), Chance: chance(observers), Observers: observers}
}

// Send implements algo.Messenger: reports and hellos since the last call.
func (i *instance) Send(int64) ([][]byte, error) {
	if !i.coordinated {
		i.coordinated, i.writer.epoch = true, i.epoch
		if n := i.ledger.clear(); n > 0 { // it answered by itself until now: the coordinator has not received these reports
			i.writer.lost(n)
		}
		if err := i.write(); err != nil {
			return nil, err
		}
	}
	if err := i.poll(); err != nil {
		return nil, err
	}
	for _, g := range i.known.hello {
		i.writer.hello(g)
	}
	i.known.hello = i.known.hello[:0]
	return i.writer.messages(), nil
}

// Receive implements algo.Messenger. Changed parameters are written to the tables at once.
func (i *instance) Receive(data []byte) error {
	err := i.updates(data, i.known.update)
	if err != nil || !i.known.stale {
		return err
	}
	return i.write()
}

// updates calls do for each update of a coordinator's message, up to the first error. Observers are limited to config.most.
func (c *config) updates(data []byte, do func(g Group, observers uint32)) error {
	r, err := c.read(data)
	if err != nil {
		return err
	}
	for r.more() {
		if kind := r.byte(); kind != recordUpdate {
			r.fail(fmt.Sprintf("record %d", kind))
			break
		}
		g, observers := r.group(), r.observers()
		if r.err == nil {
			do(g, min(observers, c.most))
		}
	}
	return r.err
}
