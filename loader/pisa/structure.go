package pisa

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/machine"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
)

// Touch is what a collection's programs do with one register array, all paths of all programs together. Sources are named as
// trace.Sources defines; Index and Written contain Condition.
type Touch struct {
	Array     string   `json:"array"`
	Stage     int      `json:"stage"`
	WidthBits int      `json:"width_bits"`
	Entries   uint64   `json:"entries"` // of all banks
	Read      bool     `json:"read"`
	Write     bool     `json:"write"`
	Condition []string `json:"condition"` // what decides whether a packet touches an element
	Index     []string `json:"index"`     // what decides which one
	Written   []string `json:"written"`   // what is written depends on
}

// Structure proves a collection and returns what it does with each of its registers and tallies, in the order of their stages. What no
// program touches is not among them. Programs that were compiled for XDP and for TC are one text: those for TC are left out.
func Structure(spec *ebpf.CollectionSpec) ([]Touch, error) {
	e, broken, err := declared.Read(spec)
	if err != nil {
		return nil, fmt.Errorf("trace register accesses: %w", err)
	}
	if len(broken) > 0 {
		return nil, fmt.Errorf("trace register accesses: %w", &rule.Violations{List: broken})
	}
	found := map[int32]trace.Access{}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if spec.Programs[strings.TrimSuffix(name, "_tc")+"_xdp"] != nil {
			continue
		}
		m, err := machine.Prove(e, spec.Programs[name], name, machine.StepLimit)
		if err == nil && len(m.Found) > 0 {
			err = &rule.Violations{List: m.Found}
		}
		var of map[int32]trace.Access
		if err == nil {
			of, err = m.Trace()
		}
		if err != nil {
			return nil, fmt.Errorf("trace register accesses of program %s: %w", name, err)
		}
		for array, a := range of {
			found[array] = found[array].With(a)
		}
	}
	var out []Touch
	for i, a := range e.Arrays {
		if access, ok := found[int32(i)]; ok && a.Staged() {
			out = append(out, newTouch(a, access))
		}
	}
	slices.SortStableFunc(out, func(a, b Touch) int { return a.Stage - b.Stage })
	return out, nil
}

func newTouch(a *declared.Array, access trace.Access) Touch {
	return Touch{
		Array: a.Name, Stage: a.Stage, WidthBits: 8 * a.Width, Entries: uint64(a.Spec.MaxEntries), Read: access.Read, Write: access.Write,
		Condition: access.Condition.Names(), Index: access.Index.Names(), Written: access.Written.Names(),
	}
}
