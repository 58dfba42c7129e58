package pisa

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/machine"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// Prove checks every program of a collection against the memory rules and reports the resources of a switch that
// it needs. The specification is the one that will be loaded: constants and map sizes are set, and
// branches that are dead under these constants are not interpreted. It is not changed.
//
// The error is a *Violations when rules are broken; the report is complete then, too. ErrMalformed and ErrTooComplex
// are the other reasons for an error; then there is no report.
func Prove(spec *ebpf.CollectionSpec) (*Report, error) {
	return ProveWithin(spec, machine.StepLimit)
}

// ProveWithin is Prove with a limit on the interpreted instructions of one program.
func ProveWithin(spec *ebpf.CollectionSpec, limit int) (*Report, error) {
	e, broken, err := declared.Read(spec)
	if err != nil {
		return nil, fmt.Errorf("prove memory rules: %w", err)
	}
	var proofs []*machine.Machine
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		m, err := machine.Prove(e, spec.Programs[name], name, limit)
		if err != nil {
			return nil, fmt.Errorf("prove memory rules of program %s: %w", name, err)
		}
		proofs = append(proofs, m)
	}
	for i := range broken {
		locate(&broken[i], e, proofs)
	}
	for _, m := range proofs {
		broken = append(broken, m.Found...)
	}
	broken = append(broken, sharedArrays(e, proofs)...)
	report := newReport(e, proofs)
	if len(broken) == 0 {
		broken = report.misfits()
	}
	if len(broken) > 0 {
		return report, &rule.Violations{List: broken}
	}
	return report, nil
}

// locate sets the position of an error in a map's declaration to the first instruction that names the map.
func locate(v *rule.Violation, e *declared.Collection, proofs []*machine.Machine) {
	at := e.Numbers[e.Arrays[e.Numbers[v.Map]].Map]
	for _, m := range proofs {
		for i := range m.Prog.Insns {
			if m.Prog.Insns[i].Array == at {
				v.Program, v.Insn, v.Source = m.Prog.Name, m.Prog.Insns[i].Raw, m.Prog.Source(i)
				return
			}
		}
	}
}

// sharedArrays finds arrays that a packet would touch twice on its way through a chain: in two programs of one type,
// whatever their sections are called.
func sharedArrays(e *declared.Collection, proofs []*machine.Machine) (broken []rule.Violation) {
	type key struct {
		hook  ebpf.ProgramType
		array int
	}
	first := make(map[key]*machine.Machine)
	for _, m := range proofs {
		for i, a := range e.Arrays {
			if !a.Staged() || m.Uses[i] == (machine.Use{}) {
				continue
			}
			k := key{m.Prog.Hook, i}
			if other, ok := first[k]; ok {
				v := rule.Violation{Rule: 2, Code: rule.SecondAccess, Map: a.Name, Insn: -1,
					Reason: fmt.Sprintf("program %s of the same chain touches it, too", other.Prog.Name)}
				locate(&v, e, []*machine.Machine{m})
				broken = append(broken, v)
				continue
			}
			first[k] = m
		}
	}
	return broken
}
