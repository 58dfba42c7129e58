package expr

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("pisa.seed", 1, "seed of the random cases")

// TestSpansContainResults: for every operation, the interval of the results holds the result of any two
// operands within theirs, and a comparison that is decided is decided rightly.
func TestSpansContainResults(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 13))
	for range 200_000 {
		o := Add + Op(r.IntN(int(SLess-Add)+1))
		if o == opSigned || o == opSwap {
			continue
		}
		a, b := randomSpan(r), randomSpan(r)
		x, y := within(r, a), within(r, b)
		got := fold(o, x, y)
		if out := eval(o, a, b); got < out.Lo || got > out.Hi {
			t.Fatalf("op %d: %d in %v, %d in %v gives %d, outside of %v", o, x, a, y, b, got, out)
		}
		if o >= Eq {
			if out := compare(o, a, b); got < out.Lo || got > out.Hi {
				t.Fatalf("comparison %d of %d in %v and %d in %v is %d, decided as %v", o, x, a, y, b, got, out)
			}
			checkAssumption(t, o, a, b, x, y, got == 1)
		}
	}
}

// checkAssumption: what a branch teaches does not exclude the numbers that took it.
func checkAssumption(t *testing.T, o Op, a, b Span, x, y uint64, holds bool) {
	t.Helper()
	ns := NewNodes()
	p, q := ns.Leaf(a), ns.Leaf(b)
	fs, ok := Facts(nil).Assume(ns.Binary(o, p, q), holds)
	if !ok {
		t.Fatalf("comparison %d of %d and %d cannot be %t", o, x, y, holds)
	}
	if in := fs.SpanOf(p); x < in.Lo || x > in.Hi {
		t.Fatalf("comparison %d: %d is excluded by %v", o, x, in)
	}
	if in := fs.SpanOf(q); y < in.Lo || y > in.Hi {
		t.Fatalf("comparison %d: %d is excluded by %v", o, y, in)
	}
}

// TestNodesCalculate: simplified expressions have the value of the plain ones.
func TestNodesCalculate(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 17))
	for range 20_000 {
		ns := NewNodes()
		x := ns.Leaf(Anything)
		at := randomNumber(r)
		n, want := x, at
		for range 6 {
			n, want = randomStep(r, ns, n, want)
		}
		if got := valueOf(n, x, at); got != want {
			t.Fatalf("got %#x, want %#x", got, want)
		}
		if in := n.Span; want < in.Lo || want > in.Hi {
			t.Fatalf("%#x is outside of %v", want, in)
		}
		if base, k := n.Shift(); base != nil && uint8(valueOf(base, x, at)+k) != uint8(want) {
			t.Fatalf("shifted by %d: %#x", k, want)
		}
	}
}

func randomStep(r *rand.Rand, ns *Nodes, n *Node, want uint64) (*Node, uint64) {
	k := randomNumber(r)
	width := uint(8 << r.IntN(3))
	switch r.IntN(8) {
	case 0:
		return ns.Truncate(n, width), want & (1<<width - 1)
	case 1:
		return ns.Extend(ns.Truncate(n, width), width), signExtend(want&(1<<width-1), width)
	case 2:
		return ns.Binary(Shl, n, ns.Number(k&63)), want << (k & 63)
	case 3:
		return ns.Binary(Shr, n, ns.Number(k&63)), want >> (k & 63)
	case 4:
		return ns.Binary(Sar, n, ns.Number(k&63)), uint64(int64(want) >> (k & 63))
	}
	o := []Op{Add, Sub, And, Or, Xor, Mul, Eq, ULess}[r.IntN(8)]
	if r.IntN(2) == 0 {
		return ns.Binary(o, ns.Number(k), n), fold(o, k, want)
	}
	return ns.Binary(o, n, ns.Number(k)), fold(o, want, k)
}

// valueOf calculates a node for one value of its leaf.
func valueOf(n, leaf *Node, at uint64) uint64 {
	switch {
	case n == leaf:
		return at
	case n.Op == Const:
		return n.K
	case n.Op == opSigned:
		return signExtend(valueOf(n.A, leaf, at), uint(n.K))
	}
	return fold(n.Op, valueOf(n.A, leaf, at), valueOf(n.B, leaf, at))
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

func randomSpan(r *rand.Rand) Span {
	a, b := randomNumber(r), randomNumber(r)
	if r.IntN(4) == 0 {
		b = a
	}
	return Span{min(a, b), max(a, b)}
}

func within(r *rand.Rand, s Span) uint64 {
	switch size := s.Hi - s.Lo; {
	case r.IntN(3) == 0:
		return s.Lo
	case r.IntN(2) == 0 || size == 0:
		return s.Hi
	default:
		return s.Lo + r.Uint64N(size)
	}
}
