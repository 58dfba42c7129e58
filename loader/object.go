package loader

import (
	"fmt"

	"github.com/cilium/ebpf"

	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Object is a configured algorithm: constants and sizes are written, nothing is loaded.
type Object struct {
	Name string
	Spec *ebpf.CollectionSpec
	// Read reads the compiled object again. Spec is then an outline, and the instructions are in memory only while they are proven and
	// loaded. nil: Spec is complete.
	Read  func() (*ebpf.CollectionSpec, error)
	Needs xmaps.Need
	// RecircShare is the largest share of packets that may take a second pass; 0 for none.
	RecircShare float64
	// Enforces: it decides on packets. It runs after the algorithms that only measure, and a verdict program applies its decisions.
	Enforces bool
	// Group of algorithms whose windows end together, from 0 for the shortest windows to maps.Groups - 1 (bpf/include/window.h).
	Group int
	// Steering is how it changes mark, class or departure time of packets.
	Steering Steering
}

// Steering is a change of how packets leave: mark, class, or time of departure. A packet has only one value of each, so a chain has at most one algorithm that steers.
type Steering struct {
	By        string // the setting that makes the algorithm do it; "": it does not
	Delays    bool   // packets have times of departure, which the interface's queueing discipline must obey
	Aggregate uint64 // limit in bytes of an aggregate of segments; some of the larger ones are dropped. 0: no limit
}

// has reports whether the object has a program for a kind of hook.
func (o Object) has(kind Kind) bool {
	for _, p := range o.Spec.Programs {
		if p.Type == kind.program() {
			return true
		}
	}
	return false
}

// Outline is an object without instructions and most types, which take nine tenths of its memory: it holds what is configured and what is
// read while it runs.
func Outline(spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	o := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}, Programs: map[string]*ebpf.ProgramSpec{},
		Variables: map[string]*ebpf.VariableSpec{}, ByteOrder: spec.ByteOrder}
	for name, m := range spec.Maps {
		short := *m
		short.Key = nil
		o.Maps[name] = short.Copy()
	}
	for name, p := range spec.Programs {
		short := *p
		short.Instructions, short.AttachTarget = nil, nil
		o.Programs[name] = &short
	}
	for name, v := range spec.Variables {
		if v.Value != nil { // otherwise its type gives the size
			short := *v
			short.Type = nil
			v = &short
		}
		o.Variables[name] = v.Copy()
	}
	return o
}

// Whole is a copy of the object with its instructions.
func (o Object) Whole() (*ebpf.CollectionSpec, error) {
	outline := o.Spec.Copy()
	if o.Read == nil {
		return outline, nil
	}
	spec, err := o.Read()
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	for name, m := range outline.Maps {
		if was := spec.Maps[name]; was != nil {
			m.Key = was.Key
			if m.Value == nil {
				m.Value = was.Value
			}
		}
	}
	for name, v := range outline.Variables {
		if was := spec.Variables[name]; was != nil {
			v.Type = was.Type
		}
	}
	removePrograms(spec, func(p *ebpf.ProgramSpec) bool { return outline.Programs[p.Name] == nil })
	spec.Maps, spec.Variables = outline.Maps, outline.Variables
	return spec, nil
}
