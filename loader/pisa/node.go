package pisa

import (
	"math"
	"math/bits"
)

// op is what a node calculates. Comparisons are nodes too: what a branch has found out about one
// holds wherever the same comparison is made again.
type op uint8

const (
	opConst op = iota
	opLeaf     // a number that nothing more is known of than its span
	opAdd
	opSub
	opMul
	opAnd
	opOr
	opXor
	opShl
	opShr
	opSar
	opDiv    // by zero it is 0, as in BPF
	opMod    // by zero it is the dividend
	opSigned // sign extension from k bits
	opSwap   // byte swap of k bits, zero extended
	opEq
	opULess
	opSLess
)

// node is a number that a program calculates, in single-assignment form. Equal nodes are one node, so two
// registers that hold the same node hold the same number, on every path.
type node struct {
	op   op
	a, b *node
	k    uint64 // the number of a constant, the width of opSigned and opSwap
	id   uint64
	span span // what holds on every path; facts of a state may narrow it

	owner  *junction // of a leaf: the merge point at which different numbers became one
	clock  bool      // of a leaf: the time
	random bool      // of a leaf: the state of a generator, or the kernel's random number, on every path
	grown  int       // how often its fact was widened there
}

type nodeKey struct {
	op   op
	a, b *node
	k    uint64
}

// nodes makes nodes of one proof.
type nodes struct {
	known map[nodeKey]*node
	count uint64
}

func newNodes() *nodes { return &nodes{known: make(map[nodeKey]*node)} }

func (ns *nodes) intern(key nodeKey, sp span) *node {
	if n, ok := ns.known[key]; ok {
		return n
	}
	n := ns.add(key, sp)
	ns.known[key] = n
	return n
}

func (ns *nodes) add(key nodeKey, sp span) *node {
	ns.count++
	return &node{op: key.op, a: key.a, b: key.b, k: key.k, id: ns.count, span: sp}
}

func (ns *nodes) number(k uint64) *node {
	return ns.intern(nodeKey{op: opConst, k: k}, span{k, k})
}

// leaf is a new number within sp, different from all others.
func (ns *nodes) leaf(sp span) *node { return ns.add(nodeKey{op: opLeaf}, sp) }

func (n *node) is(k uint64) bool { return n.op == opConst && n.k == k }

// binary is a o b on 64 bits.
func (ns *nodes) binary(o op, a, b *node) *node {
	if a.op == opConst && b.op == opConst {
		return ns.number(fold(o, a.k, b.k))
	}
	if commutes(o) && (a.op == opConst || b.op != opConst && a.id > b.id) {
		a, b = b, a
	}
	if n := ns.simplify(o, a, b); n != nil {
		return n
	}
	return ns.intern(nodeKey{op: o, a: a, b: b}, eval(o, a.span, b.span))
}

func commutes(o op) bool {
	return o == opAdd || o == opMul || o == opAnd || o == opOr || o == opXor || o == opEq
}

// simplify finds a smaller node for a o b, with a constant operand in b; nil when there is none.
func (ns *nodes) simplify(o op, a, b *node) *node {
	if a == b {
		switch o {
		case opSub, opXor, opULess, opSLess:
			return ns.number(0)
		case opEq:
			return ns.number(1)
		case opAnd, opOr:
			return a
		}
	}
	if b.op != opConst {
		return nil
	}
	switch {
	case b.k == 0 && (o == opAdd || o == opSub || o == opOr || o == opXor || o == opShl || o == opShr || o == opSar):
		return a
	case b.k == 0 && (o == opAnd || o == opMul || o == opULess):
		return ns.number(0)
	case o == opSub:
		return ns.binary(opAdd, a, ns.number(-b.k))
	case o == opAdd && a.op == opAdd && a.b.op == opConst:
		return ns.binary(opAdd, a.a, ns.number(a.b.k+b.k))
	case o == opAnd && a.op == opAnd && a.b.op == opConst:
		return ns.binary(opAnd, a.a, ns.number(a.b.k&b.k))
	case o == opAnd && bits.OnesCount64(b.k+1) <= 1 && a.span.hi <= b.k:
		return a
	case (o == opShr || o == opSar) && a.op == opShl && a.b == b && b.k < 64:
		if o == opSar {
			return ns.extend(a.a, uint(64-b.k))
		}
		return ns.truncate(a.a, uint(64-b.k))
	}
	return nil
}

// truncate keeps the lowest bits.
func (ns *nodes) truncate(n *node, width uint) *node {
	if width >= 64 {
		return n
	}
	return ns.binary(opAnd, n, ns.number(1<<width-1))
}

// extend continues the sign of the lowest bits.
func (ns *nodes) extend(n *node, width uint) *node {
	if width >= 64 || n.span.hi < 1<<(width-1) {
		return n
	}
	if n.op == opConst {
		return ns.number(signExtend(n.k, width))
	}
	return ns.intern(nodeKey{op: opSigned, a: n, k: uint64(width)}, anything)
}

func (ns *nodes) swap(n *node, width uint) *node {
	if n.op == opConst {
		return ns.number(bits.ReverseBytes64(n.k) >> (64 - width))
	}
	return ns.intern(nodeKey{op: opSwap, a: n, k: uint64(width)}, below(width))
}

func signExtend(k uint64, width uint) uint64 {
	return uint64(int64(k<<(64-width)) >> (64 - width))
}

func fold(o op, a, b uint64) uint64 {
	switch o {
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	case opAnd:
		return a & b
	case opOr:
		return a | b
	case opXor:
		return a ^ b
	case opShl:
		return a << (b & 63)
	case opShr:
		return a >> (b & 63)
	case opSar:
		return uint64(int64(a) >> (b & 63))
	case opDiv:
		if b == 0 {
			return 0
		}
		return a / b
	case opMod:
		if b == 0 {
			return a
		}
		return a % b
	case opEq:
		return truth(a == b)
	case opULess:
		return truth(a < b)
	case opSLess:
		return truth(int64(a) < int64(b))
	}
	return 0
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// shift splits n into a node and a constant that is added to it, so that the lowest byte of their sum is n's:
// it looks through truncations to a byte and more. The base of a constant is nil.
func (n *node) shift() (base *node, k uint64) {
	switch {
	case n.op == opConst:
		return nil, n.k
	case n.op == opAdd && n.b.op == opConst:
		base, k = n.a.shift()
		return base, k + n.b.k
	case n.op == opAnd && n.b.op == opConst && n.b.k&(n.b.k+1) == 0 && n.b.k >= math.MaxUint8:
		return n.a.shift()
	}
	return n, 0
}
