package machine

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

const maxFrames = 16 // the kernel's limit is 8

// call interprets a call of a helper, of a function of the program, or of a kernel function.
func (m *Machine) call(s *state.State, in *code.Insn) bool {
	switch {
	case in.IsFunctionCall():
		return m.enter(s, in.Target, s.PC+1, false)
	case in.IsBuiltinCall():
		return m.helper(s, in)
	}
	m.kernelFunction(s, in)
	return true
}

// enter begins a function. back is the caller's next instruction.
func (m *Machine) enter(s *state.State, target, back int, loop bool) bool {
	if len(s.Frames) >= maxFrames {
		m.fail(s.PC, nil, 2, rule.Unfollowed, "calls are nested deeper than %d", maxFrames)
		return false
	}
	f := state.Frame{Back: back, Loop: loop, Saved: new([10]value.Value)}
	copy(f.Saved[1:], s.Regs[1:10])
	s.Frames = append(slices.Clone(s.Frames), f)
	s.Regs[0] = value.Value{}
	for r := asm.R6; r <= asm.R9; r++ {
		s.Regs[r] = value.Value{}
	}
	s.Regs[10] = m.frameTop(s.Depth())
	s.PC = target
	return true
}

// result ends a call.
func (m *Machine) result(s *state.State, v value.Value) {
	m.clobber(s)
	m.setReg(s, asm.R0, v)
	if len(s.Regions) > 0 {
		for r := 1; r <= 5; r++ {
			m.flows.NoteReg(s, r)
		}
	}
	m.advance(s, s.PC+1)
}

// helper interprets a helper call.
func (m *Machine) helper(s *state.State, in *code.Insn) bool {
	fn := asm.BuiltinFunc(in.Constant)
	h, ok := allow.Helpers[fn]
	if !ok || h.Types != nil && !slices.Contains(h.Types, m.Prog.Hook) {
		m.refuse(s, allow.RefusedHelpers[fn], "%s is not on the list of what %s programs may call", allow.HelperName(fn), m.Prog.Hook)
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
		now := m.nodes.Leaf(expr.Anything)
		now.Clock = true
		m.result(s, value.Number(now, value.FromPacket.With(m.trace.Of(trace.Now))))
	case asm.FnGetPrandomU32: // depends on no packet and no memory
		n := m.nodes.Leaf(expr.Below(32))
		n.Random = true
		m.result(s, value.Number(n, value.Taint{From: declared.Chance}.With(m.trace.Of(trace.Random))))
	case asm.FnLoop, asm.FnForEachMapElem:
		return m.loopHelper(s, in, fn)
	default:
		m.plainHelper(s, h, allow.HelperName(fn))
	}
	return true
}

// plainHelper: the result and the written memory depend on all arguments and on the memory that they point to.
func (m *Machine) plainHelper(s *state.State, h allow.Helper, name string) {
	t := m.argumentTaint(s, len(h.Args)).With(s.Control).With(s.Outside)
	out := asm.Register(0)
	for i, role := range h.Args {
		r := asm.R1 + asm.Register(i)
		switch role {
		case allow.Reads:
			t = t.With(m.handed(s, r))
		case allow.Writes:
			out = r
		case allow.Copied:
			m.copyKernel(s, s.Regs[r], m.lengthOf(s, out+1))
		}
	}
	m.refuseSecret(s, t.From.And(m.env.Secrets), "is handed to "+name)
	if h.Packet {
		m.refuseAnswer(s, t.From, declared.Set{}, "a byte of the packet")
		s.Outside = s.Outside.With(t)
	}
	t = t.With(value.FromPacket)
	if out == 0 {
		m.result(s, value.Number(m.nodes.Leaf(expr.Anything), t))
		return
	}
	m.filled(s, out, m.lengthOf(s, out+1), h.Fails, t)
}

// errorCodes is the range of results of helpers that return 0 or an error.
var errorCodes = expr.Span{Lo: math.MaxUint64 - 4094, Hi: math.MaxUint64}

// filled ends the call of a helper that writes memory, unless it fails.
func (m *Machine) filled(s *state.State, out asm.Register, length expr.Span, fails allow.Failure, t value.Taint) {
	ptr := s.Regs[out]
	if fails == allow.LeavesOld {
		failed := s.Clone()
		m.result(failed, value.Number(m.nodes.Leaf(errorCodes), t))
		m.forks = append(m.forks, failed)
	}
	m.fill(s, ptr, length, t)
	if fails == allow.LeavesOld {
		m.result(s, value.Number(m.nodes.Number(0), t))
		return
	}
	m.result(s, value.Number(m.nodes.Leaf(expr.Anything), t))
}

// handed is the taint of memory that a helper reads through a pointer argument; its length is in the next argument.
func (m *Machine) handed(s *state.State, r asm.Register) value.Taint {
	length := m.lengthOf(s, r+1)
	if s.Regs[r].IsNumber() && s.Regs[r].N.Is(0) || length.Hi == 0 {
		return value.Taint{}
	}
	return m.readRange(s, s.Regs[r], int(length.Hi))
}

const farthest = 1 << 20 // limit, in bytes, of a range whose length is not known

// lengthOf is the range of the length in bytes that an argument holds.
func (m *Machine) lengthOf(s *state.State, r asm.Register) expr.Span {
	length := s.Facts.SpanOf(m.asNumber(s.Regs[r]))
	length.Hi = min(length.Hi, farthest)
	length.Lo = min(length.Lo, length.Hi)
	return length
}

// readRange reads memory of any length and returns its taint.
func (m *Machine) readRange(s *state.State, ptr value.Value, size int) value.Taint {
	ptr = m.single(s, ptr, size)
	lo, hi := s.Reach(ptr)
	switch {
	case ptr.Form == value.FormStack:
		return m.cellTaint(s.Frames[ptr.Obj].Stack, lo, hi-lo+size).With(ptr.T)
	case ptr.Form == value.FormElement:
		m.touchElement(s, ptr, touch{pc: s.PC, read: true, off: -1, size: 8})
		return value.Taint{From: m.env.Arrays[ptr.Obj].Bit.Or(declared.Packet)}.With(ptr.T)
	case ptr.Form == value.FormMemory && m.env.Arrays[ptr.Obj].Kind == declared.Scratch:
		m.used(ptr.Obj, true, false)
		mem := s.Scratch[m.scratchNumber(ptr.Obj)]
		m.checkStale(s, ptr.Obj, mem, lo, hi-lo+size)
		t := m.cellTaint(mem, lo, hi-lo+size)
		if !m.entry {
			t.From = t.From.Without(declared.Stale) // reported already, or a header
		}
		return t.With(value.FromPacket)
	}
	return m.read(s, ptr, size).T.With(ptr.T)
}

// cellTaint is the taint of bytes of a memory.
func (m *Machine) cellTaint(mem value.Memory, off, size int) (t value.Taint) {
	from, to := mem.Around(off, size)
	for _, c := range mem[from:to] {
		t = t.With(c.V.T)
	}
	if !mem.Sure(off, size) {
		t.From = t.From.Or(declared.Stale)
	}
	return t
}

func (m *Machine) argumentTaint(s *state.State, args int) value.Taint {
	var t value.Taint
	for r := 1; r <= args; r++ {
		t = t.With(s.Regs[r].T)
	}
	return t
}

// fill writes memory as a helper does: certainly up to the least length, and perhaps up to the largest.
func (m *Machine) fill(s *state.State, ptr value.Value, length expr.Span, t value.Taint) {
	switch {
	case ptr.Form == value.FormElement:
		m.fail(s.PC, m.env.Arrays[ptr.Obj], 2, rule.Unfollowed, "its element is handed to a helper that writes it")
	case ptr.Form == value.FormStack:
		f := &s.Frames[ptr.Obj]
		f.Stack = m.overwrite(s, f.Stack, ptr, length, state.Place{Obj: int(ptr.Obj)}, t)
	case ptr.Form == value.FormMemory && m.env.Arrays[ptr.Obj].Kind == declared.Scratch:
		i := m.scratchNumber(ptr.Obj)
		m.used(ptr.Obj, false, true)
		m.checkVector(s, ptr, int(length.Hi), t)
		lo, hi := s.Reach(ptr)
		all := m.fillGaps(s.Scratch[i], ptr.Obj, state.Place{Off: lo, Size: hi - lo + int(length.Hi)})
		s.Scratch[i] = m.overwrite(s, all, ptr, length, state.Place{Scratch: true, Obj: i}, t)
	case ptr.Form == value.FormMemory:
		m.refuseWrite(s, m.env.Arrays[ptr.Obj])
	case ptr.Form != value.FormRecord:
		m.fail(s.PC, nil, 2, rule.Unfollowed, "a helper writes memory that cannot be followed")
	}
}

func (m *Machine) overwrite(s *state.State, mem value.Memory, ptr value.Value, length expr.Span, at state.Place, t value.Taint) value.Memory {
	lo, hi := s.Reach(ptr)
	at.Off, at.Size = lo, hi-lo+int(length.Hi)
	m.flows.NoteCell(s, at)
	if at.Size == 0 {
		return mem
	}
	mem = mem.Blur(at.Off, at.Size, t, m.nodes)
	if lo != hi || length.Lo == 0 {
		return mem
	}
	v := value.Number(m.nodes.Leaf(expr.Anything), t)
	return mem.Replace(value.Cell{Off: lo, Size: int(length.Lo), V: v, Sure: true}, m.nodes)
}

// mapArgument is the map in a register, nil when the register holds none or an unknown one.
func (m *Machine) mapArgument(s *state.State, r asm.Register) *declared.Array {
	if v := s.Regs[r]; v.Form == value.FormMap {
		return m.env.Arrays[v.Obj]
	}
	return nil
}

// report interprets helpers that pass a record to userspace. Its content may be anything, since no packet reads it; the result (was the
// ring full?) may only be counted.
func (m *Machine) report(s *state.State, fn asm.BuiltinFunc) {
	r, data := asm.R1, asm.R2
	if fn == asm.FnPerfEventOutput {
		r, data = asm.R2, asm.R4
	}
	ring := m.mapArgument(s, r)
	if ring == nil || ring.Kind != declared.Ring {
		m.fail(s.PC, ring, 1, rule.FlowState, "a report does not go into a ring")
		m.result(s, value.Value{Form: value.FormLost})
		return
	}
	obj := s.Regs[r].Obj
	m.used(obj, false, true)
	answer := value.FromPacket.With(value.Taint{From: ring.Bit})
	if fn == asm.FnRingbufReserve {
		m.result(s, m.maybe(value.Value{Form: value.FormRecord, Obj: obj, N: m.nodes.Number(0), T: answer}))
		return
	}
	m.handed(s, data)
	m.result(s, value.Number(m.nodes.Leaf(expr.Anything), answer))
}

// maybe makes a pointer that may be NULL.
func (m *Machine) maybe(v value.Value) value.Value {
	m.nulls++
	v.Null = m.nulls
	return v
}
