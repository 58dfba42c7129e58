package allow

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/expr"
)

// atomics are the atomic operations: each is one read-modify-write.
var atomics = []asm.AtomicOp{
	asm.AddAtomic, asm.AndAtomic, asm.OrAtomic, asm.XorAtomic, asm.FetchAdd, asm.FetchAnd, asm.FetchOr, asm.FetchXor, asm.Xchg, asm.CmpXchg,
	LoadAcquire, StoreRelease,
}

// UnlistedInsn names an instruction that the proof does not interpret; "" for all others.
func UnlistedInsn(in asm.Instruction) string {
	switch class := in.OpCode.Class(); {
	case class.IsALU():
		operation := in.OpCode.ALUOp()
		if operation == asm.Mov && in.Offset != 0 {
			return fmt.Sprintf("a move with offset %d (an address space cast)", in.Offset)
		}
		if _, ok := AluOps[operation]; !ok && !slices.Contains(otherALU, operation) {
			return fmt.Sprintf("arithmetic operation %#x", uint32(in.OpCode))
		}
	case class == asm.StXClass && in.OpCode.Mode() == asm.AtomicMode:
		if operation := in.OpCode.AtomicOp(); !slices.Contains(atomics, operation) {
			return fmt.Sprintf("atomic operation %#x", uint32(operation))
		}
	case class == asm.LdXClass:
		if mode := in.OpCode.Mode(); mode != asm.MemMode && mode != asm.MemSXMode {
			return fmt.Sprintf("a load of mode %#x", uint8(mode))
		}
	case class == asm.StClass || class == asm.StXClass:
		if mode := in.OpCode.Mode(); mode != asm.MemMode {
			return fmt.Sprintf("a store of mode %#x", uint8(mode))
		}
	}
	return ""
}

// otherALU are the operations that are interpreted in addition to those of aluOps.
var otherALU = []asm.ALUOp{asm.Mov, asm.MovSX8, asm.MovSX16, asm.MovSX32, asm.Neg, asm.Swap, asm.SDiv, asm.SMod}

// AluOps are the arithmetic operations that have an expression of their own.
var AluOps = map[asm.ALUOp]expr.Op{
	asm.Add: expr.Add, asm.Sub: expr.Sub, asm.Mul: expr.Mul, asm.Div: expr.Div, asm.Mod: expr.Mod, asm.Or: expr.Or, asm.And: expr.And,
	asm.Xor: expr.Xor, asm.LSh: expr.Shl, asm.RSh: expr.Shr, asm.ArSh: expr.Sar,
}

// Bits of asm.AtomicOp that the library does not export.
const (
	Fetches      asm.AtomicOp = 0x0000_0100
	LoadAcquire  asm.AtomicOp = 0x0001_0000
	StoreRelease asm.AtomicOp = 0x0001_1000
)
