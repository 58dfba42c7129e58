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
	m, err := newMachine(e, spec, name, limit)
	if err != nil {
		return nil, err
	}
	if !m.listed(spec.Type, spec.AttachType) {
		m.uses = make([]use, len(e.arrays))
		return m, nil
	}
	return m, m.prove()
}

func newMachine(e *env, spec *ebpf.ProgramSpec, name string, limit int) (*machine, error) {
	p, err := decode(spec, e.numbers)
	if err != nil {
		return nil, err
	}
	p.name = name
	p.recirculates = e.vector.pass >= 0 && slices.ContainsFunc(p.insns, func(in insn) bool {
		return in.array >= 0 && e.arrays[in.array].kind == Recirc
	})
	return &machine{env: e, prog: p, hook: hooks[spec.Type], mentions: newMentions(p, e.arrays), entry: isEntry(e, p), limit: limit}, nil
}

// isEntry says whether a program begins chains: it has the name, reads the control word and keeps no registers.
func isEntry(e *env, p *program) bool {
	reads := false
	if !slices.Contains(entries, p.name) || e.staged != 0 {
		return false
	}
	for i := range p.insns {
		if at := p.insns[i].array; at >= 0 {
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

// sharedArrays finds arrays that a packet would touch twice on its way through a chain: in two programs of one type,
// whatever their sections are called.
func sharedArrays(e *env, proofs []*machine) (broken []Violation) {
	type key struct {
		hook  ebpf.ProgramType
		array int
	}
	first := make(map[key]*machine)
	for _, m := range proofs {
		for i, a := range e.arrays {
			if !a.staged() || m.uses[i] == (use{}) {
				continue
			}
			k := key{m.prog.hook, i}
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
