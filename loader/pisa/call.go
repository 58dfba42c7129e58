package pisa

import (
	"math"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

const maxFrames = 16 // the kernel's limit is 8

// call interprets a call of a helper, of a function of the program, or of a kernel function.
func (m *machine) call(s *state, in *insn) bool {
	switch {
	case in.IsFunctionCall():
		return m.enter(s, in.target, s.pc+1, false)
	case in.IsBuiltinCall():
		return m.helper(s, in)
	}
	m.kernelFunction(s, in)
	return true
}

// enter begins a function. back is where its caller goes on.
func (m *machine) enter(s *state, target, back int, loop bool) bool {
	if len(s.frames) >= maxFrames {
		m.fail(s.pc, nil, 2, Unfollowed, "calls are nested deeper than %d", maxFrames)
		return false
	}
	f := frame{back: back, loop: loop, saved: new([10]value)}
	copy(f.saved[1:], s.regs[1:10])
	s.frames = append(slices.Clone(s.frames), f)
	s.regs[0] = value{}
	for r := asm.R6; r <= asm.R9; r++ {
		s.regs[r] = value{}
	}
	s.regs[10] = m.frameTop(s.depth())
	s.pc = target
	return true
}

// result ends a call.
func (m *machine) result(s *state, v value) {
	m.clobber(s)
	m.setReg(s, asm.R0, v)
	if len(s.regions) > 0 {
		for r := 1; r <= 5; r++ {
			m.noteReg(s, r)
		}
	}
	m.advance(s, s.pc+1)
}

// helper interprets a helper call.
func (m *machine) helper(s *state, in *insn) bool {
	fn := asm.BuiltinFunc(in.Constant)
	h, ok := helpers[fn]
	if !ok || h.types != nil && !slices.Contains(h.types, m.prog.hook) {
		m.refuse(s, refusedHelpers[fn], "%s is not on the list of what %s programs may call", helperName(fn), m.prog.hook)
		m.result(s, m.refused())
		return true
	}
	switch fn {
	case asm.FnMapLookupElem:
		m.lookup(s)
	case asm.FnMapUpdateElem:
		m.update(s)
	case asm.FnMapPeekElem:
		return m.peek(s)
	case asm.FnTailCall:
		m.tailCall(s)
	case asm.FnRingbufOutput, asm.FnRingbufReserve, asm.FnPerfEventOutput:
		m.report(s, fn)
	case asm.FnKtimeGetNs:
		now := m.nodes.leaf(anything)
		now.clock = true
		m.result(s, number(now, fromPacket))
	case asm.FnGetPrandomU32: // of no packet and no memory
		n := m.nodes.leaf(below(32))
		n.random = true
		m.result(s, number(n, taint{from: chance}))
	case asm.FnLoop, asm.FnForEachMapElem:
		return m.loopHelper(s, in, fn)
	default:
		m.plainHelper(s, h, helperName(fn))
	}
	return true
}

// plainHelper: the result, and what is written, depend on all arguments and on the memory that they point to.
func (m *machine) plainHelper(s *state, h helper, name string) {
	t := m.argumentTaint(s, len(h.args)).with(s.control).with(s.outside)
	out := asm.Register(0)
	for i, role := range h.args {
		r := asm.R1 + asm.Register(i)
		switch role {
		case reads:
			t = t.with(m.handed(s, r))
		case writes:
			out = r
		}
	}
	m.refuseSecret(s, t.from&m.env.secrets, "is handed to "+name)
	if h.packet {
		m.refuseAnswer(s, t.from, 0, "a byte of the packet")
		s.outside = s.outside.with(t)
	}
	t = t.with(fromPacket)
	if out == 0 {
		m.result(s, number(m.nodes.leaf(anything), t))
		return
	}
	m.filled(s, out, m.lengthOf(s, out+1), h.fails, t)
}

// errorCodes are what helpers return that return 0 or an error.
var errorCodes = span{math.MaxUint64 - 4094, math.MaxUint64}

// filled ends the call of a helper that writes memory, unless it fails.
func (m *machine) filled(s *state, out asm.Register, length span, fails failure, t taint) {
	ptr := s.regs[out]
	if fails == leavesOld {
		failed := s.clone()
		m.result(failed, number(m.nodes.leaf(errorCodes), t))
		m.forks = append(m.forks, failed)
	}
	m.fill(s, ptr, length, t)
	if fails == leavesOld {
		m.result(s, number(m.nodes.number(0), t))
		return
	}
	m.result(s, number(m.nodes.leaf(anything), t))
}

// handed is what memory that is handed over to be read depends on, with its length in the next argument.
func (m *machine) handed(s *state, r asm.Register) taint {
	length := m.lengthOf(s, r+1)
	if s.regs[r].isNumber() && s.regs[r].n.is(0) || length.hi == 0 {
		return taint{}
	}
	return m.readRange(s, s.regs[r], int(length.hi))
}

const farthest = 1 << 20 // bytes that are followed of a memory whose length is not known

// lengthOf is the number of bytes that an argument says.
func (m *machine) lengthOf(s *state, r asm.Register) span {
	length := s.facts.spanOf(m.asNumber(s.regs[r]))
	length.hi = min(length.hi, farthest)
	length.lo = min(length.lo, length.hi)
	return length
}

// readRange reads memory of any length and returns what it depends on.
func (m *machine) readRange(s *state, ptr value, size int) taint {
	lo, hi := s.reach(ptr)
	switch {
	case ptr.form == formStack:
		return m.cellTaint(s.frames[ptr.obj].stack, lo, hi-lo+size).with(ptr.t)
	case ptr.form == formElement:
		m.touchElement(s, ptr, touch{pc: s.pc, read: true, off: -1, size: 8})
		return taint{from: m.env.arrays[ptr.obj].bit | packet}.with(ptr.t)
	case ptr.form == formMemory && m.env.arrays[ptr.obj].kind == Scratch:
		m.used(ptr.obj, true, false)
		mem := s.scratch[m.scratchNumber(ptr.obj)]
		m.checkStale(s, ptr.obj, mem, lo, hi-lo+size)
		t := m.cellTaint(mem, lo, hi-lo+size)
		if !m.entry {
			t.from &^= stale // said already, or a header
		}
		return t.with(fromPacket)
	}
	return m.read(s, ptr, size).t.with(ptr.t)
}

// cellTaint is what bytes of a memory depend on.
func (m *machine) cellTaint(mem memory, off, size int) (t taint) {
	from, to := mem.around(off, size)
	for _, c := range mem[from:to] {
		t = t.with(c.v.t)
	}
	if !mem.sure(off, size) {
		t.from |= stale
	}
	return t
}

func (m *machine) argumentTaint(s *state, args int) taint {
	var t taint
	for r := 1; r <= args; r++ {
		t = t.with(s.regs[r].t)
	}
	return t
}

// fill is what a helper does to memory that it writes: all of it up to the least length, and perhaps up to the largest.
func (m *machine) fill(s *state, ptr value, length span, t taint) {
	switch {
	case ptr.form == formElement:
		m.fail(s.pc, m.env.arrays[ptr.obj], 2, Unfollowed, "its element is handed to a helper that writes it")
	case ptr.form == formStack:
		f := &s.frames[ptr.obj]
		f.stack = m.overwrite(s, f.stack, ptr, length, place{obj: int(ptr.obj)}, t)
	case ptr.form == formMemory && m.env.arrays[ptr.obj].kind == Scratch:
		i := m.scratchNumber(ptr.obj)
		m.used(ptr.obj, false, true)
		m.checkVector(s, ptr, int(length.hi), t)
		lo, hi := s.reach(ptr)
		all := m.fillGaps(s.scratch[i], ptr.obj, place{off: lo, size: hi - lo + int(length.hi)})
		s.scratch[i] = m.overwrite(s, all, ptr, length, place{scratch: true, obj: i}, t)
	case ptr.form == formMemory:
		m.refuseWrite(s, m.env.arrays[ptr.obj])
	case ptr.form != formRecord:
		m.fail(s.pc, nil, 2, Unfollowed, "a helper writes memory that cannot be followed")
	}
}

func (m *machine) overwrite(s *state, mem memory, ptr value, length span, at place, t taint) memory {
	lo, hi := s.reach(ptr)
	at.off, at.size = lo, hi-lo+int(length.hi)
	m.noteCell(s, at)
	if at.size == 0 {
		return mem
	}
	mem = mem.blur(at.off, at.size, t, m.nodes)
	if lo != hi || length.lo == 0 {
		return mem
	}
	v := number(m.nodes.leaf(anything), t)
	return mem.replace(cell{off: lo, size: int(length.lo), v: v, sure: true}, m.nodes)
}

// mapArgument is the map in a register, nil when it is none that is known.
func (m *machine) mapArgument(s *state, r asm.Register) *array {
	if v := s.regs[r]; v.form == formMap {
		return m.env.arrays[v.obj]
	}
	return nil
}

// report: helpers that hand a record to userspace. What is in it decides nothing here; whether there was room may be counted.
func (m *machine) report(s *state, fn asm.BuiltinFunc) {
	r, data := asm.R1, asm.R2
	if fn == asm.FnPerfEventOutput {
		r, data = asm.R2, asm.R4
	}
	ring := m.mapArgument(s, r)
	if ring == nil || ring.kind != Ring {
		m.fail(s.pc, ring, 1, FlowState, "a report does not go into a ring")
		m.result(s, value{form: formLost})
		return
	}
	obj := s.regs[r].obj
	m.used(obj, false, true)
	answer := fromPacket.with(taint{from: ring.bit})
	if fn == asm.FnRingbufReserve {
		m.result(s, m.maybe(value{form: formRecord, obj: obj, n: m.nodes.number(0), t: answer}))
		return
	}
	m.handed(s, data)
	m.result(s, number(m.nodes.leaf(anything), answer))
}

// maybe makes a pointer that may be NULL.
func (m *machine) maybe(v value) value {
	m.nulls++
	v.null = m.nulls
	return v
}

// isMapOfMaps says whether a lookup gives another map.
func isMapOfMaps(t ebpf.MapType) bool { return t == ebpf.ArrayOfMaps || t == ebpf.HashOfMaps }
