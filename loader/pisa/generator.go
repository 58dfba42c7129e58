package pisa

import (
	"math"
	"math/bits"
)

// A generator's state moves on by an invertible linear map of its bits, as xorshift and shift registers do: from any state but
// 0 it goes through all of its cycle, so how far it has come says nothing that a sum or a set of flows could be kept in. The
// expression that is stored consists of exclusive-ors and constant shifts of one number: its images of single bits determine it.

// isRandom says whether n is a generator's state or a random number of the kernel's, and nothing else, on every path.
func (n *node) isRandom() bool {
	whole := n.op == opAnd && n.b.op == opConst && n.b.k&(n.b.k+1) == 0 && n.b.k >= math.MaxUint32
	return n.random || whole && n.a.random
}

// isStep says whether n is such a step of one random number of that many bits.
func isStep(n *node, width int) bool {
	leaf := soleLeaf(n, nil)
	if leaf == nil || !leaf.random || !isLinear(n) {
		return false
	}
	columns := make([]uint64, width)
	for i := range columns {
		columns[i] = at(n, 1<<i)
	}
	return rank(columns) == width
}

// soleLeaf is the only number of a packet that n is calculated from; nil when there are none or several.
func soleLeaf(n, known *node) *node {
	switch {
	case n.op == opConst:
		return known
	case n.op == opLeaf && (known == nil || known == n):
		return n
	case n.op == opLeaf || n.b == nil:
		return nil
	}
	a := soleLeaf(n.a, known)
	if n.b.op == opConst {
		return a
	}
	b := soleLeaf(n.b, a)
	if a == nil || b == nil {
		return nil
	}
	return b
}

// isLinear says whether n is made of operations that treat each bit of their operands apart.
func isLinear(n *node) bool {
	switch n.op {
	case opLeaf:
		return true
	case opXor:
		return isLinear(n.a) && isLinear(n.b)
	case opShl, opShr, opAnd:
		return n.b.op == opConst && isLinear(n.a)
	}
	return n.is(0)
}

// at is n for one value of its only leaf.
func at(n *node, x uint64) uint64 {
	switch n.op {
	case opLeaf:
		return x
	case opConst:
		return n.k
	}
	return fold(n.op, at(n.a, x), at(n.b, x))
}

// rank of a matrix over two elements, by elimination.
func rank(columns []uint64) (r int) {
	for i, c := range columns {
		if c == 0 {
			continue
		}
		r++
		low := uint64(1) << bits.TrailingZeros64(c)
		for j := i + 1; j < len(columns); j++ {
			if columns[j]&low != 0 {
				columns[j] ^= c
			}
		}
	}
	return r
}

// storeRandom refuses to move a generator on by anything else than a step.
func (m *machine) storeRandom(s *state, a *array, ptr value, size int, v value) {
	m.refuseAnswer(s, v.t.from, 0, "a step of "+a.name)
	strange := v.t.from &^ (s.control.from | a.bit | chance)
	switch {
	case strange != 0:
		m.fail(s.pc, a, 1, FlowState, "the state of a generator is set to something that does not come from generators alone")
	case size != int(a.spec.ValueSize) || !v.isNumber() || !isStep(v.n, 8*size):
		m.fail(s.pc, a, 1, FlowState, "a generator does not move on by an invertible linear step (xorshift) of its whole state")
	case v.t.from&chance == 0:
		m.fail(s.pc, a, 1, FlowState, "a generator is never renewed from bpf_get_prandom_u32: its state would count its steps")
	}
}
