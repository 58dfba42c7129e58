package pisa

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// insn is one instruction with everything that its metadata says resolved to numbers.
type insn struct {
	asm.Instruction
	raw    int  // offset in units of 8 bytes, as a disassembly counts
	target int  // where a jump goes, or the first instruction of a called function; -1
	array  int  // map that a constant load refers to; -1
	core   bool // patched by CO-RE when it is loaded: its constant means nothing yet
	fn     int
}

// function is a range of instructions that only calls leave.
type function struct {
	start, end int
	graph      *graph
}

// program is the code of one entry point with all functions that it calls.
type program struct {
	name  string
	hook  ebpf.ProgramType
	insns []insn
	funcs []function
	merge []bool // several ways lead to this instruction

	recirculates bool // it refers to the programs of the second pass
}

// decode resolves jumps, calls and map references. It refuses what no kernel would load.
func decode(spec *ebpf.ProgramSpec, arrays map[string]int) (*program, error) {
	p := &program{name: spec.Name, hook: spec.Type, insns: make([]insn, len(spec.Instructions))}
	if len(p.insns) == 0 {
		return nil, fmt.Errorf("%w: no instructions", ErrMalformed)
	}
	offsets, symbols := p.place(spec.Instructions)
	if err := p.split(symbols); err != nil {
		return nil, err
	}
	for i := range p.insns {
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
func (p *program) place(insns asm.Instructions) (offsets map[int]int, symbols map[string]int) {
	offsets, symbols = make(map[int]int, len(insns)), make(map[string]int)
	raw := 0
	for i, ins := range insns {
		p.insns[i] = insn{Instruction: ins, raw: raw, target: -1, array: -1}
		p.insns[i].core = btf.CORERelocationMetadata(&ins) != nil
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
func (p *program) split(symbols map[string]int) error {
	starts := make([]bool, len(p.insns))
	starts[0] = true
	for i := range p.insns {
		in := &p.insns[i]
		if !in.IsFunctionReference() {
			continue
		}
		at, ok := symbols[in.Reference()]
		if !ok {
			return fmt.Errorf("%w: instruction %d calls unknown function %q", ErrMalformed, in.raw, in.Reference())
		}
		in.target = at
		starts[at] = true
	}
	for i := range p.insns {
		if starts[i] {
			p.funcs = append(p.funcs, function{start: i})
		}
		p.insns[i].fn = len(p.funcs) - 1
		p.funcs[len(p.funcs)-1].end = i + 1
	}
	return nil
}

func (p *program) resolve(i int, offsets map[int]int, symbols map[string]int, arrays map[string]int) error {
	in := &p.insns[i]
	switch {
	case in.OpCode == asm.InvalidOpCode || in.Dst > asm.R10 || in.Src > asm.R10 && !in.IsLoadFromMap():
		return fmt.Errorf("%w: instruction %d cannot be decoded", ErrMalformed, in.raw)
	case in.IsLoadFromMap():
		at, ok := arrays[in.Reference()]
		if !ok {
			return fmt.Errorf("%w: instruction %d refers to unknown map %q", ErrMalformed, in.raw, in.Reference())
		}
		in.array = at
	case in.OpCode.JumpOp() == asm.Ja && in.OpCode.Class().IsJump() && in.OpCode.Source() == asm.RegSource:
		return fmt.Errorf("%w: instruction %d jumps to where a register says, which cannot be followed", ErrMalformed, in.raw)
	case in.OpCode.Class().IsJump() && !leaves(in):
		at, ok := jumpTarget(in, offsets, symbols)
		if !ok || p.insns[at].fn != in.fn {
			return fmt.Errorf("%w: instruction %d jumps out of its function", ErrMalformed, in.raw)
		}
		in.target = at
	}
	return nil
}

// leaves says whether a jump instruction is a call or an exit.
func leaves(in *insn) bool {
	op := in.OpCode.JumpOp()
	return op == asm.Call || op == asm.Exit
}

func jumpTarget(in *insn, offsets map[int]int, symbols map[string]int) (int, bool) {
	if ref := in.Reference(); ref != "" {
		at, ok := symbols[ref]
		return at, ok
	}
	distance := int(in.Offset)
	if in.OpCode.Class() == asm.Jump32Class && in.OpCode.JumpOp() == asm.Ja {
		distance = int(in.Constant)
	}
	at, ok := offsets[in.raw+1+distance]
	return at, ok
}

// link builds the graphs of all functions and marks where ways meet.
func (p *program) link() error {
	p.merge = make([]bool, len(p.insns))
	into := make([]int, len(p.insns))
	for i := range p.insns {
		next, err := p.successors(i)
		if err != nil {
			return err
		}
		for _, n := range next {
			into[n]++
		}
		if p.insns[i].IsFunctionCall() {
			p.merge[i+1] = true
		}
		if loopsOver(&p.insns[i]) {
			p.merge[i] = true
		}
	}
	for i, n := range into {
		p.merge[i] = p.merge[i] || n > 1
	}
	for f := range p.funcs {
		start := p.funcs[f].start
		p.merge[start] = p.merge[start] || into[start] > 0
		p.funcs[f].graph = newGraph(p, p.funcs[f])
	}
	return nil
}

// ends says whether nothing but calculations on registers follows until the end of the function.
func (p *program) ends(i int) bool {
	for ; p.insns[i].OpCode.Class().IsALU(); i++ {
	}
	return p.insns[i].OpCode.Class().IsJump() && p.insns[i].OpCode.JumpOp() == asm.Exit
}

// successors are the instructions of the same function that may come next. Calls return.
func (p *program) successors(i int) ([]int, error) {
	in := &p.insns[i]
	if in.OpCode.JumpOp() == asm.Exit {
		return nil, nil
	}
	if in.OpCode.Class().IsJump() && in.OpCode.JumpOp() == asm.Ja {
		return []int{in.target}, nil
	}
	if i+1 >= p.funcs[in.fn].end {
		return nil, fmt.Errorf("%w: instruction %d runs off the end of its function", ErrMalformed, in.raw)
	}
	if in.OpCode.Class().IsJump() && in.OpCode.JumpOp() != asm.Call && in.target != i+1 {
		return []int{i + 1, in.target}, nil
	}
	return []int{i + 1}, nil
}

// line is the source line that instruction i was compiled from; nil without BTF line information.
func (p *program) line(i int) *btf.Line {
	for start := p.funcs[p.insns[i].fn].start; i >= start; i-- {
		if line, ok := p.insns[i].Source().(*btf.Line); ok {
			return line
		}
	}
	return nil
}

// source is the line of instruction i as a message shows it: "file.c:line: text".
func (p *program) source(i int) string {
	line := p.line(i)
	if line == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: %s", filepath.Base(line.FileName()), line.LineNumber(), strings.TrimSpace(line.Line()))
}

// where is source without the text, for use inside a sentence.
func (p *program) where(i int) string {
	if line := p.line(i); line != nil {
		return fmt.Sprintf("%s:%d", filepath.Base(line.FileName()), line.LineNumber())
	}
	return fmt.Sprintf("instruction %d", p.insns[i].raw)
}
