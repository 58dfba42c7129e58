package expr

import (
	"math"
	"math/bits"
)

// IsRandom reports whether n is a generator's state or a random number of the kernel's, and nothing else, on every path.
func (n *Node) IsRandom() bool {
	whole := n.Op == And && n.B.Op == Const && n.B.K&(n.B.K+1) == 0 && n.B.K >= math.MaxUint32
	return n.Random || whole && n.A.Random
}

// IsStep reports whether n is such a step of one random number of that many bits.
func IsStep(n *Node, width int) bool {
	leaf := soleLeaf(n, nil)
	if leaf == nil || !leaf.Random || !isLinear(n) {
		return false
	}
	columns := make([]uint64, width)
	for i := range columns {
		columns[i] = at(n, 1<<i)
	}
	return rank(columns) == width
}

// soleLeaf is the only number of a packet that n is calculated from; nil when there are none or several.
func soleLeaf(n, known *Node) *Node {
	switch {
	case n.Op == Const:
		return known
	case n.Op == opLeaf && (known == nil || known == n):
		return n
	case n.Op == opLeaf || n.B == nil:
		return nil
	}
	a := soleLeaf(n.A, known)
	if n.B.Op == Const {
		return a
	}
	b := soleLeaf(n.B, a)
	if a == nil || b == nil {
		return nil
	}
	return b
}

// isLinear reports whether n is made of operations that treat each bit of their operands apart.
func isLinear(n *Node) bool {
	switch n.Op {
	case opLeaf:
		return true
	case Xor:
		return isLinear(n.A) && isLinear(n.B)
	case Shl, Shr, And:
		return n.B.Op == Const && isLinear(n.A)
	}
	return n.Is(0)
}

// at is n for one value of its only leaf.
func at(n *Node, x uint64) uint64 {
	switch n.Op {
	case opLeaf:
		return x
	case Const:
		return n.K
	}
	return fold(n.Op, at(n.A, x), at(n.B, x))
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
