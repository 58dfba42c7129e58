// Package expr represents the numbers that a program calculates: expressions, their intervals, and facts from branches.
package expr

import (
	"math"
	"math/bits"
)

// Op is the operation of a node. Comparisons are nodes, too: the result of one in a branch holds wherever the
// same comparison is made again.
type Op uint8

const (
	Const  Op = iota
	opLeaf    // a number of which only the span is known
	Add
	Sub
	Mul
	And
	Or
	Xor
	Shl
	Shr
	Sar
	Div      // by zero it is 0, as in BPF
	Mod      // by zero it is the dividend
	opSigned // sign extension from k bits
	opSwap   // byte swap of k bits, zero extended
	Eq
	ULess
	SLess
)

// Node is a number that a program calculates, in single-assignment form. Equal nodes are one node, so two
// registers that hold the same node hold the same number, on every path.
type Node struct {
	Op   Op
	A, B *Node
	K    uint64 // the number of a constant, the width of opSigned and opSwap
	Id   uint64
	Span Span // valid on every path; facts of a state may narrow it

	Owner  any  // of a leaf: the merge point at which different numbers became one
	Clock  bool // of a leaf: the time
	Random bool // of a leaf: the state of a generator, or the kernel's random number, on every path
	Grown  int  // number of times that its fact was widened there
}

type nodeKey struct {
	op   Op
	a, b *Node
	k    uint64
}

// Nodes makes nodes of one proof.
type Nodes struct {
	known map[nodeKey]*Node
	count uint64
}

// NewNodes begins a proof.
func NewNodes() *Nodes { return &Nodes{known: make(map[nodeKey]*Node)} }

func (ns *Nodes) intern(key nodeKey, sp Span) *Node {
	if n, ok := ns.known[key]; ok {
		return n
	}
	n := ns.add(key, sp)
	ns.known[key] = n
	return n
}

func (ns *Nodes) add(key nodeKey, sp Span) *Node {
	ns.count++
	return &Node{Op: key.op, A: key.a, B: key.b, K: key.k, Id: ns.count, Span: sp}
}

// Number is the constant k.
func (ns *Nodes) Number(k uint64) *Node {
	return ns.intern(nodeKey{op: Const, k: k}, Span{k, k})
}

// Leaf is a new number within sp, different from all others.
func (ns *Nodes) Leaf(sp Span) *Node { return ns.add(nodeKey{op: opLeaf}, sp) }

// Is reports whether n is the constant k.
func (n *Node) Is(k uint64) bool { return n.Op == Const && n.K == k }

// Binary is a o b on 64 bits.
func (ns *Nodes) Binary(o Op, a, b *Node) *Node {
	if a.Op == Const && b.Op == Const {
		return ns.Number(fold(o, a.K, b.K))
	}
	if commutes(o) && (a.Op == Const || b.Op != Const && a.Id > b.Id) {
		a, b = b, a
	}
	if n := ns.simplify(o, a, b); n != nil {
		return n
	}
	return ns.intern(nodeKey{op: o, a: a, b: b}, eval(o, a.Span, b.Span))
}

func commutes(o Op) bool {
	return o == Add || o == Mul || o == And || o == Or || o == Xor || o == Eq
}

// simplify finds a smaller node for a o b, with a constant operand in b; nil when there is none.
func (ns *Nodes) simplify(o Op, a, b *Node) *Node {
	if a == b {
		switch o {
		case Sub, Xor, ULess, SLess:
			return ns.Number(0)
		case Eq:
			return ns.Number(1)
		case And, Or:
			return a
		}
	}
	if b.Op != Const {
		return nil
	}
	switch {
	case b.K == 0 && (o == Add || o == Sub || o == Or || o == Xor || o == Shl || o == Shr || o == Sar):
		return a
	case b.K == 0 && (o == And || o == Mul || o == ULess):
		return ns.Number(0)
	case o == Sub:
		return ns.Binary(Add, a, ns.Number(-b.K))
	case o == Add && a.Op == Add && a.B.Op == Const:
		return ns.Binary(Add, a.A, ns.Number(a.B.K+b.K))
	case o == And && a.Op == And && a.B.Op == Const:
		return ns.Binary(And, a.A, ns.Number(a.B.K&b.K))
	case o == And && bits.OnesCount64(b.K+1) <= 1 && a.Span.Hi <= b.K:
		return a
	case (o == Shr || o == Sar) && a.Op == Shl && a.B == b && b.K < 64:
		if o == Sar {
			return ns.Extend(a.A, uint(64-b.K))
		}
		return ns.Truncate(a.A, uint(64-b.K))
	}
	return nil
}

// Truncate keeps the lowest bits.
func (ns *Nodes) Truncate(n *Node, width uint) *Node {
	if width >= 64 {
		return n
	}
	return ns.Binary(And, n, ns.Number(1<<width-1))
}

// Extend continues the sign of the lowest bits.
func (ns *Nodes) Extend(n *Node, width uint) *Node {
	if width >= 64 || n.Span.Hi < 1<<(width-1) {
		return n
	}
	if n.Op == Const {
		return ns.Number(signExtend(n.K, width))
	}
	return ns.intern(nodeKey{op: opSigned, a: n, k: uint64(width)}, Anything)
}

// Swap reverses the bytes of the lowest bits.
func (ns *Nodes) Swap(n *Node, width uint) *Node {
	if n.Op == Const {
		return ns.Number(bits.ReverseBytes64(n.K) >> (64 - width))
	}
	return ns.intern(nodeKey{op: opSwap, a: n, k: uint64(width)}, Below(width))
}

func signExtend(k uint64, width uint) uint64 {
	return uint64(int64(k<<(64-width)) >> (64 - width))
}

func fold(o Op, a, b uint64) uint64 {
	switch o {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case And:
		return a & b
	case Or:
		return a | b
	case Xor:
		return a ^ b
	case Shl:
		return a << (b & 63)
	case Shr:
		return a >> (b & 63)
	case Sar:
		return uint64(int64(a) >> (b & 63))
	case Div:
		if b == 0 {
			return 0
		}
		return a / b
	case Mod:
		if b == 0 {
			return a
		}
		return a % b
	case Eq:
		return Truth(a == b)
	case ULess:
		return Truth(a < b)
	case SLess:
		return Truth(int64(a) < int64(b))
	}
	return 0
}

// Truth is 1 or 0.
func Truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Shift splits n into a node and a constant that is added to it, so that the lowest byte of their sum is n's:
// it looks through truncations to a byte and more. The base of a constant is nil.
func (n *Node) Shift() (base *Node, k uint64) {
	switch {
	case n.Op == Const:
		return nil, n.K
	case n.Op == Add && n.B.Op == Const:
		base, k = n.A.Shift()
		return base, k + n.B.K
	case n.Op == And && n.B.Op == Const && n.B.K&(n.B.K+1) == 0 && n.B.K >= math.MaxUint8:
		return n.A.Shift()
	}
	return n, 0
}
