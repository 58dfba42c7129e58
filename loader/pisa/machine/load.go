package machine

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// load interprets dst = *(size *)(src + offset).
func (m *Machine) load(s *state.State, in *code.Insn, src, dst asm.Register) {
	size := in.OpCode.Size().Sizeof()
	ptr := m.displace(s.Regs[src], in)
	m.refuseSecret(s, ptr.T.From.And(m.env.Secrets), "is used as an index")
	v := value.Value{}
	if ptr.Form == value.FormNumber && ptr.Base.Kernel() {
		v = m.loadKernel(s, ptr, in, size)
	} else {
		v = m.read(s, ptr, size)
	}
	from := ptr.T.From
	if ptr.Form == value.FormMemory && m.env.Arrays[ptr.Obj].Own() {
		from = from.Without(declared.Packet) // all packets of this slot and CPU use one element
	}
	v.T.From = v.T.From.Or(from)
	v.T.Product = v.T.Product.Or(ptr.T.Product)
	if ptr.Form != value.FormElement { // a value read from an element names the element as its source; its index is recorded separately
		v.T.Named = v.T.Named.Or(ptr.T.Named)
	}
	if in.OpCode.Mode() == asm.MemSXMode && v.IsNumber() {
		v = value.Number(m.nodes.Extend(v.N, uint(size)*8), v.T)
	}
	m.setReg(s, dst, v)
}

// displace adds an instruction's offset to a pointer.
func (m *Machine) displace(ptr value.Value, in *code.Insn) value.Value {
	if ptr.N == nil || !ptr.IsPointer() && ptr.Base == value.Nothing {
		return ptr
	}
	off := m.nodes.Number(uint64(int64(in.Offset)))
	if in.Core {
		off = m.nodes.Leaf(expr.Anything)
	}
	ptr.N = m.nodes.Binary(expr.Add, ptr.N, off)
	return ptr
}

// read returns the value that a pointer refers to.
func (m *Machine) read(s *state.State, ptr value.Value, size int) value.Value {
	fresh := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), value.Taint{})
	ptr = m.single(s, ptr, size)
	switch ptr.Form {
	case value.FormNumber:
		return m.readOutside(s, ptr, size, fresh)
	case value.FormRound:
		fresh.T = ptr.T
		return fresh
	case value.FormRecord:
		m.fail(s.PC, m.env.Arrays[ptr.Obj], 1, rule.FlowState, "a record is read: it may hold what an earlier packet reported")
		return fresh
	case value.FormStack:
		return m.readCells(s, ptr, s.Frames[ptr.Obj].Stack, size, fresh)
	case value.FormElement:
		m.touchElement(s, ptr, m.touchOf(s, ptr, size, true, false, value.Taint{}))
		fresh.T = m.trace.Of(m.env.Arrays[ptr.Obj].Name)
		fresh.T.From = m.env.Arrays[ptr.Obj].Bit.Or(declared.Packet)
		return fresh
	case value.FormMemory:
		return m.readMemory(s, ptr, size, fresh)
	}
	m.fail(s.PC, nil, 2, rule.Unfollowed, "a load whose target cannot be followed")
	return fresh
}

// readOutside reads memory that is not the program's own: the packet, its context, or configuration.
func (m *Machine) readOutside(s *state.State, ptr value.Value, size int, fresh value.Value) value.Value {
	switch ptr.Base {
	case value.InContext:
		return m.loadContext(s, ptr, size)
	case value.InPacket:
		fresh.T = s.Outside.With(value.FromPacket).With(m.trace.Of(trace.Packet))
	case value.InConfig:
	default:
		m.fail(s.PC, nil, 1, rule.Unlisted, "a load from memory that is neither the packet's nor the program's")
	}
	return fresh
}

// written reports whether all bytes of [lo, end) of the memory that a pointer refers to are written.
func (m *Machine) written(mem value.Memory, ptr value.Value, lo, end int) bool {
	first, last := -code.StackSize, 0
	if ptr.Form == value.FormMemory {
		first, last = 0, int(m.env.Arrays[ptr.Obj].Spec.ValueSize)
	}
	lo, end = max(lo, first), min(end, last)
	return mem.Sure(lo, end-lo)
}

func (m *Machine) touchOf(s *state.State, ptr value.Value, size int, read, write bool, t value.Taint) touch {
	lo, hi := s.Reach(ptr)
	if lo != hi {
		lo = -1 // any byte
	}
	return touch{pc: s.PC, read: read, write: write, off: lo, size: size, value: t}
}

func (m *Machine) readCells(s *state.State, ptr value.Value, mem value.Memory, size int, fresh value.Value) value.Value {
	lo, hi := s.Reach(ptr)
	if lo == hi {
		v, known, sure := mem.Read(lo, size, m.nodes)
		if !known {
			v = fresh
		}
		if !known && size == 8 {
			v.Form = value.FormLost // not a number that can be tracked
		}
		if !sure {
			v.T.From = v.T.From.Or(declared.Stale)
		}
		return v
	}
	from, to := mem.Around(lo, hi-lo+size)
	fresh.T = fresh.T.With(value.FromPacket)
	if ptr.Form == value.FormMemory {
		fresh.T = fresh.T.With(m.trace.Word(ptr.Obj, lo, hi-lo+size))
	}
	if !m.written(mem, ptr, lo, hi+size) {
		fresh.T.From = fresh.T.From.Or(declared.Stale)
	}
	for _, c := range mem[from:to] {
		fresh.T = fresh.T.With(c.V.T)
		if c.V.IsPointer() && size == 8 {
			fresh.Form = value.FormLost
		}
	}
	return fresh
}

// readMemory reads a map that is no register array.
func (m *Machine) readMemory(s *state.State, ptr value.Value, size int, fresh value.Value) value.Value {
	a := m.env.Arrays[ptr.Obj]
	m.used(ptr.Obj, true, false)
	lo, hi := s.Reach(ptr)
	fresh.T = m.trace.Map(a, lo, hi)
	fresh.T.From = a.Bit
	switch a.Kind {
	case declared.Constant:
		if n, ok := m.constant(s, a, ptr, size); ok {
			return value.Number(n, value.Taint{})
		}
	case declared.Scratch:
		return m.readScratch(s, ptr, size, fresh)
	case declared.Random:
		fresh.N.Random = true
	case declared.Counters, declared.Budget:
		fresh.Sum = value.Sum{Obj: ptr.Obj + 1, Off: ptr.N}
	}
	return fresh
}

// constant is the value that .rodata will be loaded with.
func (m *Machine) constant(s *state.State, a *declared.Array, ptr value.Value, size int) (*expr.Node, bool) {
	lo, hi := s.Reach(ptr)
	if lo != hi || lo < 0 || lo+size > len(a.Data) {
		return nil, false
	}
	var raw [8]byte
	copy(raw[:], a.Data[lo:lo+size])
	return m.nodes.Number(binary.LittleEndian.Uint64(raw[:])), true
}

// number of a scratch map in machine.scratch and state.scratch.
func (m *Machine) scratchNumber(obj int32) int {
	for i, o := range m.scratch {
		if o == obj {
			return i
		}
	}
	return -1
}

// readScratch: nothing in scratch memory outlives a packet, so only the packet's own words may be read: those
// of the vector, which the entry program writes, and those that this path has written.
func (m *Machine) readScratch(s *state.State, ptr value.Value, size int, fresh value.Value) value.Value {
	mem := s.Scratch[m.scratchNumber(ptr.Obj)]
	lo, hi := s.Reach(ptr)
	m.checkStale(s, ptr.Obj, mem, lo, hi-lo+size)
	v := value.Number(nil, value.Taint{})
	if lo != hi {
		v = m.readCells(s, ptr, mem, size, fresh)
		v.T.From = v.T.From.Without(declared.Stale) // reported already
	} else if known, ok, _ := mem.Read(lo, size, m.nodes); ok {
		v = known
	} else {
		v = m.firstWord(ptr.Obj, lo, size)
	}
	if m.entry && !mem.Sure(lo, hi-lo+size) {
		v.T.From = v.T.From.Or(declared.Stale)
	}
	return v
}

// checkStale refuses to read a word of scratch memory that has not been written for this packet.
func (m *Machine) checkStale(s *state.State, obj int32, mem value.Memory, off, size int) {
	arr := m.env.Arrays[obj]
	v := &m.env.Vector
	if obj != v.Array {
		if !mem.Sure(off, size) {
			m.fail(s.PC, arr, 1, rule.FlowState, "scratch memory is read that this packet has not written on this path: it holds an earlier packet's")
		}
		return
	}
	if m.entry || !v.Carry.Overlaps(off, size) || mem.Sure(off, size) {
		return
	}
	if m.secondPass(s) && v.Carry.Covers(off, size) {
		m.wants = append(m.wants, carryRead{s.PC, v.CarryMask(off, size) &^ m.carried(s)})
		return
	}
	m.fail(s.PC, arr, 1, rule.FlowState, "carry is read in a first pass that has not written it: it holds an earlier packet's")
}

// secondPass reports whether the path has found phv->pass to be 1: this program's first pass has recirculated the packet.
func (m *Machine) secondPass(s *state.State) bool {
	return m.env.Vector.Pass >= 0 && s.Facts.SpanOf(m.vectorWord(m.env.Vector.Pass)) == expr.Span{Lo: 1, Hi: 1}
}

// vectorWord is the initial value of one byte of the vector.
func (m *Machine) vectorWord(off int) *expr.Node {
	return m.wordOf(m.env.Vector.Array, off, 1)
}
