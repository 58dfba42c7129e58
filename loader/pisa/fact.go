package pisa

import (
	"cmp"
	"math"
	"slices"
)

// fact narrows a node's span in the states that know it.
type fact struct {
	n  *node
	in span
}

// facts are sorted by node. A slice is never changed once it is in a state.
type facts []fact

func (fs facts) find(n *node) (int, bool) {
	return slices.BinarySearchFunc(fs, n.id, func(f fact, id uint64) int { return cmp.Compare(f.n.id, id) })
}

// with narrows n; the second result is false when nothing can be in it any more.
func (fs facts) with(n *node, in span) (facts, bool) {
	in = in.meet(n.span)
	i, ok := fs.find(n)
	if !ok {
		if in == n.span {
			return fs, true
		}
		return slices.Insert(slices.Clone(fs), i, fact{n, in}), !in.empty()
	}
	in = in.meet(fs[i].in)
	if in == fs[i].in {
		return fs, true
	}
	out := slices.Clone(fs)
	out[i].in = in
	return out, !in.empty()
}

const factDepth = 6 // how far an operand's fact is looked for

// spanOf is what a state knows of a node, from facts about it and about its operands.
func (fs facts) spanOf(n *node) span { return fs.spanTo(n, factDepth) }

func (fs facts) spanTo(n *node, depth int) span {
	out := n.span
	if i, ok := fs.find(n); ok {
		out = out.meet(fs[i].in)
	}
	if depth == 0 || out.single() || n.a == nil {
		return out
	}
	a := fs.spanTo(n.a, depth-1)
	switch n.op {
	case opEq, opULess, opSLess:
		return out.meet(compare(n.op, a, fs.spanTo(n.b, depth-1)))
	case opSigned:
		if a.hi < 1<<(n.k-1) {
			return out.meet(a)
		}
		return out
	case opSwap:
		return out
	}
	return out.meet(eval(n.op, a, fs.spanTo(n.b, depth-1)))
}

// compare is {1, 1} or {0, 0} where the operands' spans decide.
func compare(o op, a, b span) span {
	switch o {
	case opEq:
		switch {
		case a.meet(b).empty():
			return span{0, 0}
		case a.single() && b.single():
			return span{1, 1}
		}
	case opULess:
		return decided(a.hi < b.lo, a.lo >= b.hi)
	case opSLess:
		aLo, aHi := a.signed()
		bLo, bHi := b.signed()
		return decided(aHi < bLo, aLo >= bHi)
	}
	return span{0, 1}
}

func decided(yes, no bool) span {
	switch {
	case yes:
		return span{1, 1}
	case no:
		return span{0, 0}
	}
	return span{0, 1}
}

// assume adds that a comparison came out so. The second result is false when it cannot have.
func (fs facts) assume(cond *node, holds bool) (facts, bool) {
	k := truth(holds)
	fs, ok := fs.with(cond, span{k, k})
	if !ok || cond.a == nil {
		return fs, ok
	}
	a, b := fs.spanOf(cond.a), fs.spanOf(cond.b)
	switch cond.op {
	case opEq:
		a, b = assumeEqual(a, b, holds)
	case opULess:
		a, b = assumeLess(a, b, holds)
	case opSLess:
		if a.hi > math.MaxInt64 || b.hi > math.MaxInt64 {
			return fs, true
		}
		a, b = assumeLess(a, b, holds)
	default:
		return fs, true
	}
	if a.empty() || b.empty() {
		return fs, false
	}
	if fs, ok = fs.narrow(cond.a, a); !ok {
		return fs, false
	}
	return fs.narrow(cond.b, b)
}

// narrow records a span, also for the number that a constant was added to.
func (fs facts) narrow(n *node, in span) (facts, bool) {
	if n.op == opConst {
		return fs, true
	}
	fs, ok := fs.with(n, in)
	if !ok || n.op != opAdd || n.b.op != opConst {
		return fs, ok
	}
	if lo, hi := in.lo-n.b.k, in.hi-n.b.k; lo <= hi {
		return fs.with(n.a, span{lo, hi})
	}
	return fs, true
}

func assumeEqual(a, b span, holds bool) (span, span) {
	if holds {
		both := a.meet(b)
		return both, both
	}
	return without(a, b), without(b, a)
}

// without removes a single number from an end of a span.
func without(a, b span) span {
	if !b.single() {
		return a
	}
	switch {
	case a.single() && a.lo == b.lo:
		return span{1, 0}
	case a.lo == b.lo:
		a.lo++
	case a.hi == b.lo:
		a.hi--
	}
	return a
}

func assumeLess(a, b span, holds bool) (span, span) {
	if !holds {
		return a.meet(span{b.lo, math.MaxUint64}), b.meet(span{0, a.hi})
	}
	if b.hi == 0 || a.lo == math.MaxUint64 {
		return span{1, 0}, span{1, 0}
	}
	return a.meet(span{0, b.hi - 1}), b.meet(span{a.lo + 1, math.MaxUint64})
}
