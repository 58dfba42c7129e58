package machine

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// simulator runs one program on one packet. It implements the kernel's helpers and shares no code with the proof.
type simulator struct {
	world
	insns  asm.Instructions
	labels map[string]int
	hook   ebpf.ProgramType

	steps   int
	lookups int
	top     int
	touched map[simArray]int
	written map[simArray]uint8
	broken  string // the first rule that was broken
	trace   uint64 // of the instructions that ran
	ended   outcome
}

type simFrame struct {
	regs  [11]simValue
	stack *simMemory
}

// outcome is how a pass ends.
type outcome struct {
	how     string // "exit", "chain" or "pass"
	verdict uint32
}

const simSteps = 4000

func (s *simulator) newFrame() simFrame {
	f := simFrame{stack: newMemory("stack", 512, s.garbage)}
	f.regs[10] = simValue{mem: f.stack, n: 512}
	return f
}

// pass runs the program once, from its start to where it ends or calls another one.
func (s *simulator) pass() outcome {
	s.top, s.touched, s.written = -1, make(map[simArray]int), make(map[simArray]uint8)
	s.ended = outcome{}
	f := s.newFrame()
	f.regs[1] = simValue{mem: s.context}
	if s.function(&f, 0) {
		s.ended = outcome{how: "exit", verdict: uint32(f.regs[0].n)}
	}
	return s.ended
}

// function runs until it returns, and reports whether the program continues.
func (s *simulator) function(f *simFrame, pc int) bool {
	for {
		if s.steps++; s.steps > simSteps {
			panic(invalid("too long"))
		}
		ins := s.insns[pc]
		s.trace = s.trace*31 + uint64(pc) + 7
		pc++
		switch class := ins.OpCode.Class(); {
		case class.IsALU():
			s.alu(f, ins)
		case class == asm.LdClass:
			f.regs[ins.Dst] = s.constant(ins)
		case class == asm.LdXClass:
			if relo := btf.CORERelocationMetadata(&ins); relo != nil {
				f.regs[ins.Dst] = s.kernelField(f.regs[ins.Src], wildFields().names[relo])
				break
			}
			f.regs[ins.Dst] = s.load(f.regs[ins.Src], int(ins.Offset), ins.OpCode.Size().Sizeof())
		case class == asm.StClass:
			s.store(f.regs[ins.Dst], int(ins.Offset), ins.OpCode.Size().Sizeof(), simValue{n: uint64(ins.Constant)})
		case class == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode:
			s.atomic(f, ins)
		case class == asm.StXClass:
			s.store(f.regs[ins.Dst], int(ins.Offset), ins.OpCode.Size().Sizeof(), f.regs[ins.Src])
		case ins.OpCode.JumpOp() == asm.Exit:
			return true
		case ins.OpCode.JumpOp() == asm.Call:
			if !s.call(f, ins) {
				return false
			}
		case s.jumps(f, ins):
			pc = s.labels[ins.Reference()]
		}
	}
}

func (s *simulator) constant(ins asm.Instruction) simValue {
	switch {
	case ins.Src == asm.PseudoFunc:
		return simValue{code: ins.Reference()}
	case ins.Src == asm.PseudoMapValue:
		return simValue{mem: s.maps[ins.Reference()].elements[0], n: uint64(ins.Constant) >> 32}
	case ins.Reference() != "":
		return simValue{table: s.maps[ins.Reference()]}
	}
	return simValue{n: uint64(ins.Constant)}
}

func (s *simulator) alu(f *simFrame, ins asm.Instruction) {
	src := simValue{n: uint64(ins.Constant)}
	if ins.OpCode.Source() == asm.RegSource {
		src = f.regs[ins.Src]
	}
	dst, op, narrow := &f.regs[ins.Dst], ins.OpCode.ALUOp(), ins.OpCode.Class() == asm.ALUClass
	switch {
	case op == asm.Mov && !narrow:
		*dst = src
	case src.isPointer() && dst.isPointer() && op == asm.Sub && src.mem == dst.mem:
		*dst = simValue{n: dst.n - src.n}
	case dst.mem != nil && !src.isPointer() && !narrow && (op == asm.Add || op == asm.Sub):
		dst.n = arithmetic64(op, dst.n, src.n)
	case src.isPointer() || dst.isPointer() && op != asm.Mov:
		panic(invalid("arithmetic on pointers"))
	case op == asm.Mov:
		*dst = simValue{n: src.n & (1<<32 - 1)}
	case narrow:
		dst.n = uint64(arithmetic32(op, uint32(dst.n), uint32(src.n)))
	default:
		dst.n = arithmetic64(op, dst.n, src.n)
	}
}

func (s *simulator) jumps(f *simFrame, ins asm.Instruction) bool {
	op := ins.OpCode.JumpOp()
	if op == asm.Ja {
		return true
	}
	a, b := f.regs[ins.Dst], simValue{n: uint64(ins.Constant)}
	if ins.OpCode.Source() == asm.RegSource {
		b = f.regs[ins.Src]
	}
	if a.isPointer() != b.isPointer() {
		if b.isPointer() || b.n != 0 || op != asm.JEq && op != asm.JNE {
			panic(invalid("a pointer is compared with a number"))
		}
		return op == asm.JNE
	}
	if a.mem != b.mem {
		panic(invalid("pointers to two memories are compared"))
	}
	x, y := a.n, b.n
	switch op {
	case asm.JEq:
		return x == y
	case asm.JNE:
		return x != y
	case asm.JGT:
		return x > y
	case asm.JGE:
		return x >= y
	case asm.JLT:
		return x < y
	case asm.JLE:
		return x <= y
	case asm.JSet:
		return x&y != 0
	case asm.JSGT:
		return int64(x) > int64(y)
	}
	panic(invalid("jump"))
}

// load is one access of a program's own.
func (s *simulator) load(ptr simValue, off, size int) simValue {
	at := int(int64(ptr.n)) + off
	switch {
	case ptr.mem == nil:
		panic(invalid("a load through a number"))
	case ptr.mem == s.context:
		return s.field(at, size)
	case ptr.mem.owner != nil && ptr.mem.owner.staged():
		s.touch(ptr, at, size, false)
	}
	return ptr.mem.load(at, size)
}

func (s *simulator) store(ptr simValue, off, size int, v simValue) {
	at := int(int64(ptr.n)) + off
	if ptr.mem == nil || ptr.mem == s.context {
		panic(invalid("a store through a number"))
	}
	if owner := ptr.mem.owner; owner != nil && (owner.kind == declared.Table || owner.kind == declared.Prefix || owner.kind == declared.Constant) {
		panic(invalid("a table is read-only"))
	}
	if ptr.mem.owner != nil && ptr.mem.owner.staged() {
		s.touch(ptr, at, size, true)
	}
	ptr.mem.store(at, size, v)
}

func (s *simulator) atomic(f *simFrame, ins asm.Instruction) {
	ptr, size := f.regs[ins.Dst], ins.OpCode.Size().Sizeof()
	if ptr.mem == nil || ptr.mem == s.context || ptr.mem == s.packet {
		panic(invalid("atomic access"))
	}
	at := int(int64(ptr.n)) + int(ins.Offset)
	old := ptr.mem.load(at, size)
	if old.isPointer() {
		panic(invalid("a pointer is added to"))
	}
	if ins.OpCode.AtomicOp() == asm.FetchAdd {
		s.store(ptr, int(ins.Offset), size, simValue{n: old.n + f.regs[ins.Src].n})
		f.regs[ins.Src] = old
		return
	}
	if f.regs[0].n == old.n {
		s.store(ptr, int(ins.Offset), size, f.regs[ins.Src])
	} else if ptr.mem.owner != nil && ptr.mem.owner.staged() {
		s.touch(ptr, at, size, true)
	}
	f.regs[0] = old
}

// simArray is a register: a map, or a word of its elements.
type simArray struct {
	*simMap
	word int
}

// touch checks rules 1 and 2 for one access.
func (s *simulator) touch(e simValue, off, size int, write bool) {
	m := simArray{e.mem.owner, 0}
	if m.apart {
		m.word, off = off/8, off%8
		if rest := off + size - 8; rest > 0 {
			s.touch(e, 8*(m.word+1), rest, write)
			size -= rest
		}
	}
	first, before := s.touched[m]
	var bytes uint8
	for i := range size {
		bytes |= 1 << (off + i)
	}
	switch {
	case m.stages[m.word] < s.top:
		s.breaks("%s of stage %d is touched after stage %d", m.name, m.stages[m.word], s.top)
	case before && first != e.lookup:
		s.breaks("a second element of %s", m.name)
	case s.written[m]&bytes != 0:
		s.breaks("a word of %s after its write", m.name)
	}
	s.touched[m], s.top = e.lookup, max(s.top, m.stages[m.word])
	if write {
		s.written[m] |= bytes
	}
}

func (s *simulator) breaks(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}
