package machine

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
)

// Prove interprets one program of a collection; its violations are in Found.
func Prove(e *declared.Collection, spec *ebpf.ProgramSpec, name string, limit int) (*Machine, error) {
	if spec == nil {
		return nil, fmt.Errorf("%w: no specification", rule.ErrMalformed)
	}
	m, err := newMachine(e, spec, name, limit)
	if err != nil {
		return nil, err
	}
	if !m.listed(spec) {
		m.Uses = make([]Use, len(e.Arrays))
		return m, nil
	}
	return m, m.prove()
}

// Trace interprets a program again and returns its accesses to every array that it touches, by number.
func (m *Machine) Trace() (map[int32]trace.Access, error) {
	m.trace, m.steps = trace.New(m.env), 0
	if err := m.prove(); err != nil {
		return nil, err
	}
	return m.trace.Found()
}

func newMachine(e *declared.Collection, spec *ebpf.ProgramSpec, name string, limit int) (*Machine, error) {
	p, err := code.Decode(spec, e.Numbers)
	if err != nil {
		return nil, err
	}
	p.Name = name
	p.NameFields(e.Types)
	p.Recirculates = e.Vector.Pass >= 0 && slices.ContainsFunc(p.Insns, func(in code.Insn) bool {
		return in.Array >= 0 && e.Arrays[in.Array].Kind == declared.Recirc
	})
	hook := allow.Hooks[spec.Type]
	if spec.Type == ebpf.Tracing {
		hook.Fields = allow.TracePoints[spec.AttachTo]
	}
	return &Machine{env: e, Prog: p, hook: hook, mentions: code.NewMentions(p, e.Arrays), entry: isEntry(e, p), limit: limit}, nil
}

// isEntry reports whether a program begins chains: it has the name, reads the control word and keeps no registers.
func isEntry(e *declared.Collection, p *code.Program) bool {
	reads := false
	if !slices.Contains(allow.Entries, p.Name) || !e.Staged.Empty() {
		return false
	}
	for i := range p.Insns {
		if at := p.Insns[i].Array; at >= 0 {
			reads = reads || e.Arrays[at].Name == declared.ControlName
		}
	}
	return reads
}
