package machine

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// loopHelper is the head of a loop: the helper either ends, or calls the callback once more and is interpreted again after it.
func (m *Machine) loopHelper(s *state.State, in *code.Insn, fn asm.BuiltinFunc) bool {
	code := s.Regs[allow.CallbackOf[fn]]
	if code.Form != value.FormCode {
		m.fail(s.PC, nil, 2, rule.Unfollowed, "a callback that cannot be followed")
		m.result(s, value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket))
		return true
	}
	m.decide(s, m.argumentTaint(s, allow.Arity(in.Constant))) // how often
	ended := s.Clone()
	m.result(ended, value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket))
	m.forks = append(m.forks, ended)
	context, table := s.Regs[asm.R3], s.Regs[asm.R1]
	if !m.enter(s, int(code.Obj), s.PC, true) {
		return false
	}
	for r := asm.R1; r <= asm.R5; r++ {
		s.Regs[r] = value.Number(m.nodes.Leaf(expr.Anything), s.Control.With(value.FromPacket))
	}
	switch fn {
	case asm.FnLoop:
		s.Regs[asm.R2] = context
	case asm.FnForEachMapElem:
		s.Regs[asm.R1], s.Regs[asm.R4] = table, context
		s.Regs[asm.R2].Base = value.InConfig
		s.Regs[asm.R3] = m.visited(s, table)
	}
	return true
}

// visited is the element that bpf_for_each_map_elem shows to its callback.
func (m *Machine) visited(s *state.State, table value.Value) value.Value {
	if table.Form != value.FormMap {
		return value.Value{Form: value.FormLost}
	}
	switch a := m.env.Arrays[table.Obj]; a.Kind {
	case declared.Register, declared.Tally, declared.Table, declared.Untagged:
	default:
		m.fail(s.PC, a, 1, rule.Unlisted, "a callback visits the elements of a %s", a.Kind)
	}
	out := value.Value{Form: value.FormMemory, Obj: table.Obj, N: m.nodes.Number(0)}
	if m.env.Arrays[table.Obj].Staged() {
		out.Form, out.Lookup = value.FormElement, m.openAccess(s, table.Obj)
	}
	return out
}
