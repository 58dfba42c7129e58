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
	case formNumber:
		m.writePacket(s, ptr, v.t)
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
			mem = m.fillGaps(mem, m.scratch[at.obj], at)
		}
		return mem.blur(lo, hi-lo+size, v.t.with(ptr.t), m.nodes)
	}
	switch {
	case v.isNumber():
		v.n = m.nodes.truncate(v.n, uint(size)*8)
		if size != 8 || at.scratch {
			v.base = nothing
		}
	case v.isPointer() && (size != 8 || at.scratch):
		v = number(m.nodes.leaf(below(uint(size)*8)), v.t)
	case !v.isPointer():
		v = number(m.nodes.leaf(below(uint(size)*8)), v.t)
	}
	return mem.replace(cell{off: lo, size: size, v: v, sure: true}, m.nodes)
}

// fillGaps makes the words of scratch memory in a range explicit before some of them change.
func (m *machine) fillGaps(mem memory, obj int32, at place) memory {
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
		t := v.t
		if v.isNumber() && v.n.clock && m.isClock(s, ptr, size) { // whoever asks first reads it, for all behind
			t = taint{}
		}
		m.checkVector(s, ptr, size, t)
		s.scratch[i] = m.writeCells(s, s.scratch[i], ptr, size, v, place{scratch: true, obj: i})
	case Counters:
		if v.sum != (sum{ptr.obj + 1, ptr.n}) {
			m.fail(s.pc, a, 1, FlowState, "a counter is set to something that is not its old value plus a number")
		}
	case Budget:
		m.storeBudget(s, a, ptr, size, v)
	case Random:
		m.storeRandom(s, a, ptr, size, v)
	default:
		m.refuseWrite(s, a)
	}
}

// writePacket: a number that is written into the packet may be read back, or decide what another program does.
func (m *machine) writePacket(s *state, ptr value, t taint) {
	if ptr.base != inPacket {
		m.fail(s.pc, nil, 1, Unlisted, "a store that goes neither to the packet nor to memory of the program")
	}
	m.refuseAnswer(s, t.from, 0, "a byte of the packet")
	s.outside = s.outside.with(t)
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
func (m *machine) checkVector(s *state, ptr value, size int, t taint) {
	v := &m.env.vector
	if ptr.obj != v.array {
		return
	}
	lo, hi := s.reach(ptr)
	size += hi - lo
	pass := v.pass >= 0 && lo == v.pass && size == 1
	switch {
	case pass:
		m.deferPass(s)
		fallthrough
	case v.carry.covers(lo, size): // what the second pass alone sees
		m.refuseAnswer(s, t.from, m.env.budgets, "what the second pass finds")
	default:
		m.refuseAnswer(s, t.from, 0, "a word of the vector")
	}
	if m.entry || v.mayWrite(lo, size) || v.coin.covers(lo, size) && m.env.coinSeeded {
		return
	}
	m.fail(s.pc, m.env.arrays[ptr.obj], 1, FlowState,
		"a word of the vector is written that the entry program does not set again for the next packet")
}

// isClock says whether a pointer is to phv->now.
func (m *machine) isClock(s *state, ptr value, size int) bool {
	v := &m.env.vector
	lo, hi := s.reach(ptr)
	return ptr.obj == v.array && lo == hi && v.now == word{lo, size}
}

func (v *vector) mayWrite(off, size int) bool {
	for _, w := range v.writable {
		if w.covers(off, size) {
			return true
		}
	}
	return false
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
	if adds := operation == asm.AddAtomic || operation == asm.FetchAdd; adds && v.t.from&m.env.secrets == 0 {
		result.sum = old.sum
	}
	m.write(s, ptr, size, result)
	return old
}

func (m *machine) markAtomic(obj int32) { m.uses[obj].atomic = true }
