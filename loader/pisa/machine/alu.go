package machine

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// alu interprets an arithmetic instruction.
func (m *Machine) alu(s *state.State, in *code.Insn) {
	width := uint(64)
	if in.OpCode.Class() == asm.ALUClass {
		width = 32
	}
	dst := s.Regs[in.Dst]
	src := value.Number(m.nodes.Number(uint64(in.Constant)), value.Taint{})
	if in.OpCode.Source() == asm.RegSource && in.OpCode.ALUOp() != asm.Swap {
		src = s.Regs[in.Src]
	}
	if in.Core {
		src = value.Number(m.nodes.Leaf(expr.Anything), src.T)
		src.Base = allow.KernelOffset(in.Field)
	}
	m.setReg(s, in.Dst, m.calculate(in, dst, src, width))
}

func (m *Machine) calculate(in *code.Insn, dst, src value.Value, width uint) value.Value {
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
		n := m.nodes.Binary(expr.Sub, m.nodes.Number(0), m.asNumber(dst))
		return value.Number(m.nodes.Truncate(n, width), dst.T)
	case asm.Swap:
		return m.swap(in, dst)
	default:
		if width == 64 && (dst.IsPointer() || src.IsPointer()) {
			return m.pointerMath(operation, dst, src)
		}
		return m.arithmetic(operation, dst, src, width)
	}
}

func (m *Machine) move(src value.Value, width uint) value.Value {
	if width == 64 {
		return src
	}
	out := value.Number(m.nodes.Truncate(m.asNumber(src), 32), src.T)
	out.Sum = src.Sum
	return out
}

func (m *Machine) signed(src value.Value, from, width uint) value.Value {
	n := m.nodes.Extend(m.nodes.Truncate(m.asNumber(src), from), from)
	return value.Number(m.nodes.Truncate(n, width), src.T)
}

func (m *Machine) swap(in *code.Insn, dst value.Value) value.Value {
	width := uint(in.Constant)
	if width != 16 && width != 32 {
		width = 64
	}
	n := m.nodes.Truncate(m.asNumber(dst), width)
	if in.OpCode.Class() == asm.ALU64Class || in.OpCode.Endianness() == asm.BE {
		n = m.nodes.Swap(n, width)
	}
	return value.Number(n, dst.T)
}

// pointerMath interprets addition and subtraction, the only arithmetic on pointers that the verifier allows.
func (m *Machine) pointerMath(operation asm.ALUOp, dst, src value.Value) value.Value {
	t := dst.T.With(src.T)
	if operation == asm.Add && src.IsPointer() && !dst.IsPointer() {
		dst, src = src, dst
	}
	follows := dst.IsPointer() && !src.IsPointer() && dst.N != nil
	switch {
	case dst.IsPointer() && src.IsPointer() && operation == asm.Sub:
		return value.Number(m.nodes.Leaf(expr.Anything), t)
	case follows && operation == asm.Add:
		dst.N, dst.T = m.nodes.Binary(expr.Add, dst.N, m.asNumber(src)), t
		return dst
	case follows && operation == asm.Sub:
		dst.N, dst.T = m.nodes.Binary(expr.Sub, dst.N, m.asNumber(src)), t
		return dst
	}
	return value.Value{Form: value.FormLost, T: t}
}

func (m *Machine) arithmetic(operation asm.ALUOp, dst, src value.Value, width uint) value.Value {
	a, b := m.asNumber(dst), m.asNumber(src)
	t := dst.T.With(src.T)
	if isProduct(operation) {
		t.Product = t.Product.Or(t.From)
	}
	o, ok := allow.AluOps[operation]
	if !ok { // signed division
		return value.Number(m.nodes.Leaf(expr.Below(width)), t)
	}
	if width == 32 {
		a, b = m.narrowOperands(o, a, b)
	}
	n := m.nodes.Truncate(m.nodes.Binary(o, a, b), width)
	out := value.Number(n, m.trace.Masked(n, t))
	if width == 64 {
		out.Base = baseOf(o, dst, src)
	}
	out.Sum = m.sumOf(o, dst, src)
	return out
}

// baseOf: a pointer that a number was added to or taken from points to the same memory.
func baseOf(o expr.Op, dst, src value.Value) value.Source {
	switch {
	case o == expr.Add && (dst.Base.Kernel() || src.Base.Kernel()):
		return allow.KernelSum(dst.Base, src.Base)
	case o == expr.Add && dst.Base == value.Nothing:
		return src.Base
	case (o == expr.Add || o == expr.Sub) && src.Base == value.Nothing:
		return dst.Base
	}
	return value.Nothing
}

func isProduct(operation asm.ALUOp) bool {
	switch operation {
	case asm.Mul, asm.Div, asm.SDiv, asm.Mod, asm.SMod:
		return true
	}
	return false
}

// narrowOperands prepares a 32-bit operation: where upper bits would reach the result they are cut off first.
func (m *Machine) narrowOperands(o expr.Op, a, b *expr.Node) (*expr.Node, *expr.Node) {
	switch o {
	case expr.Shl:
		return a, m.nodes.Binary(expr.And, b, m.nodes.Number(31))
	case expr.Shr:
		return m.nodes.Truncate(a, 32), m.nodes.Binary(expr.And, b, m.nodes.Number(31))
	case expr.Sar:
		return m.nodes.Extend(m.nodes.Truncate(a, 32), 32), m.nodes.Binary(expr.And, b, m.nodes.Number(31))
	case expr.Div, expr.Mod:
		return m.nodes.Truncate(a, 32), m.nodes.Truncate(b, 32)
	}
	return a, b
}

// sumOf: a counter plus or minus a number is still "the counter plus something", unless that is a counter itself.
func (m *Machine) sumOf(o expr.Op, dst, src value.Value) value.Sum {
	addend := src
	if dst.Sum == (value.Sum{}) {
		addend = dst
	}
	switch {
	case addend.T.From.Meets(m.env.Secrets):
		return value.Sum{}
	case o != expr.Add && o != expr.Sub || dst.Sum != value.Sum{} && src.Sum != value.Sum{}:
		return value.Sum{}
	case o == expr.Add && dst.Sum == value.Sum{}:
		return src.Sum
	}
	return dst.Sum
}
