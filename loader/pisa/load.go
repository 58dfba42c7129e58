package pisa

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// load interprets dst = *(size *)(src + offset).
func (m *machine) load(s *state, in *insn, src, dst asm.Register) {
	size := in.OpCode.Size().Sizeof()
	ptr := m.displace(s.regs[src], in)
	m.refuseSecret(s, ptr.t.from&m.env.secrets, "is used as an index")
	v := m.read(s, ptr, size)
	from := ptr.t.from
	if ptr.form == formMemory && m.env.arrays[ptr.obj].own() {
		from &^= packet // there is one element for all packets of this slot and CPU
	}
	v.t.from |= from
	v.t.product |= ptr.t.product
	if in.OpCode.Mode() == asm.MemSXMode && v.isNumber() {
		v = number(m.nodes.extend(v.n, uint(size)*8), v.t)
	}
	m.setReg(s, dst, v)
}

// displace adds an instruction's offset to a pointer.
func (m *machine) displace(ptr value, in *insn) value {
	if ptr.n == nil || !ptr.isPointer() && ptr.base == nothing {
		return ptr
	}
	off := m.nodes.number(uint64(int64(in.Offset)))
	if in.core {
		off = m.nodes.leaf(anything)
	}
	ptr.n = m.nodes.binary(opAdd, ptr.n, off)
	return ptr
}

// reach is the range of offsets that a pointer may have, as signed numbers.
func (s *state) reach(ptr value) (lo, hi int) {
	const far = 1 << 30 // no map value is larger
	if ptr.n == nil {
		return -far, far
	}
	from, to := s.facts.spanOf(ptr.n).signed()
	return int(max(from, -far)), int(min(to, far))
}

// read is what is found behind a pointer.
func (m *machine) read(s *state, ptr value, size int) value {
	fresh := number(m.nodes.leaf(below(uint(size)*8)), taint{})
	switch ptr.form {
	case formNumber:
		return m.readOutside(s, ptr, size, fresh)
	case formRound:
		fresh.t = ptr.t
		return fresh
	case formRecord:
		m.fail(s.pc, m.env.arrays[ptr.obj], 1, FlowState, "a record is read: it may hold what an earlier packet reported")
		return fresh
	case formStack:
		return m.readCells(s, ptr, s.frames[ptr.obj].stack, size, fresh)
	case formElement:
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, true, false, taint{}))
		fresh.t.from = m.env.arrays[ptr.obj].bit | packet
		return fresh
	case formMemory:
		return m.readMemory(s, ptr, size, fresh)
	}
	m.fail(s.pc, nil, 2, Unfollowed, "a load whose target cannot be followed")
	return fresh
}

// readOutside reads memory that is not the program's own: the packet, its context, or configuration.
func (m *machine) readOutside(s *state, ptr value, size int, fresh value) value {
	switch ptr.base {
	case inContext:
		return m.loadContext(s, ptr, size)
	case inPacket:
		fresh.t = s.outside.with(fromPacket)
	case inConfig:
	default:
		m.fail(s.pc, nil, 1, Unlisted, "a load from memory that is neither the packet's nor the program's")
	}
	return fresh
}

// written says whether all bytes of [lo, end) that the memory behind a pointer has are written.
func (m *machine) written(mem memory, ptr value, lo, end int) bool {
	first, last := -stackSize, 0
	if ptr.form == formMemory {
		first, last = 0, int(m.env.arrays[ptr.obj].spec.ValueSize)
	}
	lo, end = max(lo, first), min(end, last)
	return mem.sure(lo, end-lo)
}

func (m *machine) touchOf(s *state, ptr value, size int, read, write bool, t taint) touch {
	lo, hi := s.reach(ptr)
	if lo != hi {
		lo = -1 // any byte
	}
	return touch{pc: s.pc, read: read, write: write, off: lo, size: size, value: t}
}

func (m *machine) readCells(s *state, ptr value, mem memory, size int, fresh value) value {
	lo, hi := s.reach(ptr)
	if lo == hi {
		v, known, sure := mem.read(lo, size, m.nodes)
		if !known {
			v = fresh
		}
		if !known && size == 8 {
			v.form = formLost // no number that may be followed, whatever was there
		}
		if !sure {
			v.t.from |= stale
		}
		return v
	}
	from, to := mem.around(lo, hi-lo+size)
	fresh.t = fresh.t.with(fromPacket)
	if !m.written(mem, ptr, lo, hi+size) {
		fresh.t.from |= stale
	}
	for _, c := range mem[from:to] {
		fresh.t = fresh.t.with(c.v.t)
		if c.v.isPointer() && size == 8 {
			fresh.form = formLost
		}
	}
	return fresh
}

// readMemory reads a map that is no register array.
func (m *machine) readMemory(s *state, ptr value, size int, fresh value) value {
	a := m.env.arrays[ptr.obj]
	m.used(ptr.obj, true, false)
	fresh.t.from = a.bit
	switch a.kind {
	case Constant:
		if n, ok := m.constant(s, a, ptr, size); ok {
			return number(n, taint{})
		}
	case Scratch:
		return m.readScratch(s, ptr, size, fresh)
	case Random:
		fresh.n.random = true
	case Counters, Budget:
		fresh.sum = sum{ptr.obj + 1, ptr.n}
	}
	return fresh
}

// constant is the value that .rodata will be loaded with.
func (m *machine) constant(s *state, a *array, ptr value, size int) (*node, bool) {
	lo, hi := s.reach(ptr)
	if lo != hi || lo < 0 || lo+size > len(a.data) {
		return nil, false
	}
	var raw [8]byte
	copy(raw[:], a.data[lo:lo+size])
	return m.nodes.number(binary.LittleEndian.Uint64(raw[:])), true
}

// number of a scratch map in machine.scratch and state.scratch.
func (m *machine) scratchNumber(obj int32) int {
	for i, o := range m.scratch {
		if o == obj {
			return i
		}
	}
	return -1
}

// readScratch: nothing in scratch memory outlives a packet, so only the packet's own words may be read: those
// of the vector, which the entry program writes, and what this very path has written.
func (m *machine) readScratch(s *state, ptr value, size int, fresh value) value {
	mem := s.scratch[m.scratchNumber(ptr.obj)]
	lo, hi := s.reach(ptr)
	m.checkStale(s, ptr.obj, mem, lo, hi-lo+size)
	v := number(nil, taint{})
	if lo != hi {
		v = m.readCells(s, ptr, mem, size, fresh)
		v.t.from &^= stale // said already
	} else if known, ok, _ := mem.read(lo, size, m.nodes); ok {
		v = known
	} else {
		v = number(m.wordOf(ptr.obj, lo, size), fromPacket)
	}
	if m.entry && !mem.sure(lo, hi-lo+size) {
		v.t.from |= stale
	}
	return v
}

// checkStale: a word of scratch memory is read that nobody has written for this packet.
func (m *machine) checkStale(s *state, obj int32, mem memory, off, size int) {
	arr := m.env.arrays[obj]
	v := &m.env.vector
	if obj != v.array {
		if !mem.sure(off, size) {
			m.fail(s.pc, arr, 1, FlowState, "scratch memory is read that this packet has not written on this path: it holds an earlier packet's")
		}
		return
	}
	if m.entry || !v.carry.overlaps(off, size) || mem.sure(off, size) {
		return
	}
	if m.secondPass(s) && v.carry.covers(off, size) {
		m.wants = append(m.wants, carryRead{s.pc, v.carryMask(off, size) &^ m.carried(s)})
		return
	}
	m.fail(s.pc, arr, 1, FlowState, "carry is read in a first pass that has not written it: it holds an earlier packet's")
}

// secondPass says whether the path has found phv->pass to be 1: this program's first pass has recirculated the packet.
func (m *machine) secondPass(s *state) bool {
	return m.env.vector.pass >= 0 && s.facts.spanOf(m.vectorWord(m.env.vector.pass)) == span{1, 1}
}

// vectorWord is what one byte of the vector held when the program began.
func (m *machine) vectorWord(off int) *node {
	return m.wordOf(m.env.vector.array, off, 1)
}
