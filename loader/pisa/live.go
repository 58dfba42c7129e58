package pisa

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// live is what is still read: registers, and words of the stack that only loads and stores relative to r10 use
// (spilled registers). Forgetting the rest lets more states meet.
type live struct {
	regs  uint16
	slots uint64 // bit n: the 8 bytes that end 8n bytes below the frame's top
}

const callerSaved = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5

// liveness is the classical backward analysis, one instruction a node.
func liveness(p *program, f function, next, prev [][]int) []live {
	n := f.end - f.start
	escaped := escapes(p, f)
	in := make([]live, n)
	work := make([]int, n)
	queued := make([]bool, n)
	for i := range work {
		work[i], queued[i] = i, true
		in[i].slots = escaped
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work, queued[i] = work[:len(work)-1], false
		var out live
		for _, to := range next[i] {
			out.regs |= in[to].regs
			out.slots |= in[to].slots
		}
		uses, defs := effects(&p.insns[f.start+i])
		before := live{
			regs:  out.regs&^defs.regs | uses.regs,
			slots: out.slots&^defs.slots | uses.slots | escaped,
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
func effects(in *insn) (uses, defs live) {
	switch class := in.OpCode.Class(); {
	case class.IsALU():
		return aluEffects(in)
	case class == asm.LdXClass:
		uses.regs, defs.regs = bit(in.Src), bit(in.Dst)
		if in.Src == asm.R10 {
			uses.slots = slotsOf(int(in.Offset), in.OpCode.Size().Sizeof())
		}
	case class == asm.StClass, class == asm.StXClass:
		return storeEffects(in)
	case class == asm.LdClass:
		if in.OpCode.IsDWordLoad() {
			defs.regs = bit(in.Dst)
			break
		}
		uses.regs, defs.regs = bit(asm.R6)|bit(in.Src), callerSaved|1
	case class.IsJump():
		return jumpEffects(in)
	}
	return uses, defs
}

func aluEffects(in *insn) (uses, defs live) {
	defs.regs = bit(in.Dst)
	switch in.OpCode.ALUOp() {
	case asm.Mov, asm.MovSX8, asm.MovSX16, asm.MovSX32:
	default:
		uses.regs = bit(in.Dst)
	}
	if in.OpCode.Source() == asm.RegSource {
		uses.regs |= bit(in.Src)
	}
	return uses, defs
}

func storeEffects(in *insn) (uses, defs live) {
	uses.regs = bit(in.Dst)
	if in.OpCode.Class() == asm.StXClass {
		uses.regs |= bit(in.Src)
	}
	if in.OpCode.Mode() == asm.AtomicMode {
		uses.regs |= bit(asm.R0)
		if in.Src == asm.R10 || in.Dst == asm.R10 {
			uses.slots = slotsOf(int(in.Offset), in.OpCode.Size().Sizeof())
		}
		return uses, defs
	}
	if in.Dst == asm.R10 && in.OpCode.Size() == asm.DWord && in.Offset%8 == 0 {
		defs.slots = slotsOf(int(in.Offset), 8)
	}
	return uses, defs
}

func jumpEffects(in *insn) (uses, defs live) {
	switch in.OpCode.JumpOp() {
	case asm.Exit:
		uses.regs = bit(asm.R0)
	case asm.Call:
		uses.regs, defs.regs = callerSaved, callerSaved|1
		if in.IsBuiltinCall() {
			uses.regs = 1<<(1+arity(in.Constant)) - 2
		}
	case asm.Ja:
	default:
		uses.regs = bit(in.Dst)
		if in.OpCode.Source() == asm.RegSource {
			uses.regs |= bit(in.Src)
		}
	}
	return uses, defs
}

// slotsOf is the set of stack words that [off, off+size) relative to the frame's top overlaps.
func slotsOf(off, size int) uint64 {
	from, to := max(off, -stackSize), min(off+size, 0)
	if from >= to {
		return 0
	}
	nearest, farthest := (-to)/8, (-from-1)/8
	return (2<<farthest - 1) &^ (1<<nearest - 1)
}

// escapes are the stack words that may be reached through a pointer: all from the lowest address that is taken.
func escapes(p *program, f function) uint64 {
	lowest := 0
	for i := f.start; i < f.end; i++ {
		in := &p.insns[i]
		if !takesFrame(in) {
			continue
		}
		off := -stackSize
		if i+1 < f.end {
			following := &p.insns[i+1]
			adds := following.OpCode == asm.Add.Op(asm.ImmSource) && following.Dst == in.Dst
			if in.OpCode == asm.Mov.Op(asm.RegSource) && adds {
				off = int(following.Constant)
			}
		}
		lowest = min(lowest, off)
	}
	return slotsOf(max(lowest, -stackSize), -max(lowest, -stackSize))
}

// takesFrame says whether r10 is used as a value and not just as the base of an access.
func takesFrame(in *insn) bool {
	class := in.OpCode.Class()
	switch {
	case class.IsALU():
		return in.OpCode.Source() == asm.RegSource && in.Src == asm.R10
	case class == asm.StXClass:
		return in.Src == asm.R10
	}
	return false
}

// prune forgets what the current function and its callers no longer read.
func (s *state) prune(p *program) {
	g := p.funcs[p.insns[s.pc].fn].graph
	now := g.live[s.pc-g.start]
	for r := range s.regs[:10] {
		if now.regs&(1<<r) == 0 {
			s.regs[r] = value{}
		}
	}
	top := len(s.frames) - 1
	s.frames[top].stack = s.frames[top].stack.keep(now.slots)
	for d := top; d > 0; d-- {
		back := s.frames[d].back
		caller := p.funcs[p.insns[back].fn].graph
		after := caller.live[back-caller.start]
		s.frames[d-1].stack = s.frames[d-1].stack.keep(after.slots)
		s.frames[d].saved = keepSaved(s.frames[d].saved, after.regs)
	}
}

// keepSaved drops registers of a caller that are not live when it goes on.
func keepSaved(saved *[10]value, regs uint16) *[10]value {
	out := *saved
	for r := 6; r < 10; r++ {
		if regs&(1<<r) == 0 {
			out[r] = value{}
		}
	}
	if out == *saved {
		return saved
	}
	return &out
}

// keep drops cells that lie in words that are not live.
func (m memory) keep(slots uint64) memory {
	if !slices.ContainsFunc(m, func(c cell) bool { return slotsOf(c.off, c.size)&slots == 0 }) {
		return m
	}
	return slices.DeleteFunc(slices.Clone(m), func(c cell) bool { return slotsOf(c.off, c.size)&slots == 0 })
}
