package machine

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// step interprets one instruction and reports whether the state continues. Other successors are put into forks.
func (m *Machine) step(s *state.State) bool {
	in := &m.Prog.Insns[s.PC]
	if what := allow.UnlistedInsn(in.Instruction); what != "" {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%s is not on the list of instructions", what)
		return false
	}
	switch class := in.OpCode.Class(); {
	case class.IsALU():
		m.alu(s, in)
	case class == asm.LdClass:
		m.loadConstant(s, in)
	case class == asm.LdXClass:
		m.load(s, in, in.Src, in.Dst)
	case class == asm.StClass:
		m.store(s, in, value.Number(m.nodes.Number(uint64(in.Constant)), value.Taint{}))
	case class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode:
		m.atomic(s, in)
	case class == asm.StXClass:
		m.store(s, in, s.Regs[in.Src])
	default:
		return m.jump(s, in)
	}
	m.advance(s, s.PC+1)
	return true
}

// advance continues at pc in the same function.
func (m *Machine) advance(s *state.State, pc int) {
	s.PC = pc
	if len(s.Regions) > 0 {
		m.flows.Leave(s, pc, false)
	}
}

func (m *Machine) setReg(s *state.State, r asm.Register, v value.Value) {
	if len(s.Regions) > 0 {
		v = v.Under(s.Control)
		m.flows.NoteReg(s, int(r))
	}
	s.Regs[r] = v
}

// asNumber is the number in v, or an unknown one when v is something else.
func (m *Machine) asNumber(v value.Value) *expr.Node {
	if v.IsNumber() {
		return v.N
	}
	return m.nodes.Leaf(expr.Anything)
}

// loadConstant: a 64-bit constant, a map, a word of a global variable's section, or a function.
func (m *Machine) loadConstant(s *state.State, in *code.Insn) {
	if !in.OpCode.IsDWordLoad() {
		m.fail(s.PC, nil, 1, rule.Unlisted, "the packet access of classic BPF is not on the list: it ends the program where the packet is short")
		m.clobber(s)
		m.setReg(s, asm.R0, value.Number(m.nodes.Leaf(expr.Below(32)), value.FromPacket))
		return
	}
	v := value.Number(m.nodes.Leaf(expr.Anything), value.Taint{})
	switch {
	case in.Core:
	case in.Src == asm.PseudoMapFD:
		v = value.Value{Form: value.FormMap, Obj: int32(in.Array)}
	case in.Src == asm.PseudoMapValue:
		v = value.Value{Form: value.FormMemory, Obj: int32(in.Array), N: m.nodes.Number(uint64(in.Constant) >> 32)}
		if m.env.Arrays[in.Array].Staged() {
			v.Form = value.FormElement
			v.Lookup = m.openAccess(s, int32(in.Array))
		}
	case in.IsLoadOfFunctionPointer():
		v = value.Value{Form: value.FormCode, Obj: int32(in.Target)}
	case in.Src == asm.R0 && in.Reference() == "": // else a symbol of the kernel
		v = value.Number(m.nodes.Number(uint64(in.Constant)), value.Taint{})
	}
	m.setReg(s, in.Dst, v)
}

// clobber forgets the registers that a call may overwrite.
func (m *Machine) clobber(s *state.State) {
	for r := asm.R1; r <= asm.R5; r++ {
		s.Regs[r] = value.Value{}
	}
}
