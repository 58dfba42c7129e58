package share

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// code is a program with its control flow resolved.
type code struct {
	in     asm.Instructions
	target []int  // by instruction: the one that it jumps to; -1
	callee []int  // ... the function of the program that it calls; -1
	landed []bool // another instruction jumps here
	starts []bool // a function begins here
}

// decode finds the targets of jumps and the starts of functions. It refuses instructions that flow does not interpret.
func decode(in asm.Instructions) (*code, error) {
	c := &code{in: in, target: make([]int, len(in)), callee: make([]int, len(in)), landed: make([]bool, len(in)), starts: make([]bool, len(in))}
	raw, index, symbol := make([]int, len(in)), map[int]int{}, map[string]int{}
	at := 0
	for i := range in {
		raw[i], index[at] = at, i
		at += int(in[i].Width())
		if s := in[i].Symbol(); s != "" {
			symbol[s] = i
		}
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("%w: an empty program", ErrNotShared)
	}
	c.starts[0] = true
	for i := range in {
		ins := &in[i]
		c.target[i], c.callee[i] = -1, -1
		if foreign(ins) {
			return nil, fmt.Errorf("%w: instruction %d (%v)", ErrNotShared, i, ins)
		}
		if ins.IsFunctionCall() {
			to, ok := symbol[ins.Reference()]
			if !ok {
				return nil, fmt.Errorf("%w: instruction %d calls function %q", ErrNotShared, i, ins.Reference())
			}
			c.callee[i], c.starts[to] = to, true
		}
		if !jumps(ins) {
			continue
		}
		to, ok := index[raw[i]+1+int(ins.Offset)]
		if !ok || ins.Reference() != "" {
			return nil, fmt.Errorf("%w: instruction %d jumps to no instruction", ErrNotShared, i)
		}
		c.target[i], c.landed[to] = to, true
	}
	return c, c.closed()
}

// closed refuses programs whose functions fall through or jump into each other.
func (c *code) closed() error {
	function := -1
	of := make([]int, len(c.in))
	for i := range c.in {
		if c.starts[i] {
			function++
		}
		of[i] = function
	}
	for i := range c.in {
		last := i+1 == len(c.in) || c.starts[i+1]
		if last && !exits(&c.in[i]) && !always(&c.in[i]) || c.target[i] >= 0 && of[c.target[i]] != of[i] {
			return fmt.Errorf("%w: instruction %d leaves its function", ErrNotShared, i)
		}
	}
	return nil
}

func jumps(ins *asm.Instruction) bool {
	op := ins.OpCode.JumpOp()
	return ins.OpCode.Class().IsJump() && op != asm.Call && op != asm.Exit
}

func calls(ins *asm.Instruction) bool {
	return ins.OpCode.Class().IsJump() && ins.OpCode.JumpOp() == asm.Call
}

func always(ins *asm.Instruction) bool { return jumps(ins) && ins.OpCode.JumpOp() == asm.Ja }

func exits(ins *asm.Instruction) bool {
	return ins.OpCode.Class().IsJump() && ins.OpCode.JumpOp() == asm.Exit
}

// foreign instructions are those whose effects are not known here: loads of old kinds, jumps through a register or of 32 bits, calls of functions of
// the kernel, references to functions, and instructions that are newer than this list.
func foreign(ins *asm.Instruction) bool {
	op, class := ins.OpCode, ins.OpCode.Class()
	switch {
	case op == asm.InvalidOpCode, ins.Dst > asm.R10, ins.Src > asm.R10:
		return true
	case class == asm.LdClass:
		return !op.IsDWordLoad() || ins.Src > asm.PseudoMapValue
	case class == asm.LdXClass:
		return op.Mode() != asm.MemMode && op.Mode() != asm.MemSXMode
	case class == asm.StClass:
		return op.Mode() != asm.MemMode
	case class == asm.StXClass:
		return op.Mode() != asm.MemMode && op.Mode() != asm.AtomicMode
	case calls(ins):
		return !ins.IsBuiltinCall() && !ins.IsFunctionCall()
	case always(ins):
		return class != asm.JumpClass || op.Source() == asm.RegSource
	case jumps(ins):
		return op.JumpOp() > asm.JSLE
	}
	return false
}
