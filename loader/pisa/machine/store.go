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

// store interprets *(size *)(dst + offset) = v.
func (m *Machine) store(s *state.State, in *code.Insn, v value.Value) {
	size := in.OpCode.Size().Sizeof()
	m.write(s, m.displace(s.Regs[in.Dst], in), size, v)
}

// write stores v where a pointer refers to.
func (m *Machine) write(s *state.State, ptr value.Value, size int, v value.Value) {
	v = v.Under(s.Control)
	ptr = m.single(s, ptr, size)
	m.refuseSecret(s, ptr.T.From.And(m.env.Secrets), "decides where something is stored")
	if ptr.Form != value.FormStack && ptr.Form != value.FormRecord { // a report is read by userspace
		m.keepSecret(s, v.T, ptr.Obj, ptr.Form)
	}
	switch ptr.Form {
	case value.FormRecord:
	case value.FormNumber:
		m.writePacket(s, ptr, size, v.T)
	case value.FormStack:
		f := &s.Frames[ptr.Obj]
		f.Stack = m.writeCells(s, f.Stack, ptr, size, v, state.Place{Obj: int(ptr.Obj)})
	case value.FormElement:
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, false, true, v.T))
	case value.FormMemory:
		m.writeMemory(s, ptr, size, v)
	default:
		m.fail(s.PC, nil, 2, rule.Unfollowed, "a store whose target cannot be followed")
	}
}

// writeCells writes to a stack frame or to scratch memory.
func (m *Machine) writeCells(s *state.State, mem value.Memory, ptr value.Value, size int, v value.Value, at state.Place) value.Memory {
	lo, hi := s.Reach(ptr)
	at.Off, at.Size = lo, hi-lo+size
	m.flows.NoteCell(s, at)
	if lo != hi {
		if at.Scratch {
			mem = m.fillGaps(mem, m.scratch[at.Obj], at)
		}
		return mem.Blur(lo, hi-lo+size, v.T.With(ptr.T), m.nodes)
	}
	switch {
	case v.IsNumber():
		v.N = m.nodes.Truncate(v.N, uint(size)*8)
		if size != 8 || at.Scratch {
			v.Base = value.Nothing
		}
	case v.IsPointer() && (size != 8 || at.Scratch):
		v = value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), v.T)
	case !v.IsPointer():
		v = value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), v.T)
	}
	return mem.Replace(value.Cell{Off: lo, Size: size, V: v, Sure: true}, m.nodes)
}

// fillGaps makes the words of scratch memory in a range explicit before some of them change.
func (m *Machine) fillGaps(mem value.Memory, obj int32, at state.Place) value.Memory {
	out := mem
	for _, gap := range mem.Gaps(at.Off, at.Size) {
		gap.V = m.firstWord(obj, gap.Off, gap.Size)
		out = out.Replace(gap, m.nodes)
	}
	return out
}

// writeMemory writes to a map that is no register array.
func (m *Machine) writeMemory(s *state.State, ptr value.Value, size int, v value.Value) {
	a := m.env.Arrays[ptr.Obj]
	m.used(ptr.Obj, false, true)
	switch a.Kind {
	case declared.Scratch:
		i := m.scratchNumber(ptr.Obj)
		t := v.T
		if v.IsNumber() && v.N.Clock && m.isClock(s, ptr, size) { // the first program that needs the time reads the clock, for all later ones
			t = value.Taint{}
		}
		if !m.choosesBank(s, ptr, size, v) {
			m.checkVector(s, ptr, size, t)
		}
		s.Scratch[i] = m.writeCells(s, s.Scratch[i], ptr, size, v, state.Place{Scratch: true, Obj: i})
	case declared.Counters:
		if v.Sum != (value.Sum{Obj: ptr.Obj + 1, Off: ptr.N}) {
			m.fail(s.PC, a, 1, rule.FlowState, "a counter is set to something that is not its old value plus a number")
		}
	case declared.Budget:
		m.storeBudget(s, a, ptr, size, v)
	case declared.Random:
		m.storeRandom(s, a, ptr, size, v)
	default:
		m.refuseWrite(s, a)
	}
}

// writePacket: a number that is written into the packet may be read back, or decide what another program does.
func (m *Machine) writePacket(s *state.State, ptr value.Value, size int, t value.Taint) {
	if ptr.Base == value.InContext {
		m.writeContext(s, ptr, size)
	} else if ptr.Base != value.InPacket {
		m.fail(s.PC, nil, 1, rule.Unlisted, "a store neither to the packet nor to memory of the program")
	}
	m.refuseAnswer(s, t.From, declared.Set{}, "a byte of the packet")
	s.Outside = s.Outside.With(t)
}

func (m *Machine) refuseWrite(s *state.State, a *declared.Array) {
	switch a.Kind {
	case declared.Table:
		m.fail(s.PC, a, 1, rule.FlowState, "a table is written: it is read-only to programs")
	case declared.Untagged:
		m.fail(s.PC, a, 1, rule.FlowState, "a %s without a role under the memory rules is written", a.Spec.Type)
	default:
		m.fail(s.PC, a, 1, rule.FlowState, "a map of kind %s is written", a.Kind)
	}
}

// checkVector: a word that the entry program does not set for each packet would still hold an earlier packet's value.
func (m *Machine) checkVector(s *state.State, ptr value.Value, size int, t value.Taint) {
	v := &m.env.Vector
	if ptr.Obj != v.Array {
		return
	}
	lo, hi := s.Reach(ptr)
	size += hi - lo
	pass := v.Pass >= 0 && lo == v.Pass && size == 1
	switch {
	case pass:
		m.deferPass(s)
		fallthrough
	case v.Carry.Covers(lo, size): // only the second pass reads it
		m.refuseAnswer(s, t.From, m.env.Budgets, "what the second pass finds")
	default:
		m.refuseAnswer(s, t.From, declared.Set{}, "a word of the vector")
	}
	if m.entry || v.MayWrite(lo, size) || v.Coin.Covers(lo, size) && m.env.CoinSeeded {
		return
	}
	m.fail(s.PC, m.env.Arrays[ptr.Obj], 1, rule.FlowState,
		"a word of the vector is written that the entry program does not set again for the next packet")
}

// choosesBank reports whether a store chooses the bank of the programs that follow (bpf/window). A program may do that if it accesses no bank itself, and
// if the number is a bank: then each of the others still has one bank from start to end.
func (m *Machine) choosesBank(s *state.State, ptr value.Value, size int, v value.Value) bool {
	lo, hi := s.Reach(ptr)
	return ptr.Obj == m.env.Vector.Array && lo == hi && lo == m.env.Vector.Bank && size == 1 && v.IsNumber() && v.N.Span.Hi <= 1 && !m.env.Banked
}

// isClock reports whether a pointer is to phv->now.
func (m *Machine) isClock(s *state.State, ptr value.Value, size int) bool {
	v := &m.env.Vector
	lo, hi := s.Reach(ptr)
	return ptr.Obj == v.Array && lo == hi && v.Now == declared.Word{Off: lo, Size: size}
}

// atomic interprets the atomic operations.
func (m *Machine) atomic(s *state.State, in *code.Insn) {
	operation := in.OpCode.AtomicOp()
	switch operation {
	case allow.LoadAcquire:
		m.load(s, in, in.Src, in.Dst)
		return
	case allow.StoreRelease:
		m.store(s, in, s.Regs[in.Src])
		return
	}
	ptr := m.displace(s.Regs[in.Dst], in)
	size := in.OpCode.Size().Sizeof()
	old := m.exchange(s, ptr, size, operation, s.Regs[in.Src])
	switch {
	case operation == asm.CmpXchg:
		m.setReg(s, asm.R0, old)
	case operation&allow.Fetches != 0:
		m.setReg(s, in.Src, old)
	}
}

// exchange is one atomic operation; it returns the old value of the word.
func (m *Machine) exchange(s *state.State, ptr value.Value, size int, operation asm.AtomicOp, v value.Value) value.Value {
	if ptr = m.single(s, ptr, size); ptr.Form == value.FormElement {
		m.markAtomic(ptr.Obj)
		m.keepSecret(s, v.T.With(s.Control), ptr.Obj, ptr.Form)
		written := v.T.With(s.Control)
		if operation != asm.Xchg {
			written = written.With(m.trace.Of(m.env.Arrays[ptr.Obj].Name))
		}
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, true, true, written))
		old := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), ptr.T)
		old.T.From = old.T.From.Or(m.env.Arrays[ptr.Obj].Bit).Or(declared.Packet)
		old.T.Named = m.trace.Of(m.env.Arrays[ptr.Obj].Name).Named
		return old
	}
	old := m.read(s, ptr, size)
	if ptr.Form == value.FormMemory {
		m.markAtomic(ptr.Obj)
	}
	result := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), old.T.With(v.T))
	if adds := operation == asm.AddAtomic || operation == asm.FetchAdd; adds && !v.T.From.Meets(m.env.Secrets) {
		result.Sum = old.Sum
	}
	m.write(s, ptr, size, result)
	return old
}

func (m *Machine) markAtomic(obj int32) { m.Uses[obj].Atomic = true }
