package loader

import (
	"errors"
	"fmt"
	"slices"

	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Exchange is a chain that is proven and loaded and processes no packet before Commit puts it in place of the current one.
type Exchange struct {
	inst *Instance
	next []*member
	old  []*member // after Commit: those that no packet reaches any more
	done bool
}

// Replace exchanges the algorithms while traffic flows, and frees the removed ones at once.
func (i *Instance) Replace(objects []Object) error {
	x, err := i.Prepare(objects)
	if err != nil {
		return err
	}
	return errors.Join(x.Commit(), x.Close())
}

// Prepare proves and loads the new ones of objects, in the order of their roles. A loaded algorithm of the same name and object is
// reused with its registers.
func (i *Instance) Prepare(objects []Object) (*Exchange, error) {
	objects, err := i.arranged(objects)
	if err != nil {
		return nil, err
	}
	if len(objects) > xmaps.ChainSlots {
		return nil, fmt.Errorf("load chain: %d programs, %d fit", len(objects), xmaps.ChainSlots)
	}
	if err := i.checkQueueWatch(objects); err != nil {
		return nil, err
	}
	if err := i.checkParser(objects); err != nil {
		return nil, err
	}
	x := &Exchange{inst: i}
	for n, o := range objects {
		m := i.loadedMember(o)
		if m == nil {
			i.progress(o.Name, n+1, len(objects))
			i.mu.Lock()
			m, err = i.load(o, n)
			i.mu.Unlock()
			if err != nil {
				return nil, errors.Join(err, x.Close())
			}
		}
		x.next = append(x.next, m)
	}
	for _, m := range x.next {
		if err := m.placed.wait(); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// ErrFixed is returned by Prepare for algorithms that request more of the parser than those that were loaded first (Options.Fixed).
var ErrFixed = errors.New("the parser was loaded for other algorithms")

func (i *Instance) checkParser(objects []Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.opts.Fixed || len(i.entries) == 0 {
		return nil
	}
	for _, o := range objects {
		if o.Needs&^i.parses != 0 {
			return fmt.Errorf("load %s: %w", o.Name, ErrFixed)
		}
	}
	return nil
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

// Commit puts the new chain in the place of the old: every packet sees one or the other. When it returns no packet is being processed by
// the old one, whose registers stay as they are until Close.
func (x *Exchange) Commit() error {
	x.inst.mu.Lock()
	defer x.inst.mu.Unlock()
	for kind, wanted := range x.inst.kinds { // a kind may have been added since Prepare
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

// keepVerdicts saves the window's verdicts so far when the new chain does not enforce.
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

// Close frees what is not part of the chain: the old algorithms after Commit, the new ones without it.
func (x *Exchange) Close() error {
	unused := x.old
	if !x.done {
		unused = x.next
	}
	for _, m := range unused {
		if !slices.Contains(x.inst.loaded, m) {
			x.inst.free(m)
		}
	}
	x.next, x.old = nil, nil
	return nil
}
