package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// store interprets *(size *)(dst + offset) = v.
func (m *machine) store(s *state, in *insn, v value) {
	size := in.OpCode.Size().Sizeof()
	m.write(s, m.displace(s.regs[in.Dst], in), size, v)
}

// write puts v behind a pointer.
func (m *machine) write(s *state, ptr value, size int, v value) {
	v = v.under(s.control)
	m.refuseSecret(s, ptr.t.from&m.env.secrets, "decides where something is stored")
	if ptr.form != formStack && ptr.form != formRecord { // a report is what userspace reads
		m.keepSecret(s, v.t, ptr.obj, ptr.form)
	}
	switch ptr.form {
	case formRecord:
	case formNumber: // a packet
		s.outside = s.outside.with(v.t)
	case formStack:
		f := &s.frames[ptr.obj]
		f.stack = m.writeCells(s, f.stack, ptr, size, v, place{obj: int(ptr.obj)})
	case formElement:
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, false, true, v.t))
	case formMemory:
		m.writeMemory(s, ptr, size, v)
	default:
		m.fail(s.pc, nil, 2, Unfollowed, "a store whose target cannot be followed")
	}
}

// writeCells writes to a stack frame or to scratch memory.
func (m *machine) writeCells(s *state, mem memory, ptr value, size int, v value, at place) memory {
	lo, hi := s.reach(ptr)
	at.off, at.size = lo, hi-lo+size
	m.noteCell(s, at)
	if lo != hi {
		if at.scratch {
			mem = m.fill(mem, m.scratch[at.obj], at)
		}
		return mem.blur(lo, hi-lo+size, v.t.with(ptr.t), m.nodes)
	}
	switch {
	case v.isNumber():
		v.n = m.nodes.truncate(v.n, uint(size)*8)
	case v.isPointer() && (size != 8 || at.scratch):
		v = number(m.nodes.leaf(below(uint(size)*8)), v.t)
	case !v.isPointer():
		v = number(m.nodes.leaf(below(uint(size)*8)), v.t)
	}
	return mem.replace(cell{off: lo, size: size, v: v, sure: true}, m.nodes)
}

// fill makes the words of scratch memory in a range explicit before some of them change.
func (m *machine) fill(mem memory, obj int32, at place) memory {
	out := mem
	for _, gap := range mem.gaps(at.off, at.size) {
		gap.v = number(m.wordOf(obj, gap.off, gap.size), fromPacket)
		out = out.replace(gap, m.nodes)
	}
	return out
}

// writeMemory writes to a map that is no register array.
func (m *machine) writeMemory(s *state, ptr value, size int, v value) {
	a := m.env.arrays[ptr.obj]
	m.used(ptr.obj, false, true)
	switch a.kind {
	case Scratch:
		i := m.scratchNumber(ptr.obj)
		m.checkVector(s, ptr, size)
		s.scratch[i] = m.writeCells(s, s.scratch[i], ptr, size, v, place{scratch: true, obj: i})
	case Counters:
		if v.sum != (sum{ptr.obj + 1, ptr.n}) {
			m.fail(s.pc, a, 1, FlowState, "a counter is set to something that is not its old value plus a number")
		}
	case Budget:
		if v.t.from&packet != 0 {
			m.fail(s.pc, a, 1, FlowState, "a word of the budget is set to something that does not come from the budget")
		}
	case Random:
		if v.t.from&packet != 0 || v.t.from&^s.control.from != 0 { // whether it moves on may depend on registers, where to may not
			m.fail(s.pc, a, 1, FlowState, "the state of a generator is set to something that does not come from generators alone")
		}
	default:
		m.refuseWrite(s, a)
	}
}

func (m *machine) refuseWrite(s *state, a *array) {
	switch a.kind {
	case Table:
		m.fail(s.pc, a, 1, FlowState, "a table is written: it is read-only to programs")
	case Untagged:
		m.fail(s.pc, a, 1, FlowState, "a %s without a role under the memory rules is written", a.spec.Type)
	default:
		m.fail(s.pc, a, 1, FlowState, "a map of kind %s is written", a.kind)
	}
}

// checkVector: what the entry program does not set for each packet would survive in the vector.
func (m *machine) checkVector(s *state, ptr value, size int) {
	v := &m.env.vector
	if ptr.obj != v.array || m.entry {
		return
	}
	lo, hi := s.reach(ptr)
	if v.mayWrite(lo, hi-lo+size) || v.coin.covers(lo, hi-lo+size) && m.env.coinSeeded {
		return
	}
	m.fail(s.pc, m.env.arrays[ptr.obj], 1, FlowState,
		"a word of the vector is written that the entry program does not set again for the next packet")
}

func (v *vector) mayWrite(off, size int) bool {
	for _, w := range v.writable {
		if w.covers(off, size) {
			return true
		}
	}
	return false
}

// keepSecret: what userspace alone may read back must not decide anything in the data plane.
func (m *machine) keepSecret(s *state, t taint, obj int32, form form) {
	leak := t.from & m.env.secrets
	if form == formMemory || form == formElement {
		leak &^= m.env.arrays[obj].bit
	}
	m.refuseSecret(s, leak, "is stored elsewhere")
}

func (m *machine) refuseSecret(s *state, leak set, how string) {
	for _, a := range m.env.arrays {
		if a.bit&leak != 0 {
			m.fail(s.pc, a, 1, FlowState, "what was read from it %s: only userspace reads %s back", how, a.kind)
		}
	}
}

// atomic interprets the operations that the kernel does in one piece.
func (m *machine) atomic(s *state, in *insn) {
	operation := in.OpCode.AtomicOp()
	switch operation {
	case loadAcquire:
		m.load(s, in, in.Src, in.Dst)
		return
	case storeRelease:
		m.store(s, in, s.regs[in.Src])
		return
	}
	ptr := m.displace(s.regs[in.Dst], in)
	size := in.OpCode.Size().Sizeof()
	old := m.exchange(s, ptr, size, operation, s.regs[in.Src])
	switch {
	case operation == asm.CmpXchg:
		m.setReg(s, asm.R0, old)
	case operation&fetches != 0:
		m.setReg(s, in.Src, old)
	}
}

// Bits of asm.AtomicOp that the package keeps to itself.
const (
	fetches      asm.AtomicOp = 0x0000_0100
	loadAcquire  asm.AtomicOp = 0x0001_0000
	storeRelease asm.AtomicOp = 0x0001_1000
)

// exchange is one atomic operation; it returns what was in the word.
func (m *machine) exchange(s *state, ptr value, size int, operation asm.AtomicOp, v value) value {
	if ptr.form == formElement {
		m.markAtomic(ptr.obj)
		m.keepSecret(s, v.t.with(s.control), ptr.obj, ptr.form)
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, true, true, v.t.with(s.control)))
		old := number(m.nodes.leaf(below(uint(size)*8)), ptr.t)
		old.t.from |= m.env.arrays[ptr.obj].bit | packet
		return old
	}
	old := m.read(s, ptr, size)
	if ptr.form == formMemory {
		m.markAtomic(ptr.obj)
	}
	result := number(m.nodes.leaf(below(uint(size)*8)), old.t.with(v.t))
	if operation == asm.AddAtomic || operation == asm.FetchAdd {
		result.sum = old.sum
	}
	m.write(s, ptr, size, result)
	return old
}

func (m *machine) markAtomic(obj int32) { m.uses[obj].atomic = true }
