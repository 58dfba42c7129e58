package machine

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
)

var (
	randomSeed  = flag.Uint64("pisa.seed", 1, "seed of the random programs")
	randomCount = flag.Int("pisa.programs", 1500, "random programs to prove and to run")
)

// layout is the register arrays of random programs: stage by number, and the number of arrays in one map.
type layout struct {
	stages []int
	beside int
}

var (
	randomArrays = layout{[]int{0, 0, 1, 2}, 1}
	randomPairs  = layout{[]int{0, 0, 1, 1, 2, 2}, 2}
	randomRows   = layout{[]int{2, 0, 1, 3, 1, 2}, 2} // each in a stage of its own
)

const mostArrays = 6

func arrayName(i int) string { return fmt.Sprintf("array%d", i) }

// maps are the numbers of the first arrays of each.
func (l layout) maps() (list []int) {
	for i := 0; i < len(l.stages); i += l.beside {
		list = append(list, i)
	}
	return list
}

// writer writes random programs that the kernel's verifier would accept: pointers and numbers are in stack
// slots, a key in the uppermost one, numbers also in r7 to r9, the context in r6.
type writer struct {
	*rand.Rand
	layout
	out    asm.Instructions
	labels int
	depth  int
	ins    int // statements left
}

const (
	pointerSlots = 4
	numberSlots  = 2
	contextWords = 6
	keySlot      = -8
	loopSlot     = -80
)

func (w *writer) label() string {
	w.labels++
	return fmt.Sprintf("l%d", w.labels)
}

func (w *writer) emit(ins ...asm.Instruction) { w.out = append(w.out, ins...) }

// place marks where a label is.
func (w *writer) place(label string) { w.emit(asm.Mov.Imm(asm.R5, 0).WithSymbol(label)) }

func (w *writer) number() asm.Register { return asm.R7 + asm.Register(w.IntN(3)) }

func slot(i int) int16 { return int16(-16 - 8*i) }

func numberSlot(i int) int16 { return slot(pointerSlots + i) }

func randomProgram(r *rand.Rand, l layout) asm.Instructions {
	w := &writer{Rand: r, layout: l, ins: 6 + r.IntN(40)}
	w.emit(asm.Mov.Reg(asm.R6, asm.R1))
	for i := range pointerSlots {
		w.emit(asm.StoreImm(asm.R10, slot(i), 0, asm.Word), asm.StoreImm(asm.R10, slot(i)+4, 0, asm.Word))
		w.emit(asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.R10, slot(i), asm.R0, asm.DWord))
	}
	for i := range numberSlots {
		w.emit(asm.StoreMem(asm.R10, numberSlot(i), asm.R0, asm.DWord))
	}
	for n := asm.R7; n <= asm.R9; n++ {
		w.emit(asm.LoadMem(n, asm.R6, int16(4*w.IntN(contextWords)), asm.Word))
	}
	w.block()
	w.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	return w.out
}

func (w *writer) block() {
	for n := 2 + w.IntN(8); n > 0 && w.ins > 0; n-- {
		w.ins--
		w.statement()
	}
}

func (w *writer) statement() {
	switch k := w.IntN(27); {
	case k < 2:
		w.emit(asm.LoadMem(w.number(), asm.R6, int16(4*w.IntN(contextWords)), asm.Word))
	case k < 3:
		w.emit(asm.Mov.Imm(w.number(), int32(w.IntN(4))))
	case k < 4:
		w.emit(asm.Mov.Reg(w.number(), w.number()))
	case k < 6:
		w.arithmetic()
	case k < 7:
		w.emit(asm.Add.Reg(w.number(), w.number()))
	case k < 9:
		w.emit(asm.StoreMem(asm.R10, numberSlot(w.IntN(numberSlots)), w.number(), w.size()))
	case k < 11:
		w.emit(asm.LoadMem(w.number(), asm.R10, numberSlot(w.IntN(numberSlots)), w.size()))
	case k < 15:
		w.lookup()
	case k < 20:
		w.use()
	case k < 24 && w.depth < 4:
		w.branch()
	case k < 25 && w.depth < 2:
		w.loop()
	case k < 26:
		w.call()
	default:
		from, to := w.IntN(pointerSlots), w.IntN(pointerSlots)
		w.emit(asm.LoadMem(asm.R1, asm.R10, slot(from), asm.DWord), asm.StoreMem(asm.R10, slot(to), asm.R1, asm.DWord))
	}
}

func (w *writer) size() asm.Size {
	if w.IntN(3) == 0 {
		return asm.Word
	}
	return asm.DWord
}

func (w *writer) arithmetic() {
	ops := []asm.ALUOp{asm.Add, asm.And, asm.Xor, asm.Sub, asm.Mul, asm.Or, asm.RSh, asm.LSh, asm.ArSh, asm.Div, asm.Mod}
	operation, k := ops[w.IntN(len(ops))], int32(w.IntN(5)-1)
	if operation == asm.RSh || operation == asm.LSh || operation == asm.ArSh || operation == asm.Div || operation == asm.Mod {
		k = 1 + int32(w.IntN(3))
	}
	if w.IntN(2) == 0 {
		w.emit(operation.Imm32(w.number(), k))
		return
	}
	w.emit(operation.Imm(w.number(), k))
}

func (w *writer) lookup() {
	w.emit(asm.Mov.Reg(asm.R1, w.number()))
	if w.IntN(3) > 0 {
		w.emit(asm.And.Imm(asm.R1, 3))
	}
	w.emit(
		asm.StoreMem(asm.R10, keySlot, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, keySlot),
		asm.LoadMapPtr(asm.R1, 0).WithReference(arrayName(w.maps()[w.IntN(len(w.maps()))])),
		asm.FnMapLookupElem.Call(),
		asm.StoreMem(asm.R10, slot(w.IntN(pointerSlots)), asm.R0, asm.DWord),
	)
}

// use does one or two operations with the element that a slot points to, if it does.
func (w *writer) use() {
	skip := w.label()
	w.emit(asm.LoadMem(asm.R1, asm.R10, slot(w.IntN(pointerSlots)), asm.DWord), asm.JEq.Imm(asm.R1, 0, skip))
	for n := 1 + w.IntN(2); n > 0; n-- {
		w.operation()
	}
	w.place(skip)
}

func (w *writer) operation() {
	off, size := int16(4*w.IntN(2)), asm.Word
	if w.IntN(3) == 0 {
		off, size = 0, asm.DWord
	}
	off += int16(8 * w.IntN(w.beside))
	switch w.IntN(5) {
	case 0, 1:
		w.emit(asm.LoadMem(w.number(), asm.R1, off, size))
	case 2:
		w.emit(asm.StoreMem(asm.R1, off, w.number(), size))
	case 3:
		w.emit(asm.Mov.Reg(asm.R2, w.number()), asm.FetchAdd.Mem(asm.R1, asm.R2, size, off))
	case 4:
		w.emit(asm.Mov.Imm(asm.R0, 0), asm.CmpXchg.Mem(asm.R1, w.number(), size, off), asm.Mov.Reg(w.number(), asm.R0))
	}
}

func (w *writer) branch() {
	other, end := w.label(), w.label()
	ops := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JLT, asm.JSet, asm.JSGT}
	w.emit(ops[w.IntN(len(ops))].Imm(w.number(), int32(w.IntN(4)), other))
	w.depth++
	w.block()
	if w.IntN(8) == 0 {
		w.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	} else {
		w.emit(asm.Ja.Label(end))
	}
	w.place(other)
	if w.IntN(2) == 0 {
		w.block()
	}
	w.depth--
	w.place(end)
}

// loop runs a block as often as a word of the context gives, at most three times.
func (w *writer) loop() {
	head, end := w.label(), w.label()
	at := int16(loopSlot - 8*w.depth)
	w.emit(asm.LoadMem(asm.R1, asm.R6, int16(4*w.IntN(contextWords)), asm.Word), asm.StoreMem(asm.R10, at, asm.R1, asm.DWord))
	w.place(head)
	w.emit(
		asm.LoadMem(asm.R1, asm.R10, at, asm.DWord), asm.JEq.Imm(asm.R1, 0, end),
		asm.Sub.Imm(asm.R1, 1), asm.StoreMem(asm.R10, at, asm.R1, asm.DWord),
	)
	w.depth++
	w.block()
	w.depth--
	w.emit(asm.Ja.Label(head))
	w.place(end)
}

// call hands a pointer to a function that adds to its element.
func (w *writer) call() {
	w.emit(
		asm.LoadMem(asm.R1, asm.R10, slot(w.IntN(pointerSlots)), asm.DWord), asm.Mov.Reg(asm.R2, w.number()),
		asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoCall, Constant: -1}.WithReference("add"),
		asm.Mov.Reg(w.number(), asm.R0),
	)
}

func addFunction() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, 0).WithSymbol("add"),
		asm.JEq.Imm(asm.R1, 0, "add_end"),
		asm.Mov.Reg(asm.R0, asm.R2),
		asm.FetchAdd.Mem(asm.R1, asm.R0, asm.Word, 0),
		asm.Return().WithSymbol("add_end"),
	}
}

func randomSpec(insns asm.Instructions, l layout) *ebpf.CollectionSpec {
	spec := &ebpf.CollectionSpec{Maps: make(map[string]*ebpf.MapSpec)}
	for _, i := range l.maps() {
		spec.Maps[arrayName(i)] = &ebpf.MapSpec{Name: arrayName(i), Type: ebpf.Array, KeySize: 4, ValueSize: uint32(8 * l.beside), MaxEntries: 4,
			Tags: []string{"pisa:register", fmt.Sprintf("pisa:stage=%d", l.stages[i])}}
		if l.beside == 2 {
			spec.Maps[arrayName(i)].Tags = append(spec.Maps[arrayName(i)].Tags, fmt.Sprintf("pisa:arrays=word%d@%d,word%d@%d", i, l.stages[i], i+1, l.stages[i+1]))
		}
	}
	for _, ins := range insns {
		if ins.Reference() == "add" {
			insns = append(insns, addFunction()...)
			break
		}
	}
	// whose context begins with six numbers
	spec.Programs = map[string]*ebpf.ProgramSpec{"random": {Name: "random", Type: ebpf.SchedCLS, SectionName: "tc", Instructions: insns}}
	return spec
}

// TestRandomPrograms runs random programs on random packets under a monitor that checks rules 1 and 2 at every access.
// A program that breaks a rule on any packet must not be proven; and where a program is proven, the proof must cover
// every situation of every packet. (The opposite is not asserted: a proof may be refused for a path that no packet
// takes; the number of those is logged.)
func TestRandomPrograms(t *testing.T) {
	t.Logf("seed %d", *randomSeed)
	var broken, proven, refused, complex int
	for i := range *randomCount {
		r := rand.New(rand.NewPCG(*randomSeed, uint64(i)))
		l := []layout{randomArrays, randomPairs, randomRows}[i%3]
		spec := randomSpec(randomProgram(r, l), l)
		insns := spec.Programs["random"].Instructions
		m, err := watchProof(t, spec)
		if errors.Is(err, rule.ErrTooComplex) {
			complex++
			continue
		}
		if err != nil {
			t.Fatalf("program %d: %v\n%v", i, err, insns)
		}
		seen := runRandomly(insns, l, r, m)
		switch {
		case seen != "" && len(m.Found) == 0:
			t.Fatalf("program %d is proven, but: %s\n%v", i, seen, insns)
		case seen != "":
			broken++
		case len(m.Found) == 0:
			proven++
		case !slices.ContainsFunc(m.Found, func(v rule.Violation) bool { return v.Rule > 2 }):
			refused++
		}
	}
	t.Logf("%d break a rule, %d are proven, %d are refused though no packet was seen to break a rule, %d are too complex",
		broken, proven, refused, complex)
	if proven < broken/10 || broken < proven/10 {
		t.Error("random programs are too much alike: the test proves nothing")
	}
}

// watched is a proof and the situations that it has covered.
type watched struct {
	*Machine
	seen map[situation][]numbers
}

// situation is a state as far as both the proof and the monitor distinguish it.
type situation struct {
	pc, depth, top int
	touched        uint
	written        [mostArrays]uint8
}

// numbers are the spans of r7 to r9.
type numbers [3]expr.Span

func watchProof(t *testing.T, spec *ebpf.CollectionSpec) (*watched, error) {
	t.Helper()
	e, broken, err := declared.Read(spec)
	if err != nil || len(broken) > 0 {
		t.Fatal(broken, err)
	}
	m, err := newMachine(e, spec.Programs["random"], "random", 20_000)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Machine: m, seen: make(map[situation][]numbers)}
	w.watch = w.look
	return w, w.prove()
}

func (w *watched) look(s *state.State) {
	at := situation{pc: s.PC, depth: s.Depth(), top: s.Top}
	for _, a := range s.Access {
		if a.Touched && w.env.Arrays[a.Array].Stage == s.Top && w.mentioned(s.PC, int(a.Array)) {
			at.touched |= 1 << a.Array
			at.written[a.Array] = a.Written
		}
	}
	var in numbers
	for i := range in {
		in[i] = expr.Anything
		if v := s.Regs[7+i]; v.IsNumber() {
			in[i] = s.Facts.SpanOf(v.N)
		}
	}
	if !slices.Contains(w.seen[at], in) {
		w.seen[at] = append(w.seen[at], in)
	}
}

// mentioned reports whether a later instruction of the function refers to an array: otherwise the proof may have dropped its accesses.
func (w *watched) mentioned(pc, array int) bool { return w.mentions[pc].Meets(w.env.Arrays[array].Bit) }

// covers reports whether the proof has covered a situation with these numbers.
func (w *watched) covers(at situation, regs [3]uint64) bool {
	return slices.ContainsFunc(w.seen[at], func(in numbers) bool {
		for i, n := range regs {
			if n < in[i].Lo || n > in[i].Hi {
				return false
			}
		}
		return true
	})
}

func runRandomly(insns asm.Instructions, l layout, r *rand.Rand, w *watched) string {
	m := newMonitor(insns, l)
	if len(w.Found) == 0 {
		m.proof = w
	}
	for range 300 {
		var context [contextWords]uint32
		for i := range context {
			context[i] = r.Uint32N(4)
		}
		if seen := m.run(context); seen != "" {
			return seen
		}
	}
	return ""
}
