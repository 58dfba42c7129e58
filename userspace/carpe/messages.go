package carpe

import (
	"fmt"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
)

// wordsOfGroup is how many words of the prefix table there are for a group: twice what random pairs take.
const wordsOfGroup = 24

// known are the groups that this host has parameters for, or has asked for.
type known struct {
	config *config
	groups map[Group]*place
	free   []uint32 // numbers of the table
	hello  []Group  // to be said
	full   uint64   // groups that found no room
	stale  bool     // the table is not what groups are
	window int
}

type place struct {
	number    uint32 // in the table; 0: the coordinator has said nothing yet
	observers uint32
	met, said int // windows
}

func newKnown(c *config) known {
	k := known{config: c, groups: map[Group]*place{}}
	for n := c.groups; n > 0; n-- {
		k.free = append(k.free, uint32(n))
	}
	return k
}

// met is told of a group once until the data plane is asked to tell again. It is said to the coordinator when it is new, when there was no
// answer, and again before the coordinator takes it for gone.
func (k *known) met(g Group) {
	p := k.groups[g]
	if p == nil {
		if len(k.groups) >= k.config.groups {
			k.full++
			return
		}
		p = &place{said: k.window - k.config.age}
		k.groups[g] = p
	}
	p.met = k.window
	if p.number == 0 && k.window > p.said || k.window-p.said >= k.config.age/2 {
		p.said = k.window
		k.hello = append(k.hello, g)
	}
}

// update gives a group parameters. One that was not met is of this host's life before: its packets need not ask.
func (k *known) update(g Group, observers uint32) {
	p := k.groups[g]
	if p == nil {
		if len(k.groups) >= k.config.groups {
			k.full++
			return
		}
		p = &place{met: k.window, said: k.window}
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

// forget groups of which no packet was met for as long as an observer is remembered.
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

// age ends a window of groups. The data plane tells of all again, four times before an observer is forgotten.
func (i *instance) age() error {
	i.known.window++
	if i.known.window%max(1, i.config.age/4) == 0 {
		if err := i.heard.Reset(0); err != nil {
			return err
		}
	}
	i.known.forget()
	if !i.spoken {
		i.known.hello = i.known.hello[:0] // nobody listens
	}
	if !i.known.stale {
		return nil
	}
	return i.write()
}

// write what is known into the tables: parameters before what leads to them.
func (i *instance) write() error {
	i.known.stale = false
	numbers := map[Group]uint32{}
	unknown := i.observers
	if i.spoken {
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
	if !i.spoken {
		i.spoken, i.writer.epoch = true, i.epoch
		if n := i.ledger.clear(); n > 0 { // it answered by itself until now: the coordinator knows nothing of these
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

// Receive implements algo.Messenger. Tables follow at once.
func (i *instance) Receive(data []byte) error {
	err := i.updates(data, i.known.update)
	if err != nil || !i.known.stale {
		return err
	}
	return i.write()
}

// updates of a coordinator's message, as far as it can be read. No group has more observers than can be told apart.
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
