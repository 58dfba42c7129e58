package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// callbackOf is the register that holds a helper's callback.
var callbackOf = map[asm.BuiltinFunc]asm.Register{
	asm.FnLoop: asm.R2, asm.FnForEachMapElem: asm.R2,
}

// loopsOver says whether an instruction calls a helper that calls back, any number of times.
func loopsOver(in *insn) bool {
	if !in.IsBuiltinCall() {
		return false
	}
	_, ok := callbackOf[asm.BuiltinFunc(in.Constant)]
	return ok
}

// loopHelper is the head of a loop: the helper has ended, or calls back once more and is then met again.
func (m *machine) loopHelper(s *state, in *insn, fn asm.BuiltinFunc) bool {
	code := s.regs[callbackOf[fn]]
	if code.form != formCode {
		m.fail(s.pc, nil, 2, Unfollowed, "a callback that cannot be followed")
		m.result(s, number(m.nodes.leaf(anything), fromPacket))
		return true
	}
	m.decide(s, m.argumentTaint(s, arity(in.Constant))) // how often
	ended := s.clone()
	m.result(ended, number(m.nodes.leaf(anything), fromPacket))
	m.forks = append(m.forks, ended)
	context, table := s.regs[asm.R3], s.regs[asm.R1]
	if !m.enter(s, int(code.obj), s.pc, true) {
		return false
	}
	for r := asm.R1; r <= asm.R5; r++ {
		s.regs[r] = number(m.nodes.leaf(anything), s.control.with(fromPacket))
	}
	switch fn {
	case asm.FnLoop:
		s.regs[asm.R2] = context
	case asm.FnForEachMapElem:
		s.regs[asm.R1], s.regs[asm.R4] = table, context
		s.regs[asm.R2].base = inConfig
		s.regs[asm.R3] = m.visited(s, table)
	}
	return true
}

// visited is the element that bpf_for_each_map_elem shows to its callback.
func (m *machine) visited(s *state, table value) value {
	if table.form != formMap {
		return value{form: formLost}
	}
	switch a := m.env.arrays[table.obj]; a.kind {
	case Register, Tally, Table, Untagged:
	default:
		m.fail(s.pc, a, 1, Unlisted, "a callback visits the elements of a %s", a.kind)
	}
	out := value{form: formMemory, obj: table.obj, n: m.nodes.number(0)}
	if m.env.arrays[table.obj].staged() {
		out.form, out.lookup = formElement, m.openAccess(s, table.obj)
	}
	return out
}
