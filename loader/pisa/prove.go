package pisa

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// Prove checks every program of a collection against the memory rules and reports what the collection would
// take of a switch. The specification is the one that will be loaded: constants and map sizes are set, and
// branches that are dead under these constants are not looked at. It is not changed.
//
// The error is a *Violations when rules are broken; the report is complete then, too. ErrMalformed and ErrTooComplex
// are the other reasons for an error; then there is no report.
func Prove(spec *ebpf.CollectionSpec) (*Report, error) {
	return proveWithin(spec, stepLimit)
}

func proveWithin(spec *ebpf.CollectionSpec, limit int) (*Report, error) {
	e, broken, err := newEnv(spec)
	if err != nil {
		return nil, fmt.Errorf("prove memory rules: %w", err)
	}
	var proofs []*machine
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		m, err := proveProgram(e, spec.Programs[name], name, limit)
		if err != nil {
			return nil, fmt.Errorf("prove memory rules of program %s: %w", name, err)
		}
		proofs = append(proofs, m)
	}
	for i := range broken {
		locate(&broken[i], e, proofs)
	}
	for _, m := range proofs {
		broken = append(broken, m.found...)
	}
	broken = append(broken, sharedArrays(e, proofs)...)
	report := newReport(e, proofs)
	if len(broken) == 0 {
		broken = report.misfits()
	}
	if len(broken) > 0 {
		return report, &Violations{List: broken}
	}
	return report, nil
}

func proveProgram(e *env, spec *ebpf.ProgramSpec, name string, limit int) (*machine, error) {
	if spec == nil {
		return nil, fmt.Errorf("%w: no specification", ErrMalformed)
	}
	p, err := decode(spec, e.numbers)
	if err != nil {
		return nil, err
	}
	p.name = name
	m := &machine{env: e, prog: p, entry: isEntry(e, p), limit: limit}
	return m, m.prove()
}

// isEntry says whether a program begins chains: it reads the control word and keeps no registers.
func isEntry(e *env, p *program) bool {
	reads := false
	for i := range p.insns {
		if at := p.insns[i].array; at >= 0 {
			if e.arrays[at].staged() {
				return false
			}
			reads = reads || e.arrays[at].name == controlName
		}
	}
	return reads
}

// locate points what is wrong with a map's declaration at the first instruction that names the map.
func locate(v *Violation, e *env, proofs []*machine) {
	at := e.numbers[v.Map]
	for _, m := range proofs {
		for i := range m.prog.insns {
			if m.prog.insns[i].array == at {
				v.Program, v.Insn, v.Source = m.prog.name, m.prog.insns[i].raw, m.prog.source(i)
				return
			}
		}
	}
}

// sharedArrays finds arrays that a packet would touch twice on its way through a chain, in two programs
// of one hook.
func sharedArrays(e *env, proofs []*machine) (broken []Violation) {
	type key struct {
		section string
		array   int
	}
	first := make(map[key]*machine)
	for _, m := range proofs {
		for i, a := range e.arrays {
			if !a.staged() || m.uses[i] == (use{}) {
				continue
			}
			k := key{m.prog.section, i}
			if other, ok := first[k]; ok {
				v := Violation{Rule: 2, Code: SecondAccess, Map: a.name, Insn: -1,
					Reason: fmt.Sprintf("program %s of the same chain touches it, too", other.prog.name)}
				locate(&v, e, []*machine{m})
				broken = append(broken, v)
				continue
			}
			first[k] = m
		}
	}
	return broken
}
