package specialize

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// drawn are registers that random programs calculate with; R6 to R8 begin with words of the packet.
var drawn = []asm.Register{asm.R0, asm.R2, asm.R3, asm.R4, asm.R5, asm.R6, asm.R7, asm.R8}

const (
	constants = 64 // bytes of .rodata
	packet    = 24
)

// load puts a constant into a register, as clang does.
func load(dst asm.Register, r *rand.Rand) asm.Instructions {
	size := []asm.Size{asm.Byte, asm.Half, asm.Word, asm.DWord}[r.IntN(4)]
	at := r.IntN(constants/8) * 8
	return asm.Instructions{
		asm.LoadMapValue(dst, 0, uint32(at&^15)).WithReference(section),
		asm.LoadMem(dst, dst, int16(at&15), size),
	}
}

// calculation is one instruction of arithmetic that the kernel accepts for any numbers.
func calculation(r *rand.Rand) asm.Instruction {
	ops := []asm.ALUOp{asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.Xor, asm.Mov, asm.LSh, asm.RSh, asm.ArSh, asm.Neg, asm.Div, asm.Mod}
	op, dst, src := ops[r.IntN(len(ops))], drawn[r.IntN(len(drawn))], drawn[r.IntN(len(drawn))]
	class := []asm.Class{asm.ALU64Class, asm.ALUClass}[r.IntN(2)]
	in := asm.Instruction{OpCode: asm.OpCode(class).SetALUOp(op), Dst: dst}
	switch {
	case op == asm.Neg:
		return in
	case shifts(op):
		in.Constant = int64(r.IntN(32))
	case r.IntN(2) == 0 || op == asm.Div || op == asm.Mod:
		in.Constant = int64(int32(r.Uint32())) | 1
	default:
		in.OpCode, in.Src = in.OpCode.SetSource(asm.RegSource), src
	}
	return in
}

// jump skips a number of instructions.
func jump(r *rand.Rand, width int16) asm.Instruction {
	ops := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSet, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE}
	class := []asm.Class{asm.JumpClass, asm.Jump32Class}[r.IntN(2)]
	in := asm.Instruction{OpCode: asm.OpCode(class).SetJumpOp(ops[r.IntN(len(ops))]), Dst: drawn[r.IntN(len(drawn))], Offset: width}
	if r.IntN(2) == 0 {
		in.Constant = int64(int32(r.Uint32()))
	} else {
		in.OpCode, in.Src = in.OpCode.SetSource(asm.RegSource), drawn[r.IntN(len(drawn))]
	}
	return in
}

func width(list asm.Instructions) (n int16) {
	for i := range list {
		n += int16(list[i].Width())
	}
	return n
}

// block is some instructions, or some after a jump, or two branches of which one is never taken.
func block(r *rand.Rand, depth int) (list asm.Instructions) {
	for range 1 + r.IntN(4) {
		if r.IntN(3) == 0 {
			list = append(list, load(drawn[r.IntN(len(drawn))], r)...)
		} else {
			list = append(list, calculation(r))
		}
	}
	if depth == 0 {
		return list
	}
	inner, other := block(r, depth-1), block(r, depth-1)
	around := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), Offset: width(other)}
	if r.IntN(2) == 0 {
		return slices.Concat(list, asm.Instructions{jump(r, width(inner))}, inner, block(r, depth-1))
	}
	return slices.Concat(list, asm.Instructions{jump(r, width(inner)+1)}, inner, asm.Instructions{around}, other, block(r, depth-1))
}

// random is a whole program: its answer depends on all registers.
func random(r *rand.Rand) asm.Instructions {
	begin := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, packet),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JLE).SetSource(asm.RegSource), Dst: asm.R4, Src: asm.R3, Offset: 2},
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
		asm.LoadMem(asm.R6, asm.R2, 0, asm.DWord), asm.LoadMem(asm.R7, asm.R2, 8, asm.DWord), asm.LoadMem(asm.R8, asm.R2, 16, asm.DWord),
	}
	for i, register := range drawn[:5] {
		begin = append(begin, asm.Mov.Imm(register, int32(i)))
	}
	all := append(begin, block(r, 3)...)
	for _, register := range drawn[1:] {
		all = append(all, asm.Mul.Imm(asm.R0, 31), asm.Xor.Reg(asm.R0, register))
	}
	return append(all, asm.Mov.Reg(asm.R1, asm.R0), asm.RSh.Imm(asm.R1, 32), asm.Xor.Reg(asm.R0, asm.R1), asm.Return())
}

// inKernel is a program in the kernel, with these constants.
func inKernel(t *testing.T, instructions asm.Instructions, data []byte) *ebpf.Program {
	t.Helper()
	instructions[0] = instructions[0].WithSymbol("random")
	coll, err := ebpf.NewCollection(&ebpf.CollectionSpec{
		Programs: map[string]*ebpf.ProgramSpec{"random": {Name: "random", Type: ebpf.XDP, License: "GPL", Instructions: instructions}},
		Maps: map[string]*ebpf.MapSpec{section: {Name: section, Type: ebpf.Array, KeySize: 4, ValueSize: constants, MaxEntries: 1, Flags: 128,
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: data}}}},
	})
	if err != nil {
		t.Fatalf("load: %+v\n%v", err, instructions)
	}
	t.Cleanup(coll.Close)
	return coll.Programs["random"]
}

// TestRandomPrograms runs programs that read constants, calculate and jump, as they are and specialized: the answers are the same, and most get shorter.
func TestRandomPrograms(t *testing.T) {
	testutil.NeedRoot(t)
	seed := testutil.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	before, after := 0, 0
	for n := range 150 {
		data := make([]byte, constants)
		for i := range data {
			if r.IntN(2) == 0 {
				data[i] = byte(r.Uint32())
			}
		}
		whole := random(r)
		short, err := Program(whole, data)
		if err != nil {
			t.Fatal(err)
		}
		before, after = before+len(whole), after+len(short)
		a, b := inKernel(t, whole, data), inKernel(t, short, data)
		for range 4 {
			in := make([]byte, 64)
			for i := range 3 {
				binary.NativeEndian.PutUint64(in[8*i:], r.Uint64()>>r.IntN(64))
			}
			want, _ := a.Run(&ebpf.RunOptions{Data: in})
			got, err := b.Run(&ebpf.RunOptions{Data: in})
			if err != nil || got != want {
				t.Fatalf("seed %d, program %d: %#x, specialized %#x, %v\n%v\nspecialized:\n%v", seed, n, want, got, err, whole, short)
			}
		}
	}
	if after >= before*9/10 {
		t.Errorf("%d instructions of %d are left", after, before)
	}
}

// TestLeaves lists removed and remaining code: a jump over code that another path reaches, a function without callers.
func TestLeaves(t *testing.T) {
	data := make([]byte, constants)
	data[0] = 1
	ja := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja)}
	whole := asm.Instructions{
		asm.LoadMapValue(asm.R2, 0, 0).WithReference(section).WithSymbol("main"),
		asm.LoadMem(asm.R3, asm.R2, 0, asm.Byte),
		asm.LoadMem(asm.R0, asm.R1, 0, asm.Word),
		asm.And.Imm(asm.R3, 1),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq), Dst: asm.R3, Offset: 1}, // never
		asm.Add.Imm(asm.R0, 7),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JNE), Dst: asm.R3, Offset: 1}, // always
		asm.Call.Label("seldom"),
		ja,
		asm.Return(),
		asm.Mov.Imm(asm.R0, 5).WithSymbol("seldom"),
		asm.Return(),
	}
	short, err := Program(whole, data)
	if err != nil {
		t.Fatal(err)
	}
	// The first instruction of a function stays: the kernel asks for its line in the source.
	want := asm.Instructions{whole[0], whole[2], whole[5], whole[9]}
	if len(short) != len(want) {
		t.Fatalf("left are\n%v", short)
	}
	for i := range want {
		if short[i].OpCode != want[i].OpCode || short[i].Constant != want[i].Constant {
			t.Errorf("instruction %d is %v, not %v", i, short[i], want[i])
		}
	}
	whole[8].OpCode = asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja).SetSource(asm.RegSource) // to the address in a register
	if _, err := Program(whole, data); !errors.Is(err, errForeign) {
		t.Errorf("an unknown instruction: %v", err)
	}
}
