package share

import (
	"fmt"
	"maps"

	"github.com/cilium/ebpf/asm"
)

// most is the kernel's limit on the stack of a function, in bytes.
const most = 512

// kind is the memory that a value may point to.
type kind uint8

const (
	unset kind = iota // no path has been followed to here yet
	other             // no stack
	own               // the function's own stack
	above             // the stack of a caller, which handed over a pointer
	lost              // a stack, it is not known where
)

// value of a register: if it is a pointer to a stack, it points to this offset or a higher one, from the frame pointer or from a caller's argument.
// The kernel's verifier ensures that nothing else is used as a pointer.
type value struct {
	kind  kind
	off   int64
	exact bool // it is a pointer, and exactly to this offset
	// natural, of other values: a number below 2^32, or such a number plus constants below 2^31, a million at most, which is the verifier's limit of
	// instructions. So it is not negative as a signed number of 64 bits, and a pointer plus it does not point lower.
	natural bool
}

// stack reports whether a value may point to a stack.
func (v value) stack() bool { return v.kind >= own }

// merge is the common knowledge of a register that has different values on two paths.
func merge(a, b value) value {
	switch {
	case a == b || b.kind == unset:
		return a
	case a.kind == unset:
		return b
	case a.kind == other && b.kind == other:
		return value{kind: other} // one of them is not natural
	case a.kind == other:
		return value{kind: b.kind, off: b.off}
	case b.kind == other:
		return value{kind: a.kind, off: a.off}
	case a.kind == b.kind && a.kind != lost && min(a.off, b.off) >= -most:
		return value{kind: a.kind, off: min(a.off, b.off)}
	}
	return value{kind: lost}
}

// registers are those of one place in the program, pointers to the stack that are stored there, and whether the slot of the instance's number is filled.
type registers struct {
	of       [asm.R10 + 1]value
	stored   map[int64]value // by place on the function's own stack; never changed, only replaced
	numbered bool
}

// merge adds the state of another path to the same instruction; it reports whether anything changed.
func (r *registers) merge(o *registers) (changed bool) {
	for i := range r.of {
		m := merge(r.of[i], o.of[i])
		changed = changed || m != r.of[i]
		r.of[i] = m
	}
	for _, at := range [2]map[int64]value{r.stored, o.stored} {
		for off := range at {
			was, ok := r.stored[off]
			if m := merge(orOther(r.stored[off]), orOther(o.stored[off])); !ok || m != was {
				r.keep(off, m)
				changed = true
			}
		}
	}
	if r.numbered && !o.numbered {
		r.numbered, changed = false, true
	}
	return changed
}

func orOther(v value) value {
	if v.kind == unset {
		v.kind = other
	}
	return v
}

// keep records the value stored at an offset.
func (r *registers) keep(off int64, v value) {
	next := maps.Clone(r.stored)
	if next == nil {
		next = map[int64]value{}
	}
	next[off] = v
	r.stored = next
}

// flow follows pointers to the stack on every path. It refuses programs that it cannot follow: rewriting places words of its own below a function's stack, and
// must know its depth.
type flow struct {
	*code
	numbers func(i int) bool // the replacement of an instruction fills the slot
	before  []registers
	reached []bool
	of      []int   // by instruction: the first one of its function
	depth   []int64 // by first instruction of a function: the lowest offset of its own stack that is used
	work    []int
}

func follow(c *code, numbers func(i int) bool) (*flow, error) {
	f := &flow{code: c, numbers: numbers, before: make([]registers, len(c.in)), reached: make([]bool, len(c.in)), of: make([]int, len(c.in)), depth: make([]int64, len(c.in))}
	for i := range c.in {
		f.of[i] = i
		if !c.starts[i] {
			f.of[i] = f.of[i-1]
		}
	}
	f.arrive(0, handed(&registers{}))
	for len(f.work) > 0 {
		i := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		if err := f.step(i); err != nil {
			return nil, fmt.Errorf("%w: instruction %d (%v): %w", ErrNotShared, i, f.in[i], err)
		}
	}
	return f, nil
}

// handed is a function's initial state, from its callers' arguments.
func handed(r *registers) (begin registers) {
	for n := range begin.of {
		begin.of[n] = value{kind: other}
	}
	for n := asm.R1; n <= asm.R5; n++ {
		if r.of[n].stack() {
			begin.of[n] = value{kind: max(r.of[n].kind, above)}
		}
	}
	begin.of[asm.R10] = value{kind: own, exact: true}
	return begin
}

func (f *flow) arrive(at int, r registers) {
	if !f.reached[at] {
		f.reached[at], f.before[at] = true, r
	} else if !f.before[at].merge(&r) {
		return
	}
	f.work = append(f.work, at)
}

// step follows one instruction to its successors.
func (f *flow) step(i int) error {
	ins, r := &f.in[i], f.before[i]
	if err := f.effect(i, ins, &r); err != nil {
		return err
	}
	if exits(ins) {
		return nil
	}
	r.numbered = r.numbered || f.numbers(i)
	on, jump := bounded(ins, r)
	if f.target[i] >= 0 {
		f.arrive(f.target[i], jump)
	}
	if !always(ins) {
		f.arrive(i+1, on)
	}
	return nil
}

// bounded is what is known after a comparison with a constant, on the next instruction and at the jump's target: a value that is at most a small
// number is natural.
func bounded(ins *asm.Instruction, r registers) (on, jump registers) {
	on, jump = r, r
	if ins.OpCode.Class() != asm.JumpClass || ins.OpCode.Source() != asm.ImmSource || r.of[ins.Dst].kind != other || int32(ins.Constant) < 0 {
		return on, jump
	}
	switch ins.OpCode.JumpOp() {
	case asm.JGT, asm.JGE:
		on.of[ins.Dst].natural = true
	case asm.JLT, asm.JLE:
		jump.of[ins.Dst].natural = true
	}
	return on, jump
}

func (f *flow) effect(i int, ins *asm.Instruction, r *registers) error {
	switch class := ins.OpCode.Class(); {
	case calls(ins):
		return f.call(i, r)
	case class.IsJump():
		return nil
	case class == asm.LdClass:
		r.of[ins.Dst] = value{kind: other}
	case class == asm.LdXClass:
		return f.load(i, ins, r)
	case class.IsStore():
		return f.store(i, ins, r)
	case ins.Dst == asm.R10:
		return fmt.Errorf("the frame pointer changes")
	default:
		r.of[ins.Dst] = calculate(ins, r)
	}
	return nil
}

// reach records an access through a pointer, or a pointer that is passed to a callee or helper, which access memory upwards from it.
func (f *flow) reach(i int, v value, off int64) error {
	switch at := v.off + off; {
	case v.kind == lost:
		return fmt.Errorf("where on the stack a pointer points is not followed")
	case v.kind == above && at < 0:
		return fmt.Errorf("a caller's stack is used below what was handed over")
	case v.kind == own && at < -most:
		return fmt.Errorf("the stack is used at %d", at)
	case v.kind == own:
		f.depth[f.of[i]] = min(f.depth[f.of[i]], at)
	}
	return nil
}

func (f *flow) load(i int, ins *asm.Instruction, r *registers) error {
	from, off := r.of[ins.Src], int64(ins.Offset)
	if err := f.reach(i, from, off); err != nil {
		return err
	}
	v := value{kind: other, natural: ins.OpCode.Size() != asm.DWord && ins.OpCode.Mode() == asm.MemMode}
	if from.kind == own && ins.OpCode.Size() == asm.DWord {
		for at, stored := range r.stored {
			switch lowest := from.off + off; {
			case from.exact && at == lowest:
				v = stored
			case !from.exact && at >= lowest:
				v = merge(v, stored)
			}
		}
	}
	r.of[ins.Dst] = v
	return nil
}

func (f *flow) store(i int, ins *asm.Instruction, r *registers) error {
	to, off := r.of[ins.Dst], int64(ins.Offset)
	if err := f.reach(i, to, off); err != nil {
		return err
	}
	what := value{kind: other}
	if ins.OpCode.Class() == asm.StXClass {
		what = r.of[ins.Src]
	}
	atomic, at := ins.OpCode.Mode() == asm.AtomicMode, to.off+off
	if what.stack() {
		if atomic || to.kind != own || !to.exact || at%8 != 0 || ins.OpCode.Size() != asm.DWord {
			return fmt.Errorf("a pointer to the stack is stored")
		}
		r.keep(at, what)
		return nil
	}
	if _, ok := r.stored[at]; ok && to.exact && to.kind == own && ins.OpCode.Size() == asm.DWord && !atomic {
		r.keep(at, what)
	}
	return nil
}

// call of a helper, or of a function of the program.
func (f *flow) call(i int, r *registers) error {
	count := 5
	if f.callee[i] < 0 {
		fn := asm.BuiltinFunc(f.in[i].Constant)
		n, ok := arguments[fn]
		if !ok {
			return fmt.Errorf("it is not known what %s does", fn)
		}
		count = n
	}
	for n := asm.R1; n < asm.R1+asm.Register(count); n++ {
		if f.callee[i] >= 0 && r.of[n].kind == lost {
			continue // the register may hold any old value; refused where the function uses it
		}
		if err := f.reach(i, r.of[n], 0); err != nil {
			return err
		}
	}
	if f.callee[i] >= 0 {
		f.arrive(f.callee[i], handed(r))
	}
	for n := asm.R0; n <= asm.R5; n++ {
		r.of[n] = value{kind: other}
	}
	return nil
}

// arguments of the helpers that a shared program may call: how many. None of these does anything with a map but a lookup, a report, and a tail call,
// whose program arrays all instances have in common.
var arguments = map[asm.BuiltinFunc]int{
	asm.FnMapLookupElem: 2, asm.FnRingbufOutput: 4, asm.FnTailCall: 3, asm.FnKtimeGetNs: 0, asm.FnGetPrandomU32: 0, asm.FnGetSmpProcessorId: 0,
	asm.FnXdpGetBuffLen: 1, asm.FnXdpLoadBytes: 4, asm.FnSkbLoadBytes: 4, asm.FnSkbPullData: 2,
}

// calculate is the result of an arithmetic instruction. Only sums and differences of 64 bits keep a pointer a pointer.
func calculate(ins *asm.Instruction, r *registers) value {
	op, a, b := ins.OpCode.ALUOp(), r.of[ins.Dst], value{kind: other, natural: int32(ins.Constant) >= 0}
	constant := int64(int32(ins.Constant))
	if ins.OpCode.Source() == asm.RegSource {
		b, constant = r.of[ins.Src], 0
	}
	switch {
	case ins.OpCode.Class() == asm.ALUClass:
		return value{kind: other, natural: true} // the upper half is zero
	case ins.Offset != 0:
		return value{kind: other}
	case op == asm.Mov:
		return b
	case op == asm.Add && a.kind == other && b.stack():
		return moved(b, a, 0)
	case op == asm.Add && a.stack():
		return moved(a, b, constant)
	case op == asm.Sub && a.stack() && ins.OpCode.Source() == asm.ImmSource:
		return moved(a, value{kind: other}, -constant)
	case op == asm.Sub && (a.stack() || b.stack()):
		return value{kind: lost}
	}
	byConstant := op == asm.Add && ins.OpCode.Source() == asm.ImmSource && a.natural && b.natural
	return value{kind: other, natural: byConstant || op == asm.And && (a.natural || b.natural) || op == asm.RSh && a.natural}
}

// moved is a pointer to the stack and a distance: a constant, or a number that is not negative.
func moved(p, distance value, constant int64) value {
	switch {
	case p.kind == lost, distance.stack(), p.off < -2*most:
		return value{kind: lost}
	case constant != 0:
		return value{kind: p.kind, off: p.off + constant, exact: p.exact}
	case distance.natural:
		return value{kind: p.kind, off: p.off}
	}
	return value{kind: lost}
}
