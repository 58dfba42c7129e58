package machine

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// jump interprets branches, calls and exits.
func (m *Machine) jump(s *state.State, in *code.Insn) bool {
	switch operation := in.OpCode.JumpOp(); operation {
	case asm.Exit:
		return m.exit(s)
	case asm.Call:
		return m.call(s, in)
	case asm.Ja:
		m.advance(s, in.Target)
		return true
	case asm.JCOND: // may_goto: the kernel decides
		m.fork(s, in.Target)
		m.advance(s, s.PC+1)
		return true
	default:
		return m.branch(s, in, operation)
	}
}

// fork adds a copy of the state that continues at pc.
func (m *Machine) fork(s *state.State, pc int) *state.State {
	c := s.Clone()
	m.advance(c, pc)
	m.forks = append(m.forks, c)
	return c
}

func (m *Machine) branch(s *state.State, in *code.Insn, operation asm.JumpOp) bool {
	a := s.Regs[in.Dst]
	b := value.Number(m.nodes.Number(uint64(in.Constant)), value.Taint{})
	if in.OpCode.Source() == asm.RegSource {
		b = s.Regs[in.Src]
	}
	if a.IsPointer() && a.Form != value.FormLost && b.IsNumber() && b.N.Is(0) && (operation == asm.JEq || operation == asm.JNE) {
		return m.nullCheck(s, in, a, operation == asm.JEq)
	}
	if a.IsPointer() || b.IsPointer() { // or a value that may be one: the branch depends on it either way
		m.decide(s, a.T.With(b.T))
		m.fork(s, in.Target)
		m.advance(s, s.PC+1)
		return true
	}
	return m.compareBranch(s, in, a, b, operation)
}

// nullCheck decides whether a lookup has found its element. That is no condition of rule 4, since a switch's
// register has every element; unless the index was read from a register: then it is a condition on that value.
func (m *Machine) nullCheck(s *state.State, in *code.Insn, ptr value.Value, equal bool) bool {
	found, missing := s.PC+1, in.Target
	if !equal {
		found, missing = missing, found
	}
	m.enterRegion(s, s.PC, value.Taint{From: ptr.Why})
	if ptr.Null != 0 {
		if ptr.T.From.Meets(m.env.Staged.Or(m.env.Answers).Or(m.env.Secrets)) || ptr.Form == value.FormRound {
			t := ptr.T
			if ptr.Form == value.FormElement {
				t.Named = declared.Set{}
			}
			m.decide(s, t)
		}
		c := s.Clone()
		c.ReplacePointer(ptr.Null, func(v value.Value) value.Value { return value.Number(m.nodes.Number(0), v.T) })
		m.advance(c, missing)
		m.forks = append(m.forks, c)
		s.ReplacePointer(ptr.Null, func(v value.Value) value.Value { v.Null = 0; return v })
	}
	m.advance(s, found)
	return true
}

// condition makes the comparison of a branch; negated: the branch is taken when the comparison is false.
func (m *Machine) condition(operation asm.JumpOp, a, b *expr.Node) (cond *expr.Node, negated bool) {
	ns := m.nodes
	switch operation {
	case asm.JEq:
		return ns.Binary(expr.Eq, a, b), false
	case asm.JNE:
		return ns.Binary(expr.Eq, a, b), true
	case asm.JSet:
		return ns.Binary(expr.Eq, ns.Binary(expr.And, a, b), ns.Number(0)), true
	case asm.JGT:
		return ns.Binary(expr.ULess, b, a), false
	case asm.JLE:
		return ns.Binary(expr.ULess, b, a), true
	case asm.JLT:
		return ns.Binary(expr.ULess, a, b), false
	case asm.JGE:
		return ns.Binary(expr.ULess, a, b), true
	case asm.JSGT:
		return ns.Binary(expr.SLess, b, a), false
	case asm.JSLE:
		return ns.Binary(expr.SLess, b, a), true
	case asm.JSLT:
		return ns.Binary(expr.SLess, a, b), false
	case asm.JSGE:
		return ns.Binary(expr.SLess, a, b), true
	}
	return ns.Leaf(expr.Span{Lo: 0, Hi: 1}), false
}

func isSigned(operation asm.JumpOp) bool {
	switch operation {
	case asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE:
		return true
	}
	return false
}

// operands cuts the numbers of a 32-bit comparison.
func (m *Machine) operands(in *code.Insn, a, b value.Value, signed bool) (*expr.Node, *expr.Node) {
	x, y := m.asNumber(a), m.asNumber(b)
	if in.OpCode.Class() != asm.Jump32Class {
		return x, y
	}
	x, y = m.nodes.Truncate(x, 32), m.nodes.Truncate(y, 32)
	if signed {
		x, y = m.nodes.Extend(x, 32), m.nodes.Extend(y, 32)
	}
	return x, y
}

func (m *Machine) compareBranch(s *state.State, in *code.Insn, a, b value.Value, operation asm.JumpOp) bool {
	x, y := m.operands(in, a, b, isSigned(operation))
	cond, negated := m.condition(operation, x, y)
	outcome := s.Facts.SpanOf(cond)
	if outcome.Single() { // on this path; on another one the same inputs may have decided differently
		m.enterRegion(s, s.PC, a.T.With(b.T))
		if (outcome.Lo == 1) != negated {
			m.advance(s, in.Target)
		} else {
			m.advance(s, s.PC+1)
		}
		return true
	}
	t := a.T.With(b.T)
	if operation == asm.JSet {
		t = m.trace.Masked(m.nodes.Binary(expr.And, x, y), t)
	}
	m.decide(s, t)
	c := s.Clone()
	var taken, passed bool
	c.Facts, taken = c.Facts.Assume(cond, !negated)
	s.Facts, passed = s.Facts.Assume(cond, negated)
	if taken {
		m.advance(c, in.Target)
		if !passed {
			*s = *c
			return true
		}
		m.forks = append(m.forks, c)
	}
	m.advance(s, s.PC+1)
	return passed
}

// decide notes that a branch depends on t.
func (m *Machine) decide(s *state.State, t value.Taint) {
	m.refuseSecret(s, t.From.And(m.env.Secrets), "decides a branch")
	s.CountTest(s.PC, t, m.env.Arrays)
	m.enterRegion(s, s.PC, t)
}

// exit returns to the caller, or ends the packet.
func (m *Machine) exit(s *state.State) bool {
	if s.Depth() == 0 {
		m.checkVerdict(s)
		return false
	}
	m.flows.Leave(s, 0, true)
	f := s.Frames[s.Depth()]
	if f.Loop { // the callback's result decides on another round
		m.applyEnded(s)
	}
	s.Frames = s.Frames[:s.Depth()]
	again := s.Regs[0].T
	if f.Loop {
		copy(s.Regs[1:10], f.Saved[1:])
		s.Regs[0] = value.Value{}
	} else {
		copy(s.Regs[6:10], f.Saved[6:])
		m.clobber(s)
	}
	s.Regs[10] = m.frameTop(s.Depth())
	m.dropFrame(s)
	if len(s.Regions) > 0 {
		m.flows.NoteReg(s, 0)
	}
	m.advance(s, f.Back)
	if f.Loop {
		m.decide(s, again) // whether there is another round
	}
	return true
}

// dropFrame drops pointers into a frame that has ended. The verifier refuses programs that use one.
func (m *Machine) dropFrame(s *state.State) {
	for r := range s.Regs[:10] {
		if s.Regs[r].Form == value.FormStack && int(s.Regs[r].Obj) > s.Depth() {
			s.Regs[r] = value.Value{Form: value.FormLost, T: s.Regs[r].T}
		}
	}
	for d := range s.Frames {
		mem := s.Frames[d].Stack
		for i := range mem {
			if mem[i].V.Form == value.FormStack && int(mem[i].V.Obj) > s.Depth() {
				out := append(value.Memory(nil), mem...)
				out[i].V = value.Value{Form: value.FormLost, T: mem[i].V.T}
				mem, s.Frames[d].Stack = out, out
			}
		}
	}
}
