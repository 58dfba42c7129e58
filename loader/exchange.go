package loader

import (
	"errors"
	"fmt"
	"slices"

	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Exchange is a chain that is ready to take another's place: proven and loaded, and seen by no packet before Commit.
type Exchange struct {
	inst *Instance
	next []*member
	old  []*member // behind Commit: those that no packet reaches any more
	done bool
}

// Replace exchanges the algorithms while traffic flows, and frees those that are gone at once.
func (i *Instance) Replace(objects []Object) error {
	x, err := i.Prepare(objects)
	if err != nil {
		return err
	}
	return errors.Join(x.Commit(), x.Close())
}

// Prepare proves and loads what of objects is new, in the order of their roles. Algorithms that are kept by name and object keep
// their registers.
func (i *Instance) Prepare(objects []Object) (*Exchange, error) {
	objects, err := i.arranged(objects)
	if err != nil {
		return nil, err
	}
	if len(objects) > xmaps.ChainSlots {
		return nil, fmt.Errorf("load chain: %d programs, %d fit", len(objects), xmaps.ChainSlots)
	}
	if err := i.comesTooLate(objects); err != nil {
		return nil, err
	}
	x := &Exchange{inst: i}
	for n, o := range objects {
		m := i.kept(o)
		if m == nil {
			i.tell(o.Name, n+1, len(objects))
			i.mu.Lock()
			m, err = i.load(o, n)
			i.mu.Unlock()
			if err != nil {
				return nil, errors.Join(err, x.Close())
			}
		}
		x.next = append(x.next, m)
	}
	return x, nil
}

// Set returns the maps of an algorithm of the new chain, to be filled before a packet sees them.
func (x *Exchange) Set(name string) (*xmaps.Set, error) {
	for _, m := range x.next {
		if m.object.Name == name {
			return m.set, nil
		}
	}
	return nil, fmt.Errorf("find maps of %s: not loaded", name)
}

// Commit puts the new chain in the place of the old: every packet sees one or the other. When it returns no packet is under way in
// the old one, whose registers stay as they are until Close.
func (x *Exchange) Commit() error {
	x.inst.mu.Lock()
	defer x.inst.mu.Unlock()
	for kind, wanted := range x.inst.kinds { // one may have come since it was prepared
		if !wanted {
			continue
		}
		if err := x.inst.complete(x.next, kind); err != nil {
			return err
		}
	}
	if err := x.inst.install(x.next); err != nil {
		return err
	}
	x.old, x.inst.loaded, x.done = x.inst.loaded, x.next, true
	return x.keepVerdicts()
}

// keepVerdicts remembers what was done to packets in this window, when the chain acts no more.
func (x *Exchange) keepVerdicts() error {
	m := verdictOf(x.old)
	if m == nil || verdictOf(x.next) != nil {
		return nil
	}
	v, err := m.verdicts(func(a *xmaps.Array) ([]uint64, error) { return a.Read(x.inst.control.Bank(), nil) })
	if x.inst.enforced != nil {
		v = v.plus(*x.inst.enforced, 1)
	}
	x.inst.enforced = &v
	return err
}

// Close frees what is not part of the chain: the old algorithms behind a Commit, the new ones without one.
func (x *Exchange) Close() error {
	gone := x.old
	if !x.done {
		gone = x.next
	}
	for _, m := range gone {
		if !slices.Contains(x.inst.loaded, m) {
			x.inst.free(m)
		}
	}
	x.next, x.old = nil, nil
	return nil
}
