package loader

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	xmaps "github.com/xdpmon/xdpmon/maps"
)

// ErrNotReseedable is returned by Reseed when more than the constants that Options.Loose names would change.
var ErrNotReseedable = errors.New("a constant would change that Options.Loose does not name")

const (
	constants = ".rodata"
	// looseMap holds an object's constants a second time, in a map that is not frozen.
	looseMap = "loose"
)

// loosen makes the programs read some constants from a map that userspace can still write. The verifier then does not know their values,
// which no seed-derived constant needs; the instructions differ in the map only. It runs after the proof.
func loosen(spec *ebpf.CollectionSpec, names []string) {
	frozen := spec.Maps[constants]
	if len(names) == 0 || frozen == nil {
		return
	}
	if refer(spec, constants, looseMap, func(offset uint32) bool { return isOneOf(spec, names, offset) }) {
		loose := frozen.Copy()
		loose.Name, loose.Key, loose.Value = looseMap, nil, nil
		loose.Contents = []ebpf.MapKV{{Key: uint32(0), Value: sectionOf(spec)}}
		spec.Maps[looseMap] = loose
	}
}

// refer makes the programs refer to another map for what is at some offsets of one. It reports whether any does.
func refer(spec *ebpf.CollectionSpec, from, to string, at func(offset uint32) bool) (used bool) {
	for _, p := range spec.Programs {
		for n := range p.Instructions {
			ins := &p.Instructions[n]
			if ins.Reference() == from && ins.IsLoadFromMap() && at(uint32(uint64(ins.Constant)>>32)) {
				*ins = ins.WithReference(to)
				used = true
			}
		}
	}
	return used
}

func isOneOf(spec *ebpf.CollectionSpec, names []string, offset uint32) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		v := spec.Variables[name]
		return v != nil && v.SectionName == constants && v.Offset <= offset && offset < v.Offset+v.Size()
	})
}

// sectionOf returns the constants as laid out in memory.
func sectionOf(spec *ebpf.CollectionSpec) []byte {
	data := make([]byte, spec.Maps[constants].ValueSize)
	if contents := spec.Maps[constants].Contents; len(contents) == 1 {
		copy(data, contents[0].Value.([]byte))
	}
	for _, v := range spec.Variables {
		if v.SectionName == constants {
			copy(data[v.Offset:], v.Value)
		}
	}
	return data
}

// Reseed gives the loaded programs another seed and the constants derived from it, and resets their registers: results are those of freshly
// loaded programs. objects are configured for that seed and must otherwise equal the loaded ones (ErrNotReseedable). It needs
// Options.Loose, and no packet may arrive meanwhile.
func (i *Instance) Reseed(seed uint64, objects []Object) error {
	i.opts.Seed = seed
	for _, o := range objects {
		at := slices.IndexFunc(i.loaded, func(m *member) bool { return m.object.Name == o.Name })
		if at < 0 {
			return fmt.Errorf("reseed %s: not loaded", o.Name)
		}
		if err := i.reseed(i.loaded[at], o); err != nil {
			return fmt.Errorf("reseed %s: %w", o.Name, err)
		}
	}
	if m := i.looseEntry; m != nil {
		spec := i.chain.Spec.Copy()
		if err := i.configureEntry(spec, i.looseConfig); err != nil {
			return err
		}
		if err := m.Update(uint32(0), sectionOf(spec), ebpf.UpdateAny); err != nil {
			return fmt.Errorf("reseed the entry program: %w", err)
		}
	}
	return i.forget()
}

func (i *Instance) reseed(m *member, o Object) error {
	was, spec := m.object.Spec.Copy(), o.Spec.Copy()
	if err := errors.Join(i.setCommon(was), i.setCommon(spec)); err != nil {
		return err
	}
	for name, v := range spec.Variables {
		if !slices.Contains(i.opts.Loose, name) && !bytes.Equal(v.Value, was.Variables[name].Value) {
			return fmt.Errorf("%w: %s", ErrNotReseedable, name)
		}
	}
	for name, ms := range spec.Maps {
		if ms.MaxEntries != was.Maps[name].MaxEntries {
			return fmt.Errorf("%w: %s has another size", ErrNotReseedable, name)
		}
	}
	if loose := m.coll.Maps[looseMap]; loose != nil {
		if err := loose.Update(uint32(0), sectionOf(spec), ebpf.UpdateAny); err != nil {
			return err
		}
	}
	if err := refill(m.coll, spec); err != nil {
		return err
	}
	return m.set.Forget()
}

// refill restores the initial contents of tables: userspace changes some from window to window.
func refill(coll *ebpf.Collection, spec *ebpf.CollectionSpec) error {
	for name, ms := range spec.Maps {
		if strings.HasPrefix(name, ".") { // sections of the object, which are frozen
			continue
		}
		for _, kv := range ms.Contents {
			if err := coll.Maps[name].Put(kv.Key, kv.Value); err != nil {
				return fmt.Errorf("refill %s: %w", name, err)
			}
		}
	}
	return nil
}

// forget resets the chain's state to that of a new chain.
func (i *Instance) forget() error {
	if i.control.Bank() != 0 { // both banks are empty; a new algorithm starts in the first one
		if _, err := i.control.Flip(); err != nil {
			return err
		}
	}
	set := xmaps.NewSet(i.chain.Spec, i.shared)
	if err := set.Forget(); err != nil {
		return err
	}
	for n := range i.loaded {
		if err := i.shared["recirc_budget"].Update(uint32(n), make([]recircBudget, xmaps.PossibleCPUs()), ebpf.UpdateAny); err != nil {
			return fmt.Errorf("write recirculation budget: %w", err)
		}
	}
	return i.setBudgets(i.loaded)
}
