package share

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// lookup of an element of a map that is in R1, by a key at the top of the stack.
func lookupOf(before ...asm.Instruction) asm.Instructions {
	list := append(asm.Instructions{asm.StoreImm(asm.R10, -4, 0, asm.Word)}, before...)
	return slices.Concat(list, at(-4, asm.R2), asm.Instructions{asm.FnMapLookupElem.Call(), asm.Mov.Imm(asm.R0, 0), asm.Return()})
}

func load(reg asm.Register, name string) asm.Instruction {
	return asm.LoadMapPtr(reg, 0).WithReference(name)
}

var finish = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}

// calls has the program call a function after these.
func calling(before, function asm.Instructions) asm.Instructions {
	function[0] = function[0].WithSymbol("sub0")
	return slices.Concat(before, asm.Instructions{asm.Call.Label("sub0")}, finish, function)
}

// Programs that could touch another instance's words, or whose stack is not known, are refused, with the reason.
func TestRefuses(t *testing.T) {
	word := asm.StoreImm(asm.R10, -8, 1, asm.Word)
	for name, c := range map[string]struct {
		list asm.Instructions
		why  string
	}{
		"a map from another register": {lookupOf(load(asm.R6, "odd"), asm.Mov.Reg(asm.R1, asm.R6)), "is not seen"},
		"a map by two paths": {lookupOf(load(asm.R1, "odd"), asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq), Dst: asm.R6, Offset: 2},
			load(asm.R1, "single")), "is not seen"},
		"a map stored for later":   {lookupOf(load(asm.R6, "odd"), load(asm.R1, "odd")), "something else than a lookup"},
		"an element without a key": {slices.Concat(asm.Instructions{asm.LoadMapValue(asm.R1, 0, 0).WithReference("single"), asm.StoreImm(asm.R1, 0, 1, asm.Word)}, finish), "something else than a lookup"},
		"a ring that is looked up": {lookupOf(load(asm.R1, ringName)), "calls"},
		"a helper that writes": {slices.Concat(asm.Instructions{word, load(asm.R1, "odd")}, at(-8, asm.R2), at(-8, asm.R3), asm.Instructions{asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call()}, finish), "something else than a lookup"},
		"a helper that is not known": {slices.Concat(asm.Instructions{asm.FnGetCurrentTask.Call()}, finish), "it is not known what"},
		"a function of the kernel": {slices.Concat(asm.Instructions{{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: 1}}, finish),
			"instruction 0"},
		"an instruction that is none": {slices.Concat(asm.Instructions{{OpCode: asm.InvalidOpCode}}, finish), "instruction 0"},
		"a packet by an old load":     {slices.Concat(asm.Instructions{asm.LoadAbs(0, asm.Word)}, finish), "instruction 0"},
		"a stack too deep":            {slices.Concat(asm.Instructions{asm.StoreImm(asm.R10, -488, 1, asm.Word)}, finish), "bytes of stack"},
		"a stack too deep, through a pointer": {slices.Concat(at(-400, asm.R2), asm.Instructions{asm.Add.Imm(asm.R2, -80), asm.StoreImm(asm.R2, -8, 1, asm.Word)}, finish),
			"bytes of stack"},
		"a stack too deep, for a helper": {slices.Concat(at(-488, asm.R3), asm.Instructions{asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R4, 8), asm.FnXdpLoadBytes.Call()}, finish),
			"bytes of stack"},
		"a stack too deep, for a function": {calling(at(-488, asm.R1), asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}), "bytes of stack"},
		"a place at some number": {slices.Concat(at(-8, asm.R2), asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
			{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JNE), Dst: asm.R3, Offset: 2, Constant: 5}, asm.Mov.Imm(asm.R0, 0), asm.Return(),
			asm.Add.Reg(asm.R2, asm.R3), asm.StoreImm(asm.R2, 0, 1, asm.Word)}, finish), "is not followed"},
		"a place below a number": {slices.Concat(at(-8, asm.R2), asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 0, asm.Word), asm.Neg.Imm(asm.R3, 0), asm.Add.Reg(asm.R2, asm.R3),
			asm.StoreImm(asm.R2, 0, 1, asm.Word)}, finish), "is not followed"},
		"a place for a helper, below a number": {slices.Concat(at(-8, asm.R2), asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord), asm.Add.Reg(asm.R2, asm.R3),
			load(asm.R1, "vector"), asm.FnMapLookupElem.Call()}, finish), "is not followed"},
		"a place that a number is taken from": {slices.Concat(at(-8, asm.R2), asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 0, asm.Word), asm.Sub.Reg(asm.R2, asm.R3),
			asm.StoreImm(asm.R2, 0, 1, asm.Word)}, finish), "is not followed"},
		"a pointer that is decremented in a loop": {slices.Concat(at(-8, asm.R2), asm.Instructions{asm.Add.Imm(asm.R2, -8), asm.StoreImm(asm.R2, 0, 1, asm.Word),
			{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JNE), Dst: asm.R6, Offset: -3}}, finish), "the stack"},
		"a pointer stored in a map": {slices.Concat(lookupOf(load(asm.R1, "odd"))[:5], at(-8, asm.R3), asm.Instructions{asm.StoreMem(asm.R0, 0, asm.R3, asm.DWord)}, finish),
			"is stored"},
		"a pointer stored at two places": {slices.Concat(at(-64, asm.R2), asm.Instructions{asm.Mov.Reg(asm.R3, asm.R1), asm.And.Imm(asm.R3, 8), asm.Add.Reg(asm.R2, asm.R3),
			asm.StoreMem(asm.R2, 0, asm.R10, asm.DWord)}, finish), "is stored"},
		"a caller's stack, below": {calling(at(-64, asm.R1), asm.Instructions{asm.StoreImm(asm.R1, -8, 1, asm.Word), asm.Mov.Imm(asm.R0, 0), asm.Return()}), "below what was handed over"},
		"a caller's pointer, by two paths": {calling(slices.Concat(at(-64, asm.R1), asm.Instructions{{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq), Dst: asm.R6, Offset: 1},
			asm.Add.Reg(asm.R1, asm.R7)}), asm.Instructions{asm.StoreImm(asm.R1, 0, 1, asm.Word), asm.Mov.Imm(asm.R0, 0), asm.Return()}), "is not followed"},
		"a jump into another function": {calling(nil, asm.Instructions{{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq), Offset: -3}, asm.Return()}), "leaves its function"},
		"a program without an end":     {asm.Instructions{asm.Mov.Imm(asm.R0, 0)}, "leaves its function"},
		"no program":                   {nil, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &ebpf.CollectionSpec{Maps: mapSpecs(), Programs: map[string]*ebpf.ProgramSpec{"main": {Name: "main", Instructions: c.list}}}
			if err := Collection(spec, instances, NumberSpec()); !errors.Is(err, ErrNotShared) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
}

// The number of the instance is looked up wherever a path leads to a lookup that has not been by one: it is not what an earlier packet has left there.
func TestNumberOnEveryPath(t *testing.T) {
	one := slices.Concat(asm.Instructions{asm.StoreImm(asm.R10, -4, 0, asm.Word), load(asm.R1, "odd")}, at(-4, asm.R2), asm.Instructions{asm.FnMapLookupElem.Call()})
	over := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq), Dst: asm.R6, Offset: int16(len(one) + 1)} // a map's pointer is two long
	around := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), Offset: over.Offset}
	back := asm.Instruction{OpCode: around.OpCode, Offset: -int16(len(one) + 4)}
	long := over
	long.Offset++
	for name, c := range map[string]struct {
		list asm.Instructions
		want int
	}{
		"one after the other":  {slices.Concat(one, one, finish), 1},
		"one that may not be":  {slices.Concat(asm.Instructions{over}, one, one, finish), 2},
		"one of two":           {slices.Concat(asm.Instructions{long}, one, asm.Instructions{around}, one, one, finish), 2},
		"before one of two":    {slices.Concat(one, asm.Instructions{over}, one, one, finish), 1},
		"one, and a detour":    {slices.Concat(asm.Instructions{{OpCode: over.OpCode, Dst: asm.R6, Offset: int16(2*len(one) + 4)}}, one, one, finish, asm.Instructions{back}), 2},
		"one in each function": {calling(one, slices.Concat(one, one, finish)), 2},
		"none that needs it":   {slices.Concat(asm.Instructions{asm.StoreImm(asm.R10, -4, 0, asm.Word), load(asm.R1, "vector")}, at(-4, asm.R2), asm.Instructions{asm.FnMapLookupElem.Call()}, finish), 0},
		"again in a loop":      {slices.Concat(one, asm.Instructions{{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JNE), Dst: asm.R6, Offset: -int16(len(one) + 2)}}, finish), 1},
		"only on another path": {slices.Concat(asm.Instructions{over}, one, finish), 1},
	} {
		spec := &ebpf.CollectionSpec{Maps: mapSpecs(), Programs: map[string]*ebpf.ProgramSpec{"main": {Name: "main", Instructions: c.list}}}
		if err := Collection(spec, instances, NumberSpec()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := 0
		for _, ins := range spec.Programs["main"].Instructions {
			if ins.Reference() == Number {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: the number is looked up at %d places, not %d", name, got, c.want)
		}
	}
}

// Maps of which instances cannot have parts are refused.
func TestRefusesMaps(t *testing.T) {
	for name, ms := range map[string]*ebpf.MapSpec{
		"hash":      {Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 8},
		"mapped":    {Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 8, Flags: unix.BPF_F_MMAPABLE},
		"tables":    {Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 8},
		"too large": {Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1 << 30},
		Number:      {Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1},
	} {
		ms.Name = name
		if err := Collection(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{name: ms}}, instances, NumberSpec()); !errors.Is(err, ErrNotShared) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
