package pisa

import (
	"math"
	"math/bits"
)

// span is an interval of unsigned 64-bit numbers, both ends included.
type span struct{ lo, hi uint64 }

var anything = span{0, math.MaxUint64}

func (s span) single() bool { return s.lo == s.hi }
func (s span) empty() bool  { return s.lo > s.hi }

func (s span) meet(o span) span { return span{max(s.lo, o.lo), min(s.hi, o.hi)} }
func (s span) join(o span) span { return span{min(s.lo, o.lo), max(s.hi, o.hi)} }

// widen goes to the next size of a machine word, so that a growing loop variable ends after few rounds.
func (s span) widen() span {
	for _, top := range []uint64{math.MaxUint8, math.MaxUint16, math.MaxUint32} {
		if s.hi <= top {
			return span{0, top}
		}
	}
	return anything
}

// signed are the ends as two's complement numbers; everything when the interval crosses the sign.
func (s span) signed() (lo, hi int64) {
	if int64(s.lo) <= int64(s.hi) && int64(s.lo)^int64(s.hi) >= 0 {
		return int64(s.lo), int64(s.hi)
	}
	return math.MinInt64, math.MaxInt64
}

func below(width uint) span {
	if width >= 64 {
		return anything
	}
	return span{0, 1<<width - 1}
}

// eval is the interval of a op b. It may be too large, never too small.
func eval(o op, a, b span) span {
	switch o {
	case opAdd:
		return addSpan(a, b)
	case opSub:
		if a.lo >= b.hi {
			return span{a.lo - b.hi, a.hi - b.lo}
		}
	case opMul:
		if over, hi := bits.Mul64(a.hi, b.hi); over == 0 {
			return span{a.lo * b.lo, hi}
		}
	case opAnd:
		return span{0, min(a.hi, b.hi)}
	case opOr:
		return span{max(a.lo, b.lo), ones(a.hi | b.hi)}
	case opXor:
		return span{0, ones(a.hi | b.hi)}
	case opShl:
		if b.single() && b.lo < 64 && a.hi<<b.lo>>b.lo == a.hi {
			return span{a.lo << b.lo, a.hi << b.lo}
		}
	case opShr:
		if b.single() && b.lo < 64 {
			return span{a.lo >> b.lo, a.hi >> b.lo}
		}
		return span{0, a.hi}
	case opSar:
		if a.hi <= math.MaxInt64 {
			return eval(opShr, a, b)
		}
	case opDiv:
		if b.lo > 0 {
			return span{a.lo / b.hi, a.hi / b.lo}
		}
		return span{0, a.hi}
	case opMod:
		if b.lo > 0 {
			return span{0, min(a.hi, b.hi-1)}
		}
		return span{0, a.hi}
	case opEq, opULess, opSLess:
		return span{0, 1}
	}
	return anything
}

func addSpan(a, b span) span {
	lo, carryLo := bits.Add64(a.lo, b.lo, 0)
	hi, carryHi := bits.Add64(a.hi, b.hi, 0)
	if carryLo == carryHi {
		return span{lo, hi}
	}
	return anything
}

// ones is the smallest 2^n - 1 that is not below x.
func ones(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	return math.MaxUint64 >> bits.LeadingZeros64(x)
}
