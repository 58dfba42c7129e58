package pisa

import (
	"math/rand/v2"
	"testing"
)

// TestSpansContainResults: for every operation, the interval of the results holds the result of any two
// operands within theirs, and a comparison that is decided is decided rightly.
func TestSpansContainResults(t *testing.T) {
	t.Logf("seed %d", *randomSeed)
	r := rand.New(rand.NewPCG(*randomSeed, 13))
	for range 200_000 {
		o := opAdd + op(r.IntN(int(opSLess-opAdd)+1))
		if o == opSigned || o == opSwap {
			continue
		}
		a, b := randomSpan(r), randomSpan(r)
		x, y := within(r, a), within(r, b)
		got := fold(o, x, y)
		if out := eval(o, a, b); got < out.lo || got > out.hi {
			t.Fatalf("op %d: %d in %v, %d in %v gives %d, outside of %v", o, x, a, y, b, got, out)
		}
		if o >= opEq {
			if out := compare(o, a, b); got < out.lo || got > out.hi {
				t.Fatalf("comparison %d of %d in %v and %d in %v is %d, decided as %v", o, x, a, y, b, got, out)
			}
			checkAssumption(t, o, a, b, x, y, got == 1)
		}
	}
}

// checkAssumption: what a branch teaches does not exclude the numbers that took it.
func checkAssumption(t *testing.T, o op, a, b span, x, y uint64, holds bool) {
	t.Helper()
	ns := newNodes()
	p, q := ns.leaf(a), ns.leaf(b)
	fs, ok := facts(nil).assume(ns.binary(o, p, q), holds)
	if !ok {
		t.Fatalf("comparison %d of %d and %d cannot be %t", o, x, y, holds)
	}
	if in := fs.spanOf(p); x < in.lo || x > in.hi {
		t.Fatalf("comparison %d: %d is excluded by %v", o, x, in)
	}
	if in := fs.spanOf(q); y < in.lo || y > in.hi {
		t.Fatalf("comparison %d: %d is excluded by %v", o, y, in)
	}
}

// TestNodesCalculate: simplified expressions have the value of the plain ones.
func TestNodesCalculate(t *testing.T) {
	t.Logf("seed %d", *randomSeed)
	r := rand.New(rand.NewPCG(*randomSeed, 17))
	for range 20_000 {
		ns := newNodes()
		x := ns.leaf(anything)
		at := randomNumber(r)
		n, want := x, at
		for range 6 {
			n, want = randomStep(r, ns, n, want)
		}
		if got := valueOf(n, x, at); got != want {
			t.Fatalf("got %#x, want %#x", got, want)
		}
		if in := n.span; want < in.lo || want > in.hi {
			t.Fatalf("%#x is outside of %v", want, in)
		}
		if base, k := n.shift(); base != nil && uint8(valueOf(base, x, at)+k) != uint8(want) {
			t.Fatalf("shifted by %d: %#x", k, want)
		}
	}
}

func randomStep(r *rand.Rand, ns *nodes, n *node, want uint64) (*node, uint64) {
	k := randomNumber(r)
	width := uint(8 << r.IntN(3))
	switch r.IntN(8) {
	case 0:
		return ns.truncate(n, width), want & (1<<width - 1)
	case 1:
		return ns.extend(ns.truncate(n, width), width), signExtend(want&(1<<width-1), width)
	case 2:
		return ns.binary(opShl, n, ns.number(k&63)), want << (k & 63)
	case 3:
		return ns.binary(opShr, n, ns.number(k&63)), want >> (k & 63)
	case 4:
		return ns.binary(opSar, n, ns.number(k&63)), uint64(int64(want) >> (k & 63))
	}
	o := []op{opAdd, opSub, opAnd, opOr, opXor, opMul, opEq, opULess}[r.IntN(8)]
	if r.IntN(2) == 0 {
		return ns.binary(o, ns.number(k), n), fold(o, k, want)
	}
	return ns.binary(o, n, ns.number(k)), fold(o, want, k)
}

// valueOf calculates a node for one value of its leaf.
func valueOf(n, leaf *node, at uint64) uint64 {
	switch {
	case n == leaf:
		return at
	case n.op == opConst:
		return n.k
	case n.op == opSigned:
		return signExtend(valueOf(n.a, leaf, at), uint(n.k))
	}
	return fold(n.op, valueOf(n.a, leaf, at), valueOf(n.b, leaf, at))
}

func randomNumber(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return uint64(r.IntN(4))
	case 1:
		return -uint64(r.IntN(4))
	case 2:
		return 1<<r.IntN(64) - 1
	}
	return r.Uint64() >> r.IntN(64)
}

func randomSpan(r *rand.Rand) span {
	a, b := randomNumber(r), randomNumber(r)
	if r.IntN(4) == 0 {
		b = a
	}
	return span{min(a, b), max(a, b)}
}

func within(r *rand.Rand, s span) uint64 {
	switch size := s.hi - s.lo; {
	case r.IntN(3) == 0:
		return s.lo
	case r.IntN(2) == 0 || size == 0:
		return s.hi
	default:
		return s.lo + r.Uint64N(size)
	}
}
