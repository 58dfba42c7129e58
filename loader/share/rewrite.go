package share

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

// stack slots that rewriting uses, in bytes below what a function has itself: the instance's number, a key, and what is in R2 to R4 meanwhile, where
// that cannot be made again. Only slots that are used are part of a function's stack.
const (
	slotNumber = 4
	slotKey    = 8
	slotR2     = 16
	slots      = slotR2 + 2*8
)

// most is the kernel's limit on the stack of a program.
const most = 512

// rewriter turns the instructions of one program into those that serve many instances.
type rewriter struct {
	parts
	in     asm.Instructions
	target []int // by instruction: the one that it jumps to; -1
	landed []bool
	starts []bool // of functions
	out    asm.Instructions
	at     []int // by instruction of in: its first one in out
	jumps  map[int]jump
	depth  int16 // of the function's own stack, negative
	sub    bool  // not the first function: the number is looked up where it is needed
	late   []late
}

// jump of an instruction in out: to an instruction of in, or of out.
type jump struct {
	to    int
	inOut bool
}

// late is what stands behind a function: what a lookup that finds nothing leaves, and the way back.
type late struct {
	from   []int // jumps in out
	result int32
	back   int // in out
}

func rewrite(in asm.Instructions, p parts) (asm.Instructions, error) {
	r := &rewriter{parts: p, in: in, jumps: map[int]jump{}, at: make([]int, len(in)+1)}
	if err := r.resolve(); err != nil {
		return nil, err
	}
	for i := range in {
		if r.starts[i] {
			r.finish()
			r.depth, r.sub = r.stack(i), i > 0
			if r.depth < slots-most {
				return nil, fmt.Errorf("%w: a function needs %d bytes of stack", ErrNotShared, -r.depth)
			}
		}
		r.at[i] = len(r.out)
		if err := r.one(i); err != nil {
			return nil, err
		}
	}
	r.finish()
	r.at[len(in)] = len(r.out)
	return r.out, r.link()
}

// resolve finds where jumps go and where functions begin.
func (r *rewriter) resolve() error {
	raw, index, symbol := make([]int, len(r.in)), map[int]int{}, map[string]int{}
	at := 0
	for i := range r.in {
		raw[i], index[at] = at, i
		at += int(r.in[i].Width())
		if s := r.in[i].Symbol(); s != "" {
			symbol[s] = i
		}
	}
	r.target, r.landed, r.starts = make([]int, len(r.in)), make([]bool, len(r.in)), make([]bool, len(r.in))
	r.starts[0] = true
	for i := range r.in {
		r.target[i] = -1
		ins := &r.in[i]
		if ins.IsFunctionReference() {
			to, ok := symbol[ins.Reference()]
			if !ok || ins.Constant != -1 {
				return fmt.Errorf("%w: unknown function %q", ErrNotShared, ins.Reference())
			}
			r.starts[to] = true
		}
		if !jumps(ins) {
			continue
		}
		to, ok := index[raw[i]+1+int(ins.Offset)]
		if !ok || ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja {
			return fmt.Errorf("%w: a jump of instruction %d", ErrNotShared, i)
		}
		r.target[i], r.landed[to] = to, true
	}
	return nil
}

func jumps(ins *asm.Instruction) bool {
	if !ins.OpCode.Class().IsJump() {
		return false
	}
	op := ins.OpCode.JumpOp()
	return op != asm.Call && op != asm.Exit
}

// stack is how deep a function's own stack may be. It is never less than it is: whatever is subtracted from a pointer counts, and so does a negative
// offset behind it.
func (r *rewriter) stack(first int) int16 {
	var direct, through int64
	for i := first; i < len(r.in) && (i == first || !r.starts[i]); i++ {
		ins := &r.in[i]
		c := ins.OpCode.Class()
		switch {
		case ins.Src == asm.R10 && c.IsLoad(), ins.Dst == asm.R10 && c.IsStore():
			direct = min(direct, int64(ins.Offset))
		case c.IsLoad(), c.IsStore():
			through = min(through, int64(ins.Offset))
		case c == asm.ALU64Class && ins.OpCode.ALUOp() == asm.Add && ins.OpCode.Source() == asm.ImmSource && ins.Constant < 0 && ins.Constant >= -most:
			direct = min(direct, ins.Constant)
		}
	}
	depth := min(direct+through, 0)
	return int16(max(depth, -most) &^ 7)
}

// one copies an instruction, and what has to stand around it.
func (r *rewriter) one(i int) error {
	ins := r.in[i]
	if !ins.IsBuiltinCall() {
		r.emit(ins)
		if r.target[i] >= 0 {
			r.jumps[len(r.out)-1] = jump{to: r.target[i]}
		}
		return nil
	}
	fn := asm.BuiltinFunc(ins.Constant)
	if fn != asm.FnMapLookupElem && fn != asm.FnRingbufOutput {
		if takesMap(fn) {
			return fmt.Errorf("%w: it calls %s", ErrNotShared, fn)
		}
		r.emit(ins)
		return nil
	}
	load, ok := r.mapOf(i)
	if !ok {
		return fmt.Errorf("%w: the map of instruction %d is not seen", ErrNotShared, i)
	}
	name := load.Reference()
	switch entries, shared := r.entries[name]; {
	case name == Vector:
		r.emit(ins)
		r.keepNumber()
	case shared:
		r.lookup(i, load, entries)
	case r.rings[name]:
		r.report(i, load)
	default:
		r.emit(ins)
	}
	return nil
}

// takesMap says whether a helper does something with a map that rewriting does not know. Tail calls go through maps that all share.
func takesMap(fn asm.BuiltinFunc) bool {
	switch fn {
	case asm.FnTailCall, asm.FnKtimeGetNs, asm.FnGetPrandomU32, asm.FnGetSmpProcessorId, asm.FnXdpGetBuffLen, asm.FnXdpLoadBytes, asm.FnSkbLoadBytes, asm.FnSkbPullData:
		return false
	}
	return true
}

// mapOf finds the map that is in R1 at a call, in the instructions that lead straight to it.
func (r *rewriter) mapOf(call int) (asm.Instruction, bool) {
	for i := call - 1; i >= 0 && !r.landed[i+1] && !r.starts[i+1]; i-- {
		ins := &r.in[i]
		if ins.OpCode.Class().IsJump() {
			break
		}
		if ins.Dst == asm.R1 && (ins.OpCode.Class().IsLoad() || ins.OpCode.Class().IsALU()) {
			return *ins, ins.IsLoadFromMap() && ins.Src == asm.PseudoMapFD
		}
	}
	return asm.Instruction{}, false
}

func (r *rewriter) emit(all ...asm.Instruction) { r.out = append(r.out, all...) }

func (r *rewriter) slot(n int16) int16 { return r.depth - n }

// branch emits a jump whose target is settled later.
func (r *rewriter) branch(ins asm.Instruction) int {
	r.emit(ins)
	return len(r.out) - 1
}

// keepNumber puts the instance's number on the stack, when the vector was found: R0 is NULL or the vector, and R3 is free behind a call.
func (r *rewriter) keepNumber() {
	if r.sub {
		return
	}
	none := r.branch(asm.JEq.Imm(asm.R0, 0, ""))
	r.emit(asm.LoadMem(asm.R3, asm.R0, r.number, asm.Word), asm.StoreMem(asm.R10, r.slot(slotNumber), asm.R3, asm.Word))
	r.jumps[none] = jump{to: len(r.out), inOut: true}
}

// fetchNumber is for other functions than the first, which may not have the vector. The first so many of R2 to R4 are kept; R1 is loaded again.
func (r *rewriter) fetchNumber(at int, load asm.Instruction, keep int) (none []int) {
	if !r.sub {
		return nil
	}
	restore := r.save(at, keep)
	r.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R10, r.slot(slotKey), asm.R1, asm.Word), pointer(Vector),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, int32(r.slot(slotKey))), asm.FnMapLookupElem.Call())
	none = append(none, r.branch(asm.JEq.Imm(asm.R0, 0, "")))
	r.emit(asm.LoadMem(asm.R1, asm.R0, r.number, asm.Word), asm.StoreMem(asm.R10, r.slot(slotNumber), asm.R1, asm.Word), pointer(load.Reference()))
	r.emit(restore...)
	return none
}

// save puts the first so many of R2 to R4 aside before a call, and returns what brings them back behind it. What is made of constants is made again: the
// stack of a chain of functions is 512 bytes.
func (r *rewriter) save(call, keep int) (restore []asm.Instruction) {
	for n := range keep {
		reg, slot := asm.R2+asm.Register(n), r.slot(int16(slotR2+8*n))
		if again := r.again(call, reg); again != nil {
			restore = append(restore, again...)
			continue
		}
		r.emit(asm.StoreMem(asm.R10, slot, reg, asm.DWord))
		restore = append(restore, asm.LoadMem(reg, asm.R10, slot, asm.DWord))
	}
	return restore
}

// again are the instructions that lead straight to a call and put a constant, or a place on the stack, into a register; nil where it is something else.
func (r *rewriter) again(call int, reg asm.Register) []asm.Instruction {
	var add *asm.Instruction
	for i := call - 1; i >= 0 && !r.landed[i+1] && !r.starts[i+1]; i-- {
		ins := r.in[i]
		c := ins.OpCode.Class()
		if c.IsJump() {
			break
		}
		if ins.Dst != reg || !c.IsLoad() && !c.IsALU() {
			continue
		}
		whole := c == asm.ALU64Class
		switch op := ins.OpCode; {
		case add == nil && whole && op.ALUOp() == asm.Mov && op.Source() == asm.ImmSource:
			return []asm.Instruction{asm.Mov.Imm(reg, int32(ins.Constant))}
		case add == nil && whole && op.ALUOp() == asm.Add && op.Source() == asm.ImmSource:
			add = &ins
		case add != nil && whole && op.ALUOp() == asm.Mov && op.Source() == asm.RegSource && ins.Src == asm.R10 && ins.Offset == 0:
			return []asm.Instruction{asm.Mov.Reg(reg, asm.R10), asm.Add.Imm(reg, int32(add.Constant))}
		default:
			return nil
		}
	}
	return nil
}

// pointer loads the pointer of a map for a call.
func pointer(name string) asm.Instruction { return asm.LoadMapPtr(asm.R1, 0).WithReference(name) }

// lookup asks for an element of the instance's part. R3 and R4 are free: the call would overwrite them.
func (r *rewriter) lookup(at int, load asm.Instruction, entries uint32) {
	none := r.fetchNumber(at, load, 1)
	r.emit(asm.LoadMem(asm.R3, asm.R2, 0, asm.Word), asm.LoadMem(asm.R4, asm.R10, r.slot(slotNumber), asm.Word))
	none = append(none, r.branch(asm.JGT.Imm(asm.R3, int32(entries-1), "")))
	switch {
	case entries == 1:
	case entries&(entries-1) == 0:
		r.emit(asm.LSh.Imm(asm.R4, int32(bits.TrailingZeros32(entries))))
	default:
		r.emit(asm.Mul.Imm(asm.R4, int32(entries)))
	}
	r.emit(asm.Add.Reg(asm.R4, asm.R3), asm.StoreMem(asm.R10, r.slot(slotKey), asm.R4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, int32(r.slot(slotKey))), r.in[at])
	r.late = append(r.late, late{none, 0, len(r.out)})
}

// notFound is -ENOENT: what a report to an instance without a ring answers.
const notFound = -2

// report sends a record to the instance's ring.
func (r *rewriter) report(at int, load asm.Instruction) {
	none := r.fetchNumber(at, load, 3)
	restore := r.save(at, 3)
	r.emit(asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, int32(r.slot(slotNumber))), asm.FnMapLookupElem.Call())
	none = append(none, r.branch(asm.JEq.Imm(asm.R0, 0, "")))
	r.emit(asm.Mov.Reg(asm.R1, asm.R0))
	r.emit(restore...)
	r.emit(r.in[at])
	r.late = append(r.late, late{none, notFound, len(r.out)})
}

// finish puts behind a function what its lookups need that find nothing: out of the way of those that do.
func (r *rewriter) finish() {
	for _, l := range r.late {
		for _, from := range l.from {
			r.jumps[from] = jump{to: len(r.out), inOut: true}
		}
		r.emit(asm.Mov.Imm(asm.R0, l.result), asm.Ja.Label(""))
		r.jumps[len(r.out)-1] = jump{to: l.back, inOut: true}
	}
	r.late = nil
}

// link writes the distances of jumps.
func (r *rewriter) link() error {
	raw, at := make([]int, len(r.out)+1), 0
	for i := range r.out {
		raw[i] = at
		at += int(r.out[i].Width())
	}
	raw[len(r.out)] = at
	for i, j := range r.jumps {
		to := j.to
		if !j.inOut {
			to = r.at[to]
		}
		distance := raw[to] - raw[i] - 1
		if distance < math.MinInt16 || distance > math.MaxInt16 {
			return fmt.Errorf("%w: a jump over %d instructions", ErrNotShared, distance)
		}
		r.out[i] = r.out[i].WithReference("")
		r.out[i].Offset = int16(distance)
	}
	return nil
}
