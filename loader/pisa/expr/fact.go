package expr

import (
	"cmp"
	"math"
	"slices"
)

// Fact narrows a node's span in the states that contain the fact.
type Fact struct {
	N  *Node
	In Span
}

// Facts are sorted by node. A slice is never changed once it is in a state.
type Facts []Fact

func (fs Facts) find(n *Node) (int, bool) {
	return slices.BinarySearchFunc(fs, n.Id, func(f Fact, id uint64) int { return cmp.Compare(f.N.Id, id) })
}

// with narrows n; the second result is false when nothing can be in it any more.
func (fs Facts) with(n *Node, in Span) (Facts, bool) {
	in = in.Meet(n.Span)
	i, ok := fs.find(n)
	if !ok {
		if in == n.Span {
			return fs, true
		}
		return slices.Insert(slices.Clone(fs), i, Fact{n, in}), !in.empty()
	}
	in = in.Meet(fs[i].In)
	if in == fs[i].In {
		return fs, true
	}
	out := slices.Clone(fs)
	out[i].In = in
	return out, !in.empty()
}

const factDepth = 6 // limit of the search in operands

// SpanOf is the span of a node in a state, from facts about it and about its operands.
func (fs Facts) SpanOf(n *Node) Span { return fs.spanTo(n, factDepth) }

func (fs Facts) spanTo(n *Node, depth int) Span {
	out := n.Span
	if i, ok := fs.find(n); ok {
		out = out.Meet(fs[i].In)
	}
	if depth == 0 || out.Single() || n.A == nil {
		return out
	}
	a := fs.spanTo(n.A, depth-1)
	switch n.Op {
	case Eq, ULess, SLess:
		return out.Meet(compare(n.Op, a, fs.spanTo(n.B, depth-1)))
	case opSigned:
		if a.Hi < 1<<(n.K-1) {
			return out.Meet(a)
		}
		return out
	case opSwap:
		return out
	}
	return out.Meet(eval(n.Op, a, fs.spanTo(n.B, depth-1)))
}

// compare is {1, 1} or {0, 0} where the operands' spans decide.
func compare(o Op, a, b Span) Span {
	switch o {
	case Eq:
		switch {
		case a.Meet(b).empty():
			return Span{0, 0}
		case a.Single() && b.Single():
			return Span{1, 1}
		}
	case ULess:
		return decided(a.Hi < b.Lo, a.Lo >= b.Hi)
	case SLess:
		aLo, aHi := a.Signed()
		bLo, bHi := b.Signed()
		return decided(aHi < bLo, aLo >= bHi)
	}
	return Span{0, 1}
}

func decided(yes, no bool) Span {
	switch {
	case yes:
		return Span{1, 1}
	case no:
		return Span{0, 0}
	}
	return Span{0, 1}
}

// Assume adds the result of a comparison. The second result is false when it contradicts the facts.
func (fs Facts) Assume(cond *Node, holds bool) (Facts, bool) {
	k := Truth(holds)
	fs, ok := fs.with(cond, Span{k, k})
	if !ok || cond.A == nil {
		return fs, ok
	}
	a, b := fs.SpanOf(cond.A), fs.SpanOf(cond.B)
	switch cond.Op {
	case Eq:
		a, b = assumeEqual(a, b, holds)
	case ULess:
		a, b = assumeLess(a, b, holds)
	case SLess:
		if a.Hi > math.MaxInt64 || b.Hi > math.MaxInt64 {
			return fs, true
		}
		a, b = assumeLess(a, b, holds)
	default:
		return fs, true
	}
	if a.empty() || b.empty() {
		return fs, false
	}
	if fs, ok = fs.narrow(cond.A, a); !ok {
		return fs, false
	}
	return fs.narrow(cond.B, b)
}

// narrow records a span, also for the number that a constant was added to.
func (fs Facts) narrow(n *Node, in Span) (Facts, bool) {
	if n.Op == Const {
		return fs, true
	}
	fs, ok := fs.with(n, in)
	if !ok || n.Op != Add || n.B.Op != Const {
		return fs, ok
	}
	if lo, hi := in.Lo-n.B.K, in.Hi-n.B.K; lo <= hi {
		return fs.with(n.A, Span{lo, hi})
	}
	return fs, true
}

func assumeEqual(a, b Span, holds bool) (Span, Span) {
	if holds {
		both := a.Meet(b)
		return both, both
	}
	return without(a, b), without(b, a)
}

// without removes a single number from an end of a span.
func without(a, b Span) Span {
	if !b.Single() {
		return a
	}
	switch {
	case a.Single() && a.Lo == b.Lo:
		return Span{1, 0}
	case a.Lo == b.Lo:
		a.Lo++
	case a.Hi == b.Lo:
		a.Hi--
	}
	return a
}

func assumeLess(a, b Span, holds bool) (Span, Span) {
	if !holds {
		return a.Meet(Span{b.Lo, math.MaxUint64}), b.Meet(Span{0, a.Hi})
	}
	if b.Hi == 0 || a.Lo == math.MaxUint64 {
		return Span{1, 0}, Span{1, 0}
	}
	return a.Meet(Span{0, b.Hi - 1}), b.Meet(Span{a.Lo + 1, math.MaxUint64})
}
