package pisa

import (
	"github.com/cilium/ebpf/asm"
)

var aluOps = map[asm.ALUOp]op{
	asm.Add: opAdd, asm.Sub: opSub, asm.Mul: opMul, asm.Div: opDiv, asm.Mod: opMod, asm.Or: opOr, asm.And: opAnd,
	asm.Xor: opXor, asm.LSh: opShl, asm.RSh: opShr, asm.ArSh: opSar,
}

// alu interprets an arithmetic instruction.
func (m *machine) alu(s *state, in *insn) {
	width := uint(64)
	if in.OpCode.Class() == asm.ALUClass {
		width = 32
	}
	dst := s.regs[in.Dst]
	src := number(m.nodes.number(uint64(in.Constant)), taint{})
	if in.OpCode.Source() == asm.RegSource && in.OpCode.ALUOp() != asm.Swap {
		src = s.regs[in.Src]
	}
	if in.core {
		src = number(m.nodes.leaf(anything), src.t)
	}
	m.setReg(s, in.Dst, m.calculate(in, dst, src, width))
}

func (m *machine) calculate(in *insn, dst, src value, width uint) value {
	switch operation := in.OpCode.ALUOp(); operation {
	case asm.Mov:
		return m.move(src, width)
	case asm.MovSX8:
		return m.signed(src, 8, width)
	case asm.MovSX16:
		return m.signed(src, 16, width)
	case asm.MovSX32:
		return m.signed(src, 32, width)
	case asm.Neg:
		n := m.nodes.binary(opSub, m.nodes.number(0), m.asNumber(dst))
		return number(m.nodes.truncate(n, width), dst.t)
	case asm.Swap:
		return m.swap(in, dst)
	default:
		if width == 64 && (dst.isPointer() || src.isPointer()) {
			return m.pointerMath(operation, dst, src)
		}
		return m.arithmetic(operation, dst, src, width)
	}
}

func (m *machine) move(src value, width uint) value {
	if width == 64 {
		return src
	}
	out := number(m.nodes.truncate(m.asNumber(src), 32), src.t)
	out.sum = src.sum
	return out
}

func (m *machine) signed(src value, from, width uint) value {
	n := m.nodes.extend(m.nodes.truncate(m.asNumber(src), from), from)
	return number(m.nodes.truncate(n, width), src.t)
}

func (m *machine) swap(in *insn, dst value) value {
	width := uint(in.Constant)
	if width != 16 && width != 32 {
		width = 64
	}
	n := m.nodes.truncate(m.asNumber(dst), width)
	if in.OpCode.Class() == asm.ALU64Class || in.OpCode.Endianness() == asm.BE {
		n = m.nodes.swap(n, width)
	}
	return number(n, dst.t)
}

// pointerMath: what the verifier lets a program do with a pointer is add and subtract.
func (m *machine) pointerMath(operation asm.ALUOp, dst, src value) value {
	t := dst.t.with(src.t)
	if operation == asm.Add && src.isPointer() && !dst.isPointer() {
		dst, src = src, dst
	}
	follows := dst.isPointer() && !src.isPointer() && dst.n != nil
	switch {
	case dst.isPointer() && src.isPointer() && operation == asm.Sub:
		return number(m.nodes.leaf(anything), t)
	case follows && operation == asm.Add:
		dst.n, dst.t = m.nodes.binary(opAdd, dst.n, m.asNumber(src)), t
		return dst
	case follows && operation == asm.Sub:
		dst.n, dst.t = m.nodes.binary(opSub, dst.n, m.asNumber(src)), t
		return dst
	}
	return value{form: formLost, t: t}
}

func (m *machine) arithmetic(operation asm.ALUOp, dst, src value, width uint) value {
	a, b := m.asNumber(dst), m.asNumber(src)
	t := dst.t.with(src.t)
	if isProduct(operation) {
		t.product |= t.from
	}
	o, ok := aluOps[operation]
	if !ok { // signed division
		return number(m.nodes.leaf(below(width)), t)
	}
	if width == 32 {
		a, b = m.narrowOperands(o, a, b)
	}
	out := number(m.nodes.truncate(m.nodes.binary(o, a, b), width), t)
	if width == 64 {
		out.base = baseOf(o, dst, src)
	}
	out.sum = m.sumOf(o, dst, src)
	return out
}

// baseOf: a pointer that a number was added to or taken from points to the same memory.
func baseOf(o op, dst, src value) source {
	switch {
	case o == opAdd && dst.base == nothing:
		return src.base
	case (o == opAdd || o == opSub) && src.base == nothing:
		return dst.base
	}
	return nothing
}

func isProduct(operation asm.ALUOp) bool {
	switch operation {
	case asm.Mul, asm.Div, asm.SDiv, asm.Mod, asm.SMod:
		return true
	}
	return false
}

// narrowOperands prepares a 32-bit operation: where upper bits would reach the result they are cut off first.
func (m *machine) narrowOperands(o op, a, b *node) (*node, *node) {
	switch o {
	case opShl:
		return a, m.nodes.binary(opAnd, b, m.nodes.number(31))
	case opShr:
		return m.nodes.truncate(a, 32), m.nodes.binary(opAnd, b, m.nodes.number(31))
	case opSar:
		return m.nodes.extend(m.nodes.truncate(a, 32), 32), m.nodes.binary(opAnd, b, m.nodes.number(31))
	case opDiv, opMod:
		return m.nodes.truncate(a, 32), m.nodes.truncate(b, 32)
	}
	return a, b
}

// sumOf: a counter plus or minus a number is still "the counter plus something", unless that is a counter itself.
func (m *machine) sumOf(o op, dst, src value) sum {
	addend := src
	if dst.sum == (sum{}) {
		addend = dst
	}
	switch {
	case addend.t.from&m.env.secrets != 0:
		return sum{}
	case o != opAdd && o != opSub || dst.sum != sum{} && src.sum != sum{}:
		return sum{}
	case o == opAdd && dst.sum == sum{}:
		return src.sum
	}
	return dst.sum
}
