package code

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
)

// live is what is still read: registers, and words of the stack that only loads and stores relative to r10 use
// (spilled registers). Forgetting the rest lets more states meet.
type live struct {
	Regs  uint16
	Slots uint64 // bit n: the 8 bytes that end 8n bytes below the frame's top
}

const callerSaved = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5

// liveness is the classical backward analysis, one instruction a node.
func liveness(p *Program, f function, next, prev [][]int) []live {
	n := f.end - f.start
	escaped := escapes(p, f)
	in := make([]live, n)
	work := make([]int, n)
	queued := make([]bool, n)
	for i := range work {
		work[i], queued[i] = i, true
		in[i].Slots = escaped
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work, queued[i] = work[:len(work)-1], false
		var out live
		for _, to := range next[i] {
			out.Regs |= in[to].Regs
			out.Slots |= in[to].Slots
		}
		uses, defs := effects(&p.Insns[f.start+i])
		before := live{
			Regs:  out.Regs&^defs.Regs | uses.Regs,
			Slots: out.Slots&^defs.Slots | uses.Slots | escaped,
		}
		if before == in[i] {
			continue
		}
		in[i] = before
		for _, from := range prev[i] {
			if !queued[from] {
				queued[from] = true
				work = append(work, from)
			}
		}
	}
	return in
}

func bit(r asm.Register) uint16 { return 1 << r }

// effects are what an instruction reads and what it overwrites completely.
func effects(in *Insn) (uses, defs live) {
	switch class := in.OpCode.Class(); {
	case class.IsALU():
		return aluEffects(in)
	case class == asm.LdXClass:
		uses.Regs, defs.Regs = bit(in.Src), bit(in.Dst)
		if in.Src == asm.R10 {
			uses.Slots = SlotsOf(int(in.Offset), in.OpCode.Size().Sizeof())
		}
	case class == asm.StClass, class == asm.StXClass:
		return storeEffects(in)
	case class == asm.LdClass:
		if in.OpCode.IsDWordLoad() {
			defs.Regs = bit(in.Dst)
			break
		}
		uses.Regs, defs.Regs = bit(asm.R6)|bit(in.Src), callerSaved|1
	case class.IsJump():
		return jumpEffects(in)
	}
	return uses, defs
}

func aluEffects(in *Insn) (uses, defs live) {
	defs.Regs = bit(in.Dst)
	switch in.OpCode.ALUOp() {
	case asm.Mov, asm.MovSX8, asm.MovSX16, asm.MovSX32:
	default:
		uses.Regs = bit(in.Dst)
	}
	if in.OpCode.Source() == asm.RegSource {
		uses.Regs |= bit(in.Src)
	}
	return uses, defs
}

func storeEffects(in *Insn) (uses, defs live) {
	uses.Regs = bit(in.Dst)
	if in.OpCode.Class() == asm.StXClass {
		uses.Regs |= bit(in.Src)
	}
	if in.OpCode.Mode() == asm.AtomicMode {
		uses.Regs |= bit(asm.R0)
		if in.Src == asm.R10 || in.Dst == asm.R10 {
			uses.Slots = SlotsOf(int(in.Offset), in.OpCode.Size().Sizeof())
		}
		return uses, defs
	}
	if in.Dst == asm.R10 && in.OpCode.Size() == asm.DWord && in.Offset%8 == 0 {
		defs.Slots = SlotsOf(int(in.Offset), 8)
	}
	return uses, defs
}

func jumpEffects(in *Insn) (uses, defs live) {
	switch in.OpCode.JumpOp() {
	case asm.Exit:
		uses.Regs = bit(asm.R0)
	case asm.Call:
		uses.Regs, defs.Regs = callerSaved, callerSaved|1
		if in.IsBuiltinCall() {
			uses.Regs = 1<<(1+allow.Arity(in.Constant)) - 2
		}
	case asm.Ja:
	default:
		uses.Regs = bit(in.Dst)
		if in.OpCode.Source() == asm.RegSource {
			uses.Regs |= bit(in.Src)
		}
	}
	return uses, defs
}

// SlotsOf is the set of stack words that [off, off+size) relative to the frame's top overlaps.
func SlotsOf(off, size int) uint64 {
	from, to := max(off, -StackSize), min(off+size, 0)
	if from >= to {
		return 0
	}
	nearest, farthest := (-to)/8, (-from-1)/8
	return (2<<farthest - 1) &^ (1<<nearest - 1)
}

// escapes are the stack words that may be reached through a pointer: all from the lowest address that is taken.
func escapes(p *Program, f function) uint64 {
	lowest := 0
	for i := f.start; i < f.end; i++ {
		in := &p.Insns[i]
		if !takesFrame(in) {
			continue
		}
		off := -StackSize
		if i+1 < f.end {
			following := &p.Insns[i+1]
			adds := following.OpCode == asm.Add.Op(asm.ImmSource) && following.Dst == in.Dst
			if in.OpCode == asm.Mov.Op(asm.RegSource) && adds {
				off = int(following.Constant)
			}
		}
		lowest = min(lowest, off)
	}
	return SlotsOf(max(lowest, -StackSize), -max(lowest, -StackSize))
}

// takesFrame reports whether r10 is used as a value and not just as the base of an access.
func takesFrame(in *Insn) bool {
	class := in.OpCode.Class()
	switch {
	case class.IsALU():
		return in.OpCode.Source() == asm.RegSource && in.Src == asm.R10
	case class == asm.StXClass:
		return in.Src == asm.R10
	}
	return false
}

// StackSize is what the kernel gives a frame, in bytes.
const StackSize = 512
