package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// jump interprets branches, calls and exits.
func (m *machine) jump(s *state, in *insn) bool {
	switch operation := in.OpCode.JumpOp(); operation {
	case asm.Exit:
		return m.exit(s)
	case asm.Call:
		return m.call(s, in)
	case asm.Ja:
		m.advance(s, in.target)
		return true
	case asm.JCOND: // may_goto: the kernel decides
		m.fork(s, in.target)
		m.advance(s, s.pc+1)
		return true
	default:
		return m.branch(s, in, operation)
	}
}

// fork lets a copy of the state go on elsewhere.
func (m *machine) fork(s *state, pc int) *state {
	c := s.clone()
	m.advance(c, pc)
	m.forks = append(m.forks, c)
	return c
}

func (m *machine) branch(s *state, in *insn, operation asm.JumpOp) bool {
	a := s.regs[in.Dst]
	b := number(m.nodes.number(uint64(in.Constant)), taint{})
	if in.OpCode.Source() == asm.RegSource {
		b = s.regs[in.Src]
	}
	if a.isPointer() && a.form != formLost && b.isNumber() && b.n.is(0) && (operation == asm.JEq || operation == asm.JNE) {
		return m.nullCheck(s, in, a, operation == asm.JEq)
	}
	if a.isPointer() || b.isPointer() { // or what cannot be told from one: it depends on something all the same
		m.decide(s, a.t.with(b.t))
		m.fork(s, in.target)
		m.advance(s, s.pc+1)
		return true
	}
	return m.compareBranch(s, in, a, b, operation)
}

// nullCheck decides whether a lookup has found its element. That is no condition of rule 4, since a switch's
// register has every element, unless the index came from a register: then it is one on what was read.
func (m *machine) nullCheck(s *state, in *insn, ptr value, equal bool) bool {
	found, missing := s.pc+1, in.target
	if !equal {
		found, missing = missing, found
	}
	m.enterRegion(s, s.pc, taint{from: ptr.why})
	if ptr.null != 0 {
		if ptr.t.from&(m.env.staged|m.env.answers|m.env.secrets) != 0 || ptr.form == formRound {
			m.decide(s, ptr.t)
		}
		c := s.clone()
		c.replacePointer(ptr.null, func(v value) value { return number(m.nodes.number(0), v.t) })
		m.advance(c, missing)
		m.forks = append(m.forks, c)
		s.replacePointer(ptr.null, func(v value) value { v.null = 0; return v })
	}
	m.advance(s, found)
	return true
}

// condition makes the comparison of a branch; negated says that the branch is taken when it does not hold.
func (m *machine) condition(operation asm.JumpOp, a, b *node) (cond *node, negated bool) {
	ns := m.nodes
	switch operation {
	case asm.JEq:
		return ns.binary(opEq, a, b), false
	case asm.JNE:
		return ns.binary(opEq, a, b), true
	case asm.JSet:
		return ns.binary(opEq, ns.binary(opAnd, a, b), ns.number(0)), true
	case asm.JGT:
		return ns.binary(opULess, b, a), false
	case asm.JLE:
		return ns.binary(opULess, b, a), true
	case asm.JLT:
		return ns.binary(opULess, a, b), false
	case asm.JGE:
		return ns.binary(opULess, a, b), true
	case asm.JSGT:
		return ns.binary(opSLess, b, a), false
	case asm.JSLE:
		return ns.binary(opSLess, b, a), true
	case asm.JSLT:
		return ns.binary(opSLess, a, b), false
	case asm.JSGE:
		return ns.binary(opSLess, a, b), true
	}
	return ns.leaf(span{0, 1}), false
}

func isSigned(operation asm.JumpOp) bool {
	switch operation {
	case asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE:
		return true
	}
	return false
}

// operands cuts the numbers of a 32-bit comparison.
func (m *machine) operands(in *insn, a, b value, signed bool) (*node, *node) {
	x, y := m.asNumber(a), m.asNumber(b)
	if in.OpCode.Class() != asm.Jump32Class {
		return x, y
	}
	x, y = m.nodes.truncate(x, 32), m.nodes.truncate(y, 32)
	if signed {
		x, y = m.nodes.extend(x, 32), m.nodes.extend(y, 32)
	}
	return x, y
}

func (m *machine) compareBranch(s *state, in *insn, a, b value, operation asm.JumpOp) bool {
	x, y := m.operands(in, a, b, isSigned(operation))
	cond, negated := m.condition(operation, x, y)
	outcome := s.facts.spanOf(cond)
	if outcome.single() { // here; what it depends on may have decided differently elsewhere
		m.enterRegion(s, s.pc, a.t.with(b.t))
		if (outcome.lo == 1) != negated {
			m.advance(s, in.target)
		} else {
			m.advance(s, s.pc+1)
		}
		return true
	}
	m.decide(s, a.t.with(b.t))
	c := s.clone()
	var taken, passed bool
	c.facts, taken = c.facts.assume(cond, !negated)
	s.facts, passed = s.facts.assume(cond, negated)
	if taken {
		m.advance(c, in.target)
		if !passed {
			*s = *c
			return true
		}
		m.forks = append(m.forks, c)
	}
	m.advance(s, s.pc+1)
	return passed
}

// decide notes that a branch depends on t.
func (m *machine) decide(s *state, t taint) {
	m.refuseSecret(s, t.from&m.env.secrets, "decides a branch")
	s.countTest(s.pc, t, m.env.arrays)
	m.enterRegion(s, s.pc, t)
}

// exit returns to the caller, or ends the packet.
func (m *machine) exit(s *state) bool {
	if s.depth() == 0 {
		m.checkVerdict(s)
		return false
	}
	m.leaveRegions(s, 0, true)
	f := s.frames[s.depth()]
	if f.loop { // what its result depends on is looked at here
		m.applyEnded(s)
	}
	s.frames = s.frames[:s.depth()]
	again := s.regs[0].t
	if f.loop {
		copy(s.regs[1:10], f.saved[1:])
		s.regs[0] = value{}
	} else {
		copy(s.regs[6:10], f.saved[6:])
		m.clobber(s)
	}
	s.regs[10] = m.frameTop(s.depth())
	m.dropFrame(s)
	if len(s.regions) > 0 {
		m.noteReg(s, 0)
	}
	m.advance(s, f.back)
	if f.loop {
		m.decide(s, again) // whether there is another round
	}
	return true
}

// dropFrame forgets pointers into a frame that is gone. The verifier refuses programs that keep one.
func (m *machine) dropFrame(s *state) {
	for r := range s.regs[:10] {
		if s.regs[r].form == formStack && int(s.regs[r].obj) > s.depth() {
			s.regs[r] = value{form: formLost, t: s.regs[r].t}
		}
	}
	for d := range s.frames {
		mem := s.frames[d].stack
		for i := range mem {
			if mem[i].v.form == formStack && int(mem[i].v.obj) > s.depth() {
				out := append(memory(nil), mem...)
				out[i].v = value{form: formLost, t: mem[i].v.t}
				mem, s.frames[d].stack = out, out
			}
		}
	}
}
