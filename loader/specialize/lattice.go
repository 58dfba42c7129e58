package specialize

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// kind is the state of knowledge about a register.
type kind uint8

const (
	unset   kind = iota // no path was followed to here yet
	number              // this number, on every path
	address             // this offset in the section of constants
	unknown
)

// value is a register's content as far as it is known before the program runs.
type value struct {
	kind kind
	n    uint64 // number, or offset
}

// registers are those of one place in the program.
type registers [asm.R10 + 1]value

// merge adds the state of another path to the same instruction; it reports whether anything changed.
func (r *registers) merge(other *registers) (changed bool) {
	for i := range r {
		switch {
		case other[i].kind == unset || r[i] == other[i] || r[i].kind == unknown:
		case r[i].kind == unset:
			r[i], changed = other[i], true
		default:
			r[i], changed = value{kind: unknown}, true
		}
	}
	return changed
}

// anything is the initial state of a function.
func anything() (r registers) {
	for i := range r {
		r[i].kind = unknown
	}
	return r
}

func (r *registers) forget(of ...asm.Register) {
	for _, register := range of {
		r[register] = value{kind: unknown}
	}
}

// step applies an instruction to the registers. data is the section of constants.
func (r *registers) step(in *insn, data []byte) {
	switch class := in.OpCode.Class(); {
	case class.IsALU():
		r[in.Dst] = r.calculate(in)
	case in.OpCode.IsDWordLoad():
		r[in.Dst] = loaded(in)
	case class == asm.LdXClass:
		r[in.Dst] = r.read(in, data)
	case class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode:
		r.forget(asm.R0, in.Src) // an exchange returns the old value in the source register
	case class.IsJump() && in.OpCode.JumpOp() == asm.Call:
		r.forget(asm.R0, asm.R1, asm.R2, asm.R3, asm.R4, asm.R5)
	}
}

func loaded(in *insn) value {
	switch {
	case in.patched:
	case in.Src == asm.PseudoMapValue && in.Reference() == section:
		return value{address, uint64(in.Constant) >> 32}
	case in.Src == 0 && in.Reference() == "":
		return value{number, uint64(in.Constant)}
	}
	return value{kind: unknown}
}

// read is a load from memory: the values of constants are known.
func (r *registers) read(in *insn, data []byte) value {
	from, size := r[in.Src], uint64(in.OpCode.Size().Sizeof())
	at := from.n + uint64(int64(in.Offset))
	if in.patched || from.kind != address || in.OpCode.Mode() != asm.MemMode || at > uint64(len(data)) || uint64(len(data))-at < size {
		return value{kind: unknown}
	}
	var word [8]byte
	copy(word[:], data[at:at+size])
	return value{number, binary.NativeEndian.Uint64(word[:])}
}

// operand is the second operand of a calculation or a comparison.
func (r *registers) operand(in *insn) value {
	if in.OpCode.Source() == asm.RegSource {
		return r[in.Src]
	}
	return value{number, uint64(int64(int32(in.Constant)))}
}

// calculate is the result of an arithmetic instruction.
func (r *registers) calculate(in *insn) value {
	op, wide := in.OpCode.ALUOp(), in.OpCode.Class() == asm.ALU64Class
	a, b := r[in.Dst], r.operand(in)
	if in.patched || in.Offset != 0 || op == asm.Swap {
		return value{kind: unknown}
	}
	switch {
	case op == asm.Mov && wide && b.kind == address:
		return b
	case op == asm.Add && wide && a.kind == address && b.kind == number:
		return value{address, a.n + b.n}
	case (op == asm.And || op == asm.Mul) && b == (value{kind: number}), op == asm.Mov && b.kind == number, op == asm.Neg && a.kind == number:
	case a.kind != number || b.kind != number:
		return value{kind: unknown}
	}
	n, ok := evaluate(op, a.n, b.n, wide)
	if !ok {
		return value{kind: unknown}
	}
	return value{number, n}
}

// evaluate is a calculation in 64 or 32 bits.
func evaluate(op asm.ALUOp, a, b uint64, wide bool) (uint64, bool) {
	bits := uint64(64)
	if !wide {
		bits, a, b = 32, uint64(uint32(a)), uint64(uint32(b))
	}
	n, ok := result(op, a, b, bits)
	if !wide {
		n = uint64(uint32(n))
	}
	return n, ok
}

func result(op asm.ALUOp, a, b, bits uint64) (uint64, bool) {
	switch op {
	case asm.Add:
		return a + b, true
	case asm.Sub:
		return a - b, true
	case asm.Mul:
		return a * b, true
	case asm.Or:
		return a | b, true
	case asm.And:
		return a & b, true
	case asm.Xor:
		return a ^ b, true
	case asm.LSh:
		return a << (b & (bits - 1)), true
	case asm.RSh:
		return a >> (b & (bits - 1)), true
	case asm.Neg:
		return -a, true
	case asm.Mov:
		return b, true
	case asm.ArSh:
		if bits == 32 {
			return uint64(int32(a) >> (b & 31)), true
		}
		return uint64(int64(a) >> (b & 63)), true
	}
	return 0, false
}

// decide is whether a conditional jump is taken; known is false where that depends on the packet.
func (r *registers) decide(in *insn) (taken, known bool) {
	a, b := r[in.Dst], r.operand(in)
	if a.kind != number || b.kind != number {
		return false, false
	}
	x, y := a.n, b.n
	i, j := int64(x), int64(y)
	if in.OpCode.Class() == asm.Jump32Class {
		x, y = uint64(uint32(x)), uint64(uint32(y))
		i, j = int64(int32(x)), int64(int32(y))
	}
	return compare(in.OpCode.JumpOp(), x, y, i, j)
}

func compare(op asm.JumpOp, x, y uint64, i, j int64) (taken, known bool) {
	switch op {
	case asm.JEq:
		return x == y, true
	case asm.JNE:
		return x != y, true
	case asm.JGT:
		return x > y, true
	case asm.JGE:
		return x >= y, true
	case asm.JLT:
		return x < y, true
	case asm.JLE:
		return x <= y, true
	case asm.JSet:
		return x&y != 0, true
	case asm.JSGT:
		return i > j, true
	case asm.JSGE:
		return i >= j, true
	case asm.JSLT:
		return i < j, true
	case asm.JSLE:
		return i <= j, true
	}
	return false, false
}
