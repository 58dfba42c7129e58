// Package code is a program as instructions: functions, their control flow graphs, and which registers are live.
package code

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// Insn is one instruction with all its metadata resolved to numbers.
type Insn struct {
	asm.Instruction
	Raw    int    // offset in units of 8 bytes, as a disassembly counts
	Target int    // target of a jump, or the first instruction of a called function; -1
	Array  int    // map that a constant load refers to; -1
	Core   bool   // patched by CO-RE when it is loaded: its constant means nothing yet
	Field  string // the field that it is patched for, as "structure.field"; "" where unknown
	Fn     int
}

// function is a range of instructions that only calls leave.
type function struct {
	start, end int
	Graph      *graph
}

// Program is the code of one entry point with all functions that it calls.
type Program struct {
	Name  string
	Hook  ebpf.ProgramType
	Insns []Insn
	Funcs []function
	Merge []bool // several paths lead to this instruction

	Recirculates bool // it refers to the programs of the second pass
}

// Decode resolves jumps, calls and map references. It refuses what no kernel would load.
func Decode(spec *ebpf.ProgramSpec, arrays map[string]int) (*Program, error) {
	p := &Program{Name: spec.Name, Hook: spec.Type, Insns: make([]Insn, len(spec.Instructions))}
	if len(p.Insns) == 0 {
		return nil, fmt.Errorf("%w: no instructions", rule.ErrMalformed)
	}
	offsets, symbols := p.place(spec.Instructions)
	if err := p.split(symbols); err != nil {
		return nil, err
	}
	for i := range p.Insns {
		if err := p.resolve(i, offsets, symbols, arrays); err != nil {
			return nil, err
		}
	}
	if err := p.link(); err != nil {
		return nil, err
	}
	return p, nil
}

// place numbers the instructions: raw offset to index, and symbol to index.
func (p *Program) place(insns asm.Instructions) (offsets map[int]int, symbols map[string]int) {
	offsets, symbols = make(map[int]int, len(insns)), make(map[string]int)
	raw := 0
	for i, ins := range insns {
		p.Insns[i] = Insn{Instruction: ins, Raw: raw, Target: -1, Array: -1}
		p.Insns[i].Core = btf.CORERelocationMetadata(&ins) != nil
		offsets[raw] = i
		raw += int(ins.Width())
		if name := ins.Symbol(); name != "" {
			if _, ok := symbols[name]; !ok {
				symbols[name] = i
			}
		}
	}
	return offsets, symbols
}

// split finds the functions: the first instruction and whatever is called by name begins one.
func (p *Program) split(symbols map[string]int) error {
	starts := make([]bool, len(p.Insns))
	starts[0] = true
	for i := range p.Insns {
		in := &p.Insns[i]
		if !in.IsFunctionReference() {
			continue
		}
		at, ok := symbols[in.Reference()]
		if !ok {
			return fmt.Errorf("%w: instruction %d calls unknown function %q", rule.ErrMalformed, in.Raw, in.Reference())
		}
		in.Target = at
		starts[at] = true
	}
	for i := range p.Insns {
		if starts[i] {
			p.Funcs = append(p.Funcs, function{start: i})
		}
		p.Insns[i].Fn = len(p.Funcs) - 1
		p.Funcs[len(p.Funcs)-1].end = i + 1
	}
	return nil
}

func (p *Program) resolve(i int, offsets map[int]int, symbols map[string]int, arrays map[string]int) error {
	in := &p.Insns[i]
	switch {
	case in.OpCode == asm.InvalidOpCode || in.Dst > asm.R10 || in.Src > asm.R10 && !in.IsLoadFromMap():
		return fmt.Errorf("%w: instruction %d cannot be decoded", rule.ErrMalformed, in.Raw)
	case in.IsLoadFromMap():
		at, ok := arrays[in.Reference()]
		if !ok {
			return fmt.Errorf("%w: instruction %d refers to unknown map %q", rule.ErrMalformed, in.Raw, in.Reference())
		}
		in.Array = at
	case in.OpCode.JumpOp() == asm.Ja && in.OpCode.Class().IsJump() && in.OpCode.Source() == asm.RegSource:
		return fmt.Errorf("%w: instruction %d jumps to an address in a register, which cannot be followed", rule.ErrMalformed, in.Raw)
	case in.OpCode.Class().IsJump() && !leaves(in):
		at, ok := jumpTarget(in, offsets, symbols)
		if !ok || p.Insns[at].Fn != in.Fn {
			return fmt.Errorf("%w: instruction %d jumps out of its function", rule.ErrMalformed, in.Raw)
		}
		in.Target = at
	}
	return nil
}

// leaves reports whether a jump instruction is a call or an exit.
func leaves(in *Insn) bool {
	op := in.OpCode.JumpOp()
	return op == asm.Call || op == asm.Exit
}

func jumpTarget(in *Insn, offsets map[int]int, symbols map[string]int) (int, bool) {
	if ref := in.Reference(); ref != "" {
		at, ok := symbols[ref]
		return at, ok
	}
	distance := int(in.Offset)
	if in.OpCode.Class() == asm.Jump32Class && in.OpCode.JumpOp() == asm.Ja {
		distance = int(in.Constant)
	}
	at, ok := offsets[in.Raw+1+distance]
	return at, ok
}

// link builds the graphs of all functions and marks where paths meet.
func (p *Program) link() error {
	p.Merge = make([]bool, len(p.Insns))
	into := make([]int, len(p.Insns))
	for i := range p.Insns {
		next, err := p.successors(i)
		if err != nil {
			return err
		}
		for _, n := range next {
			into[n]++
		}
		if p.Insns[i].IsFunctionCall() {
			p.Merge[i+1] = true
		}
		if allow.LoopsOver(p.Insns[i].Instruction) {
			p.Merge[i] = true
		}
	}
	for i, n := range into {
		p.Merge[i] = p.Merge[i] || n > 1
	}
	for f := range p.Funcs {
		start := p.Funcs[f].start
		p.Merge[start] = p.Merge[start] || into[start] > 0
		p.Funcs[f].Graph = newGraph(p, p.Funcs[f])
	}
	return nil
}

// Ends reports whether only calculations on registers follow until the end of the function.
func (p *Program) Ends(i int) bool {
	for ; p.Insns[i].OpCode.Class().IsALU(); i++ {
	}
	return p.Insns[i].OpCode.Class().IsJump() && p.Insns[i].OpCode.JumpOp() == asm.Exit
}

// successors are the instructions of the same function that may follow. Calls return.
func (p *Program) successors(i int) ([]int, error) {
	in := &p.Insns[i]
	if in.OpCode.JumpOp() == asm.Exit {
		return nil, nil
	}
	if in.OpCode.Class().IsJump() && in.OpCode.JumpOp() == asm.Ja {
		return []int{in.Target}, nil
	}
	if i+1 >= p.Funcs[in.Fn].end {
		return nil, fmt.Errorf("%w: instruction %d runs off the end of its function", rule.ErrMalformed, in.Raw)
	}
	if in.OpCode.Class().IsJump() && in.OpCode.JumpOp() != asm.Call && in.Target != i+1 {
		return []int{i + 1, in.Target}, nil
	}
	return []int{i + 1}, nil
}

// line is the source line that instruction i was compiled from; nil without BTF line information.
func (p *Program) line(i int) *btf.Line {
	for start := p.Funcs[p.Insns[i].Fn].start; i >= start; i-- {
		if line, ok := p.Insns[i].Source().(*btf.Line); ok {
			return line
		}
	}
	return nil
}

// Source is the line of instruction i as a message shows it: "file.c:line: text".
func (p *Program) Source(i int) string {
	line := p.line(i)
	if line == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: %s", filepath.Base(line.FileName()), line.LineNumber(), strings.TrimSpace(line.Line()))
}

// Where is source without the text, for use inside a sentence.
func (p *Program) Where(i int) string {
	if line := p.line(i); line != nil {
		return fmt.Sprintf("%s:%d", filepath.Base(line.FileName()), line.LineNumber())
	}
	return fmt.Sprintf("instruction %d", p.Insns[i].Raw)
}

// SameCondition reports whether two branches were compiled from one source line: the compiler duplicates conditions.
func (p *Program) SameCondition(a, b int) bool {
	if a == b {
		return true
	}
	one, other := p.line(a), p.line(b)
	return one != nil && other != nil && *one == *other
}
