package pisa

import (
	"slices"
	"strings"

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

// harmlessKernel are prefixes of kernel functions that keep no state between packets.
var harmlessKernel = []string{"bpf_dynptr_", "bpf_xdp_metadata_", "bpf_cast_to_kern_ctx", "bpf_rdonly_cast", "bpf_rcu_read_"}

func (m *machine) kernelFunction(s *state, in *insn) {
	const arguments = 5
	name := in.Reference()
	harmless := slices.ContainsFunc(harmlessKernel, func(p string) bool { return strings.HasPrefix(name, p) })
	if !harmless {
		m.fail(s.pc, nil, 1, FlowState, "kernel function %q may keep state between packets", name)
	}
	t := m.argumentTaint(s, arguments)
	m.refuseSecret(s, t.from&m.env.secrets, "is handed to the kernel")
	t = t.with(m.passMemory(s, arguments, true))
	s.outside = s.outside.with(t)
	m.result(s, number(m.nodes.leaf(anything), t.with(fromPacket)))
}

// enter begins a function. back is where its caller goes on.
func (m *machine) enter(s *state, target, back int, loop bool) bool {
	if len(s.frames) >= maxFrames {
		m.fail(s.pc, nil, 2, Unfollowed, "calls are nested deeper than %d", maxFrames)
		return false
	}
	f := frame{back: back, loop: loop}
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
	if m.mapHelper(s, fn) {
		return true
	}
	switch fn {
	case asm.FnTailCall:
		m.tailCall(s)
	case asm.FnRingbufReserve, asm.FnRingbufOutput, asm.FnPerfEventOutput, asm.FnRingbufReserveDynptr:
		m.report(s, in, fn)
	case asm.FnGetPrandomU32: // of no packet and no memory
		m.result(s, number(m.nodes.leaf(below(32)), taint{}))
	case asm.FnSkStorageGet, asm.FnTaskStorageGet, asm.FnInodeStorageGet, asm.FnCgrpStorageGet, asm.FnGetLocalStorage:
		m.fail(s.pc, m.mapArgument(s, asm.R1), 1, FlowState, "local storage of the kernel keeps state between packets")
		m.result(s, number(m.nodes.leaf(anything), fromPacket))
	default:
		if loopsOver(in) {
			return m.loopHelper(s, in, fn)
		}
		m.plainHelper(s, in, fn)
	}
	return true
}

// plainHelper: whatever memory is handed over may be read, and written unless the helper is known not to.
func (m *machine) plainHelper(s *state, in *insn, fn asm.BuiltinFunc) {
	args := arity(in.Constant)
	t := m.argumentTaint(s, args)
	m.refuseSecret(s, t.from&m.env.secrets, "is handed to a helper")
	if fn == asm.FnKptrXchg {
		m.fail(s.pc, nil, 1, FlowState, "a pointer of the kernel's is kept in a map")
	}
	for r := 1; r <= args; r++ {
		if s.regs[r].form == formMap && !readsMap[fn] {
			m.fail(s.pc, m.env.arrays[s.regs[r].obj], 1, FlowState, "the map is handed to %s, which may change it", fn)
		}
	}
	if t = t.with(m.passMemory(s, args, !readsOnly[fn])); args > 0 {
		s.outside = s.outside.with(t) // it may have gone into the packet
	}
	m.result(s, number(m.nodes.leaf(anything), t.with(fromPacket)))
}

func (m *machine) argumentTaint(s *state, args int) taint {
	var t taint
	for r := 1; r <= args; r++ {
		t = t.with(s.regs[r].t)
	}
	return t
}

// passMemory accounts for pointers among the first arguments of a call that leaves the program, and returns what
// arguments and memory depend on: so do the result and what is written.
func (m *machine) passMemory(s *state, args int, writes bool) taint {
	t := m.argumentTaint(s, args).with(s.control).with(s.outside)
	for r := 1; r <= args; r++ {
		t = t.with(m.contents(s, s.regs[r], m.sizeAfter(s, r, args)))
	}
	for r := 1; r <= args; r++ {
		ptr := s.regs[r]
		if ptr.isPointer() && ptr.n != nil {
			m.handOver(s, ptr, m.sizeAfter(s, r, args), writes, t)
		}
	}
	return t
}

// contents is what the memory behind a pointer depends on.
func (m *machine) contents(s *state, ptr value, size int) (t taint) {
	var mem memory
	switch {
	case ptr.form == formStack:
		mem = s.frames[ptr.obj].stack
	case ptr.form == formMemory && m.env.arrays[ptr.obj].kind == Scratch:
		mem = s.scratch[m.scratchNumber(ptr.obj)]
	case ptr.form == formMemory || ptr.form == formElement:
		return taint{from: m.env.arrays[ptr.obj].bit}
	default:
		return taint{}
	}
	lo, hi := s.reach(ptr)
	if size < 0 {
		size = 1 << 20 // to the end
	}
	from, to := mem.around(lo, hi-lo+size)
	for _, c := range mem[from:to] {
		t = t.with(c.v.t)
	}
	return t
}

// sizeAfter is the length that the next argument gives to a memory; -1 when it is not a known number.
func (m *machine) sizeAfter(s *state, r, args int) int {
	if r == args || !s.regs[r+1].isNumber() {
		return -1
	}
	length := s.facts.spanOf(s.regs[r+1].n)
	if length.hi == 0 || length.hi > 1<<20 {
		return -1
	}
	return int(length.hi)
}

func (m *machine) handOver(s *state, ptr value, size int, writes bool, t taint) {
	switch {
	case ptr.form == formElement && writes:
		m.fail(s.pc, m.env.arrays[ptr.obj], 2, Unfollowed, "its element is handed to a helper that may write it")
	case ptr.form == formElement:
		m.touchElement(s, ptr, touch{pc: s.pc, read: true, off: -1, size: 8})
	case ptr.form == formStack && writes:
		f := &s.frames[ptr.obj]
		f.stack = m.overwrite(s, f.stack, ptr, size, place{obj: int(ptr.obj)}, 0, t)
	case ptr.form == formMemory:
		m.handOverMap(s, ptr, size, writes, t)
	}
}

func (m *machine) handOverMap(s *state, ptr value, size int, writes bool, t taint) {
	a := m.env.arrays[ptr.obj]
	m.used(ptr.obj, true, writes && a.kind == Scratch)
	switch {
	case !writes || a.kind == Constant:
	case a.kind == Scratch:
		i := m.scratchNumber(ptr.obj)
		m.checkVector(s, ptr, max(size, 1))
		s.scratch[i] = m.overwrite(s, s.scratch[i], ptr, size, place{scratch: true, obj: i}, int(a.spec.ValueSize), t)
	case a.kind == Table && a.spec.Flags&readOnlyProgram != 0: // the verifier refuses the write
	default:
		m.refuseWrite(s, a)
	}
}

const readOnlyProgram = 1 << 7 // BPF_F_RDONLY_PROG

// overwrite is what a helper does to memory that it fills. end is where the memory ends.
func (m *machine) overwrite(s *state, mem memory, ptr value, size int, at place, end int, t taint) memory {
	lo, hi := s.reach(ptr)
	if size < 0 {
		size = max(end-lo, 1)
	}
	if lo != hi || size > 1<<12 {
		size = min(size, 1<<12)
		at.off, at.size = lo, hi-lo+size
		m.noteCell(s, at)
		return mem.blur(lo, hi-lo+size, t.with(fromPacket), m.nodes)
	}
	at.off, at.size = lo, size
	m.noteCell(s, at)
	v := number(m.nodes.leaf(anything), t.with(fromPacket))
	return mem.replace(cell{off: lo, size: size, v: v, sure: true}, m.nodes)
}

// mapArgument is the map in a register, nil when it is none that is known.
func (m *machine) mapArgument(s *state, r asm.Register) *array {
	if v := s.regs[r]; v.form == formMap {
		return m.env.arrays[v.obj]
	}
	return nil
}

// report: helpers that hand a record to userspace. Their data argument is only read.
func (m *machine) report(s *state, in *insn, fn asm.BuiltinFunc) {
	r := asm.R1
	if fn == asm.FnPerfEventOutput {
		r = asm.R2
	}
	ring := s.regs[r]
	if a := m.mapArgument(s, r); a == nil || a.kind != Ring {
		m.fail(s.pc, a, 1, FlowState, "a report does not go into a ring")
	} else {
		m.used(ring.obj, false, true)
	}
	m.passMemory(s, arity(in.Constant), fn == asm.FnRingbufReserveDynptr)
	if fn == asm.FnRingbufReserve && ring.form == formMap {
		m.result(s, m.maybe(value{form: formRecord, obj: ring.obj, n: m.nodes.number(0)}))
		return
	}
	m.result(s, number(m.nodes.leaf(anything), fromPacket))
}

// maybe makes a pointer that may be NULL.
func (m *machine) maybe(v value) value {
	m.nulls++
	v.null = m.nulls
	return v
}

// isMapOfMaps says whether a lookup gives another map.
func isMapOfMaps(t ebpf.MapType) bool { return t == ebpf.ArrayOfMaps || t == ebpf.HashOfMaps }
