package share

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

// Slots on the stack that rewriting uses, in bytes below the function's own part: the instance's number and its place in spread maps, in the order that
// Number has them, a key, and R2 to R4 during a call, where their values cannot be calculated again.
const (
	slotNumber = 8
	slotPlace  = slotNumber - WordPlace
	slotKey    = 12
	slotKept   = 24
	slots      = slotKept + 2*8
)

// nobody is the number, and the place, if the instance's is not found: no map has an element nobody * n + k, in 32 bits.
const nobody = -1

// notFound is -ENOENT, the result of a report to an instance without a ring.
const notFound = -2

// rewriter turns the instructions of one program into those that serve many instances.
type rewriter struct {
	parts
	*code
	flow  *flow
	maps  []int // by instruction: the one that loads the map of this lookup or report, if instances have a part of it; -1
	out   asm.Instructions
	at    []int // by instruction of in: its first one in out
	jumps map[int]jump
	late  []late
	depth int16 // of the function's own stack, negative
}

// jump of an instruction in out: to an instruction of in, or of out.
type jump struct {
	to    int
	inOut bool
}

// late is code after a function: it sets the result of a lookup that finds nothing, and jumps back.
type late struct {
	from   int // jump in out
	result int32
	back   int // in out
}

func rewrite(in asm.Instructions, p parts) (asm.Instructions, error) {
	c, err := decode(in)
	if err != nil {
		return nil, err
	}
	r := &rewriter{parts: p, code: c, jumps: map[int]jump{}, at: make([]int, len(in))}
	if err := r.findMaps(); err != nil {
		return nil, err
	}
	if r.flow, err = follow(c, func(i int) bool { return r.maps[i] >= 0 }); err != nil {
		return nil, err
	}
	for i := range in {
		if r.starts[i] {
			r.finish()
			r.depth = int16(r.flow.depth[i]) &^ 7
			if r.depth < slots-most {
				return nil, fmt.Errorf("%w: a function needs %d bytes of stack", ErrNotShared, -r.depth)
			}
		}
		r.at[i] = len(r.out)
		r.one(i)
	}
	r.finish()
	return r.out, r.link()
}

// findMaps pairs lookups and reports with the instruction that loads their map. A map that instances have a part of must not be used in any other way.
func (r *rewriter) findMaps() error {
	r.maps = make([]int, len(r.in))
	seen := map[int]bool{}
	for i := range r.in {
		r.maps[i] = -1
		if !r.in[i].IsBuiltinCall() {
			continue
		}
		fn := asm.BuiltinFunc(r.in[i].Constant)
		if fn != asm.FnMapLookupElem && fn != asm.FnRingbufOutput {
			continue
		}
		from := r.setter(i, asm.R1)
		if from < 0 || !r.in[from].IsLoadFromMap() || r.in[from].Src != asm.PseudoMapFD {
			return fmt.Errorf("%w: the map of instruction %d is not seen", ErrNotShared, i)
		}
		name := r.in[from].Reference()
		if !r.has(name) {
			continue
		}
		if r.rings[name] != (fn == asm.FnRingbufOutput) {
			return fmt.Errorf("%w: instruction %d calls %s of %s", ErrNotShared, i, fn, name)
		}
		r.maps[i], seen[from] = from, true
	}
	for i := range r.in {
		if r.in[i].IsLoadFromMap() && r.has(r.in[i].Reference()) && !seen[i] {
			return fmt.Errorf("%w: instruction %d loads map %s for something else than a lookup", ErrNotShared, i, r.in[i].Reference())
		}
	}
	return nil
}

// setter finds the instruction that sets a register's value at a call, in the straight-line code before the call; -1 if there is none.
func (r *rewriter) setter(call int, reg asm.Register) int {
	for i := call - 1; i >= 0 && !r.landed[i+1] && !r.starts[i+1]; i-- {
		class := r.in[i].OpCode.Class()
		switch {
		case class.IsJump():
			return -1
		case r.in[i].Dst == reg && (class.IsLoad() || class.IsALU()), class == asm.StXClass && r.in[i].OpCode.Mode() == asm.AtomicMode && r.in[i].Src == reg:
			return i
		}
	}
	return -1
}

// one copies an instruction, or emits its replacement.
func (r *rewriter) one(i int) {
	ins := r.in[i]
	switch from := r.maps[i]; {
	case from < 0:
		r.emit(ins)
		if r.target[i] >= 0 {
			r.jumps[len(r.out)-1] = jump{to: r.target[i]}
		}
	case r.rings[r.in[from].Reference()]:
		r.report(i)
	default:
		r.lookup(i)
	}
}

func (r *rewriter) emit(all ...asm.Instruction) { r.out = append(r.out, all...) }

func (r *rewriter) slot(n int16) int16 { return r.depth - n }

// branch emits a jump whose target is settled later.
func (r *rewriter) branch(ins asm.Instruction) int {
	r.emit(ins)
	return len(r.out) - 1
}

// pointTo makes R2 point to a slot.
func (r *rewriter) pointTo(slot int16) {
	r.emit(asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, int32(r.slot(slot))))
}

// number fills the slot of the instance's number before a call whose first arguments are R1, a map, and those from R2 on, which are preserved. The slot is
// filled once in a function, where all paths to the call lead through an earlier one.
func (r *rewriter) number(call, kept int) {
	if r.flow.before[call].numbered {
		return
	}
	restore := r.save(call, kept)
	r.emit(asm.StoreImm(asm.R10, r.slot(slotKey), 0, asm.Word), asm.LoadMapPtr(asm.R1, 0).WithReference(Number))
	r.pointTo(slotKey)
	r.emit(asm.FnMapLookupElem.Call(), asm.Mov.Imm(asm.R3, nobody))
	none := r.branch(asm.JEq.Imm(asm.R0, 0, ""))
	r.emit(asm.LoadMem(asm.R3, asm.R0, WordNumber, asm.DWord)) // with the place
	r.jumps[none] = jump{to: len(r.out), inOut: true}
	r.emit(asm.StoreMem(asm.R10, r.slot(slotNumber), asm.R3, asm.DWord), r.loaded(call))
	r.emit(restore...)
}

// loaded loads the map of a call again.
func (r *rewriter) loaded(call int) asm.Instruction {
	return asm.LoadMapPtr(asm.R1, 0).WithReference(r.in[r.maps[call]].Reference())
}

// save stores a number of registers from R2 on before a call, and returns the instructions that restore them after it.
func (r *rewriter) save(call, kept int) (restore []asm.Instruction) {
	room := int16(slotKept)
	for reg := asm.R2; reg < asm.R2+asm.Register(kept); reg++ {
		if again := r.again(call, reg); again != nil {
			restore = append(restore, again...)
			continue
		}
		r.emit(asm.StoreMem(asm.R10, r.slot(room), reg, asm.DWord))
		restore = append(restore, asm.LoadMem(reg, asm.R10, r.slot(room), asm.DWord))
		room += 8
	}
	return restore
}

// again are instructions that set a register to the same constant or stack address again; nil where it holds another value. It is the same on all
// paths to the call.
func (r *rewriter) again(call int, reg asm.Register) []asm.Instruction {
	i := r.setter(call, reg)
	if i < 0 {
		return nil
	}
	ins := r.in[i]
	if ins.OpCode == asm.Mov.Op(asm.ImmSource) {
		return []asm.Instruction{asm.Mov.Imm(reg, int32(ins.Constant))}
	}
	if ins.OpCode != asm.Add.Op(asm.ImmSource) {
		return nil
	}
	if j := r.setter(i, reg); j >= 0 && r.in[j].OpCode == asm.Mov.Op(asm.RegSource) && r.in[j].Src == asm.R10 && r.in[j].Offset == 0 {
		return []asm.Instruction{asm.Mov.Reg(reg, asm.R10), asm.Add.Imm(reg, int32(ins.Constant))}
	}
	return nil
}

// lookup looks up an element of the instance's part. R3 and R4 are free: the call would overwrite them.
func (r *rewriter) lookup(call int) {
	name := r.in[r.maps[call]].Reference()
	entries, part := r.entries[name], int16(slotNumber)
	if r.spread[name] {
		part = slotPlace
	}
	r.number(call, 1)
	r.emit(asm.LoadMem(asm.R3, asm.R2, 0, asm.Word), asm.LoadMem(asm.R4, asm.R10, r.slot(part), asm.Word))
	none := r.branch(asm.JGT.Imm(asm.R3, int32(entries-1), ""))
	switch {
	case entries == 1:
	case entries&(entries-1) == 0:
		r.emit(asm.LSh.Imm(asm.R4, int32(bits.TrailingZeros32(entries))))
	default:
		r.emit(asm.Mul.Imm(asm.R4, int32(entries)))
	}
	r.emit(asm.Add.Reg(asm.R4, asm.R3), asm.StoreMem(asm.R10, r.slot(slotKey), asm.R4, asm.Word))
	r.pointTo(slotKey)
	r.emit(r.in[call])
	r.late = append(r.late, late{none, 0, len(r.out)})
}

// report sends a record to the instance's ring.
func (r *rewriter) report(call int) {
	r.number(call, 3)
	restore := r.save(call, 3)
	r.pointTo(slotNumber)
	r.emit(asm.FnMapLookupElem.Call())
	none := r.branch(asm.JEq.Imm(asm.R0, 0, ""))
	r.emit(asm.Mov.Reg(asm.R1, asm.R0))
	r.emit(restore...)
	r.emit(r.in[call])
	r.late = append(r.late, late{none, notFound, len(r.out)})
}

// finish appends to a function the code for lookups that find nothing, away from the path of those that find an element.
func (r *rewriter) finish() {
	for _, l := range r.late {
		r.jumps[l.from] = jump{to: len(r.out), inOut: true}
		r.emit(asm.Mov.Imm(asm.R0, l.result), asm.Ja.Label(""))
		r.jumps[len(r.out)-1] = jump{to: l.back, inOut: true}
	}
	r.late = nil
}

// link writes the distances of jumps.
func (r *rewriter) link() error {
	raw, at := make([]int, len(r.out)), 0
	for i := range r.out {
		raw[i] = at
		at += int(r.out[i].Width())
	}
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
