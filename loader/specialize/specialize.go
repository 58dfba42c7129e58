// Package specialize compiles a program's constants into its instructions before it is proven and loaded.
//
// Programs read their configuration from a section of constants (.rodata). The kernel's verifier knows these numbers, and
// removes code that no path reaches, but it keeps every load of a constant, every mask of it and every comparison that jumps over code
// that is reached: a third of the instructions that a packet executes. Here constants are followed through the registers (Wegman and Zadeck,
// "Constant propagation with conditional branches", ACM TOPLAS 13, 1991), and branches with one outcome and unused results are removed.
//
// What is removed: loads of constants, arithmetic whose result is never read, jumps that are always or never taken, and
// instructions that no path reaches. Loads, stores and calls that a packet's path makes stay, in their order.
package specialize

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// section holds the constants.
const section = ".rodata"

// errForeign is returned for instructions that are not followed here. The program then stays as it is.
var errForeign = errors.New("unknown instruction")

// Collection specializes all programs of an object. data is its section of constants, with the values that it will be loaded with.
func Collection(spec *ebpf.CollectionSpec, data []byte) error {
	for name, p := range spec.Programs {
		instructions, err := Program(p.Instructions, data)
		if errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			return fmt.Errorf("specialize program %s: %w", name, err)
		}
		p.Instructions = instructions
	}
	return nil
}

// insn is an instruction with the results of the analysis.
type insn struct {
	asm.Instruction
	target  int  // index of a jump's target; -1
	callee  int  // index of the function that it calls, or hands to a helper; -1
	entry   bool // a function begins here
	patched bool // by CO-RE, when it is loaded
	removed bool
	live    uint16 // registers that are read after it, one bit each
	read    uint16 // ... that it reads
	write   uint16
	before  registers
	reached bool
}

// Program returns the instructions without those that the constants make superfluous.
func Program(instructions asm.Instructions, data []byte) (asm.Instructions, error) {
	p, err := decode(instructions)
	if err != nil {
		return nil, err
	}
	p.follow(data)
	p.replace(data)
	for p.tidy() || p.sweep() {
	}
	return p.encode()
}

type program []insn

// decode finds where jumps go and where functions begin.
func decode(instructions asm.Instructions) (program, error) {
	p, index, called, symbols := make(program, len(instructions)), map[int]int{}, map[string]bool{}, map[string]int{}
	raw := 0
	for i := range instructions {
		in := &instructions[i]
		p[i] = insn{Instruction: *in, target: -1, callee: -1, patched: btf.CORERelocationMetadata(in) != nil}
		index[raw] = i
		raw += int(in.Width())
		if in.IsFunctionReference() {
			called[in.Reference()] = true
		}
		if name := in.Symbol(); name != "" {
			symbols[name] = i
		}
	}
	raw = 0
	for i := range p {
		in := &p[i]
		in.entry = i == 0 || in.Symbol() != "" && called[in.Symbol()]
		raw += int(in.Width())
		if in.foreign() {
			return nil, errForeign
		}
		if in.IsFunctionReference() {
			at, ok := symbols[in.Reference()]
			if !ok {
				return nil, errForeign
			}
			in.callee = at
		}
		if !in.jumps() {
			continue
		}
		at, ok := index[raw+int(in.Offset)]
		if !ok || in.Reference() != "" {
			return nil, errForeign
		}
		in.target = at
	}
	if last := len(p) - 1; last < 0 || !p[last].exits() && !(p[last].jumps() && p[last].always()) {
		return nil, errForeign
	}
	return p, nil
}

// jumps reports whether an instruction has a target.
func (in *insn) jumps() bool {
	op := in.OpCode.JumpOp()
	return in.OpCode.Class().IsJump() && op != asm.Call && op != asm.Exit
}

func (in *insn) always() bool { return in.OpCode.JumpOp() == asm.Ja }
func (in *insn) exits() bool  { return in.OpCode.Class().IsJump() && in.OpCode.JumpOp() == asm.Exit }

// foreign instructions are those whose effects are not known here.
func (in *insn) foreign() bool {
	class := in.OpCode.Class()
	switch {
	case in.Dst > asm.R10 || class == asm.LdClass && !in.OpCode.IsDWordLoad():
		return true
	case in.jumps() && in.always():
		return class != asm.JumpClass || in.OpCode.Source() == asm.RegSource
	case in.jumps():
		_, known := compare(in.OpCode.JumpOp(), 0, 0, 0, 0)
		return !known
	}
	return false
}

// follow finds what each register holds, on every path that the constants allow.
func (p program) follow(data []byte) {
	var work []int
	arrive := func(at int, r *registers) {
		if p[at].before.merge(r) || !p[at].reached {
			p[at].reached = true
			work = append(work, at)
		}
	}
	start := anything()
	arrive(0, &start)
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		in := &p[i]
		if in.callee >= 0 {
			arrive(in.callee, &start)
		}
		taken, known := in.outcome()
		r := in.before
		r.step(in, data)
		if in.target >= 0 && (taken || !known) {
			arrive(in.target, &r)
		}
		if !in.exits() && (!taken || !known) {
			arrive(i+1, &r)
		}
	}
}

// outcome is whether a jump is taken, where that is known; other instructions go on to the next.
func (in *insn) outcome() (taken, known bool) {
	switch {
	case !in.jumps():
		return false, true
	case in.always():
		return true, true
	}
	return in.before.decide(in)
}

// replace applies the results to the instructions.
func (p program) replace(data []byte) {
	for i := range p {
		in := &p[i]
		if !in.reached {
			in.removed = true
			continue
		}
		taken, known := in.outcome()
		switch {
		case in.jumps() && !in.always() && known && taken:
			in.become(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja)})
		case in.jumps() && !in.always() && known:
			in.removed = !in.entry
		case in.pure():
			in.fold(data)
		}
		if !in.removed {
			in.immediate()
		}
	}
}

// become replaces an instruction and keeps its source line.
func (in *insn) become(other asm.Instruction) {
	other.Metadata = in.Metadata
	in.Instruction = other
}

// pure instructions only set a register.
func (in *insn) pure() bool {
	class := in.OpCode.Class()
	return !in.patched && (class.IsALU() || in.OpCode.IsDWordLoad() || class == asm.LdXClass && in.before[in.Src].kind == address)
}

// fold makes a constant of an instruction whose result is known, where that takes no more instructions.
func (in *insn) fold(data []byte) {
	after := in.before
	after.step(in, data)
	n := after[in.Dst]
	switch {
	case n.kind != number || in.OpCode.IsDWordLoad() && in.Reference() != "":
	case int64(n.n) == int64(int32(n.n)):
		in.become(asm.Mov.Imm(in.Dst, int32(n.n)))
	case n.n <= math.MaxUint32:
		in.become(asm.Mov.Imm32(in.Dst, int32(uint32(n.n))))
	}
}

// immediate writes a known second operand into the instruction, so that no instruction need load it.
func (in *insn) immediate() {
	class := in.OpCode.Class()
	if in.patched || in.OpCode.Source() != asm.RegSource || !class.IsALU() && !(in.jumps() && !in.always()) {
		return
	}
	op, b := in.OpCode.ALUOp(), in.before[in.Src]
	if b.kind != number || class.IsALU() && (in.Offset != 0 || op == asm.Swap || op == asm.Neg || op == asm.Div || op == asm.Mod) {
		return
	}
	n, wide := int64(b.n), class == asm.ALU64Class || class == asm.JumpClass
	if !wide {
		n = int64(int32(b.n))
	}
	if n != int64(int32(n)) || class.IsALU() && shifts(op) && (n < 0 || n > 63 || !wide && n > 31) {
		return
	}
	in.OpCode = in.OpCode.SetSource(asm.ImmSource)
	in.Src, in.Constant = 0, n
}

func shifts(op asm.ALUOp) bool { return op == asm.LSh || op == asm.RSh || op == asm.ArSh }

// next is the first instruction from i on that is left.
func (p program) next(i int) int {
	for i < len(p) && p[i].removed {
		i++
	}
	return i
}

// tidy makes jumps to jumps point to the final target, and removes jumps to the next instruction.
func (p program) tidy() (changed bool) {
	for i := range p {
		in := &p[i]
		if in.removed || in.target < 0 {
			continue
		}
		at := p.next(in.target)
		for hops := 0; p[at].jumps() && p[at].always() && hops < len(p) && at != i; hops++ {
			at = p.next(p[at].target)
		}
		in.target = at
		if at == p.next(i+1) && !in.entry {
			in.removed, changed = true, true
		}
	}
	return p.unreachable() || changed
}

// unreachable removes code to which only removed jumps led: the verifier refuses unreachable code.
func (p program) unreachable() (changed bool) {
	seen := make([]bool, len(p))
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if i < 0 || seen[i] {
			continue
		}
		seen[i] = true
		on, to := p.successors(i)
		work = append(work, on, to, p[i].callee)
	}
	for i := range p {
		if !seen[i] && !p[i].removed {
			p[i].removed, changed = true, true
		}
	}
	return changed
}

// successors are the next remaining instruction and the target of the jump; -1 if there is none.
func (p program) successors(i int) (on, to int) {
	in := &p[i]
	on, to = -1, -1
	if in.target >= 0 {
		to = p.next(in.target)
	}
	if !in.exits() && !(in.jumps() && in.always()) {
		on = p.next(i + 1)
	}
	return on, to
}

const everyArgument = 1<<asm.R1 | 1<<asm.R2 | 1<<asm.R3 | 1<<asm.R4 | 1<<asm.R5

// reads and writes are registers of an instruction, one bit each.
func (in *insn) reads() (bits uint16) {
	class, dst, src := in.OpCode.Class(), uint16(1)<<in.Dst, uint16(0)
	if in.OpCode.Source() == asm.RegSource && in.Src <= asm.R10 {
		src = 1 << in.Src
	}
	switch {
	case in.OpCode.IsDWordLoad():
		return 0
	case class == asm.LdXClass:
		return 1 << in.Src
	case class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode:
		return dst | 1<<in.Src | 1<<asm.R0
	case class == asm.StXClass:
		return dst | 1<<in.Src
	case class == asm.StClass:
		return dst
	case class.IsALU() && in.OpCode.ALUOp() == asm.Mov:
		return src
	case class.IsALU():
		return dst | src
	case in.exits():
		return 1 << asm.R0
	case in.jumps() && in.always():
		return 0
	case in.jumps():
		return dst | src
	}
	return everyArgument // a call; one through a register, whichever it is
}

func (in *insn) writes() uint16 {
	class := in.OpCode.Class()
	switch {
	case class.IsALU() || in.OpCode.IsDWordLoad() || class == asm.LdXClass:
		return 1 << in.Dst
	case class.IsJump() && in.OpCode.JumpOp() == asm.Call:
		return everyArgument | 1<<asm.R0
	}
	return 0
}

// needs are the registers that must be right before an instruction.
func (in *insn) needs() uint16 { return in.live&^in.write | in.read }

// sweep removes instructions that set a register that is not read.
func (p program) sweep() (changed bool) {
	p.liveness()
	for i := range p {
		in := &p[i]
		if !in.removed && !in.entry && in.pure() && in.live&(1<<in.Dst) == 0 {
			in.removed, changed = true, true
		}
	}
	return changed
}

// liveness finds which registers are read after each instruction.
func (p program) liveness() {
	for i := range p {
		p[i].live, p[i].read, p[i].write = 0, p[i].reads(), p[i].writes()
	}
	for changed := true; changed; {
		changed = false
		for i := len(p) - 1; i >= 0; i-- {
			if p[i].removed {
				continue
			}
			var live uint16
			on, to := p.successors(i)
			if on >= 0 {
				live = p[on].needs()
			}
			if to >= 0 {
				live |= p[to].needs()
			}
			if live != p[i].live {
				p[i].live, changed = live, true
			}
		}
	}
}

// encode emits the remaining instructions, with the distances of jumps.
func (p program) encode() (asm.Instructions, error) {
	raw, at := make([]int, len(p)), 0
	for i := range p {
		raw[i] = at
		if !p[i].removed {
			at += int(p[i].Width())
		}
	}
	var list asm.Instructions
	for i := range p {
		in := &p[i]
		if in.removed {
			continue
		}
		if in.target >= 0 {
			far := raw[in.target] - raw[i] - int(in.Width())
			if far != int(int16(far)) {
				return nil, errForeign
			}
			in.Offset = int16(far)
		}
		list = append(list, in.Instruction)
	}
	return slices.Clip(list), nil
}
