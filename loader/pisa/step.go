package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// step interprets one instruction and says whether the state goes on. Other successors are put into forks.
func (m *machine) step(s *state) bool {
	in := &m.prog.insns[s.pc]
	if what := unlistedInsn(in); what != "" {
		m.fail(s.pc, nil, 1, Unlisted, "%s is not on the list of instructions", what)
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
		m.store(s, in, number(m.nodes.number(uint64(in.Constant)), taint{}))
	case class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode:
		m.atomic(s, in)
	case class == asm.StXClass:
		m.store(s, in, s.regs[in.Src])
	default:
		return m.jump(s, in)
	}
	m.advance(s, s.pc+1)
	return true
}

// advance moves on inside a function.
func (m *machine) advance(s *state, pc int) {
	s.pc = pc
	if len(s.regions) > 0 {
		m.leaveRegions(s, pc, false)
	}
}

func (m *machine) setReg(s *state, r asm.Register, v value) {
	if len(s.regions) > 0 {
		v = v.under(s.control)
		m.noteReg(s, int(r))
	}
	s.regs[r] = v
}

// asNumber is the number in v, or an unknown one when v is something else.
func (m *machine) asNumber(v value) *node {
	if v.isNumber() {
		return v.n
	}
	return m.nodes.leaf(anything)
}

// loadConstant: a 64-bit constant, a map, a word of a global variable's section, or a function.
func (m *machine) loadConstant(s *state, in *insn) {
	if !in.OpCode.IsDWordLoad() {
		m.fail(s.pc, nil, 1, Unlisted, "the packet access of classic BPF is not on the list: it ends the program where the packet is short")
		m.clobber(s)
		m.setReg(s, asm.R0, number(m.nodes.leaf(below(32)), fromPacket))
		return
	}
	v := number(m.nodes.leaf(anything), taint{})
	switch {
	case in.core:
	case in.Src == asm.PseudoMapFD:
		v = value{form: formMap, obj: int32(in.array)}
	case in.Src == asm.PseudoMapValue:
		v = value{form: formMemory, obj: int32(in.array), n: m.nodes.number(uint64(in.Constant) >> 32)}
		if m.env.arrays[in.array].staged() {
			v.form = formElement
			v.lookup = m.openAccess(s, int32(in.array))
		}
	case in.IsLoadOfFunctionPointer():
		v = value{form: formCode, obj: int32(in.target)}
	case in.Src == asm.R0 && in.Reference() == "": // else a symbol of the kernel
		v = number(m.nodes.number(uint64(in.Constant)), taint{})
	}
	m.setReg(s, in.Dst, v)
}

// clobber forgets the registers that a call may overwrite.
func (m *machine) clobber(s *state) {
	for r := asm.R1; r <= asm.R5; r++ {
		s.regs[r] = value{}
	}
}
