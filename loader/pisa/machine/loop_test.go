package machine_test

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/loader/pisa/machine"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// touchArray0 looks up an element of array 0, of the index in a stack slot that is 0, and adds to it.
func touchArray0(skip string) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.R10, -8, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, -8),
		asm.LoadMapPtr(asm.R1, 0).WithReference(machine.ArrayName(0)), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, skip),
		asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.Word),
	}
}

// TestCopiesPartInALoop: two registers that are equal in the first rounds of a loop differ in a later one; only there is a second element
// touched.
func TestCopiesPartInALoop(t *testing.T) {
	word := func(r asm.Register) asm.Instruction { return asm.LoadMem(r, asm.R6, 0, asm.Word) }
	insns := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), word(asm.R7), asm.Mov.Reg(asm.R8, asm.R7),
		word(asm.R1).WithSymbol("head"),
		asm.JEq.Imm(asm.R1, 0, "after"),
		asm.JEq.Imm(asm.R1, 1, "both"),
		word(asm.R7), asm.Ja.Label("head"),
		word(asm.R7).WithSymbol("both"), asm.Mov.Reg(asm.R8, asm.R7), asm.Ja.Label("head"),
	}
	insns = append(insns, asm.JNE.Imm(asm.R7, 1, "end").WithSymbol("after"))
	insns = append(insns, asm.JEq.Imm(asm.R8, 1, "end"))
	insns = append(insns, touchArray0("end")...)
	insns = append(insns, touchArray0("end")...)
	insns = append(insns, asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
	var broken *rule.Violations
	if _, err := pisa.Prove(machine.RandomSpec(insns, machine.RandomArrays)); !errors.As(err, &broken) || broken.List[0].Code != rule.SecondAccess {
		t.Errorf("got %v, want a second access", err)
	}
}

// TestEndlessLoop: the proof of a program that never ends still ends.
func TestEndlessLoop(t *testing.T) {
	insns := asm.Instructions{
		asm.Mov.Imm(asm.R7, 0),
		asm.Add.Imm(asm.R7, 1).WithSymbol("head"), asm.Ja.Label("head"),
	}
	if _, err := pisa.Prove(machine.RandomSpec(insns, machine.RandomArrays)); err != nil {
		t.Error(err)
	}
}

func TestRejectsMalformedPrograms(t *testing.T) {
	for name, insns := range map[string]asm.Instructions{
		"empty":         {},
		"runs off":      {asm.Mov.Imm(asm.R0, 0)},
		"jumps out":     {asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Offset: 100}, asm.Return()},
		"unknown label": {asm.Ja.Label("nowhere"), asm.Return()},
		"unknown map":   {asm.LoadMapPtr(asm.R1, 0).WithReference("nothing"), asm.Return()},
		"no register":   {asm.Mov.Imm(12, 0), asm.Return()},
	} {
		if _, err := pisa.Prove(machine.RandomSpec(insns, machine.RandomArrays)); !errors.Is(err, rule.ErrMalformed) {
			t.Errorf("%s: got %v, want %v", name, err, rule.ErrMalformed)
		}
	}
}
