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
	v.t.from |= ptr.t.from &^ packet
	v.t.product |= ptr.t.product
	if in.OpCode.Mode() == asm.MemSXMode && v.isNumber() {
		v = number(m.nodes.extend(v.n, uint(size)*8), v.t)
	}
	m.setReg(s, dst, v)
}

// displace adds an instruction's offset to a pointer.
func (m *machine) displace(ptr value, in *insn) value {
	if ptr.n == nil || !ptr.isPointer() {
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
	from, to := s.facts.spanOf(ptr.n).signed()
	const far = 1 << 30 // no map value is larger
	return int(max(from, -far)), int(min(to, far))
}

// read is what is found behind a pointer.
func (m *machine) read(s *state, ptr value, size int) value {
	fresh := number(m.nodes.leaf(below(uint(size)*8)), taint{})
	switch ptr.form {
	case formNumber: // packet, context or kernel: nothing of a program's own
		fresh.t = s.outside.with(fromPacket)
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
		if v, known, _ := mem.read(lo, size, m.nodes); known {
			return v
		}
		if size == 8 {
			fresh.form = formLost // no number that may be followed, whatever was there
		}
		return fresh
	}
	from, to := mem.around(lo, hi-lo+size)
	fresh.t = fresh.t.with(fromPacket)
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
	if lo != hi {
		return m.readCells(s, ptr, mem, size, fresh)
	}
	if v, known, _ := mem.read(lo, size, m.nodes); known {
		return v
	}
	return number(m.wordOf(ptr.obj, lo, size), fromPacket)
}

func (m *machine) checkStale(s *state, obj int32, mem memory, off, size int) {
	arr := m.env.arrays[obj]
	v := &m.env.vector
	if obj == v.array && (m.entry || !v.carry.overlaps(off, size) || m.secondPass(s)) {
		return
	}
	if obj == v.array && v.carry.covers(off, size) || obj != v.array {
		if _, _, sure := mem.read(off, size, m.nodes); sure {
			return
		}
	}
	if obj == v.array {
		m.fail(s.pc, arr, 1, FlowState, "carry is read in a first pass that has not written it: it holds an earlier packet's")
		return
	}
	m.fail(s.pc, arr, 1, FlowState, "scratch memory is read that this packet has not written on this path: it holds an earlier packet's")
}

// secondPass says whether the path has found phv->pass to be set.
func (m *machine) secondPass(s *state) bool {
	return m.env.vector.pass >= 0 && s.facts.spanOf(m.vectorWord(m.env.vector.pass)).lo > 0
}

// vectorWord is what one byte of the vector held when the program began.
func (m *machine) vectorWord(off int) *node {
	return m.wordOf(m.env.vector.array, off, 1)
}
