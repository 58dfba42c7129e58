package expr

import (
	"math"
	"math/bits"
)

// Span is an interval of unsigned 64-bit numbers, both ends included.
type Span struct{ Lo, Hi uint64 }

// Anything is all 64-bit numbers.
var Anything = Span{0, math.MaxUint64}

// Single reports whether it is one number.
func (s Span) Single() bool { return s.Lo == s.Hi }

func (s Span) empty() bool { return s.Lo > s.Hi }

// Meet and Join are the largest interval in both, and the smallest around both.
func (s Span) Meet(o Span) Span { return Span{max(s.Lo, o.Lo), min(s.Hi, o.Hi)} }
func (s Span) Join(o Span) Span { return Span{min(s.Lo, o.Lo), max(s.Hi, o.Hi)} }

// Widen extends the span to the next size of a machine word, so that a growing loop variable ends after few rounds.
func (s Span) Widen() Span {
	for _, top := range []uint64{math.MaxUint8, math.MaxUint16, math.MaxUint32} {
		if s.Hi <= top {
			return Span{0, top}
		}
	}
	return Anything
}

// Signed are the ends as two's complement numbers; everything when the interval crosses the sign.
func (s Span) Signed() (lo, hi int64) {
	if int64(s.Lo) <= int64(s.Hi) && int64(s.Lo)^int64(s.Hi) >= 0 {
		return int64(s.Lo), int64(s.Hi)
	}
	return math.MinInt64, math.MaxInt64
}

// Below is all numbers of so many bits.
func Below(width uint) Span {
	if width >= 64 {
		return Anything
	}
	return Span{0, 1<<width - 1}
}

// eval is the interval of a op b. It may be too large, never too small.
func eval(o Op, a, b Span) Span {
	switch o {
	case Add:
		return addSpan(a, b)
	case Sub:
		if a.Lo >= b.Hi {
			return Span{a.Lo - b.Hi, a.Hi - b.Lo}
		}
	case Mul:
		if over, hi := bits.Mul64(a.Hi, b.Hi); over == 0 {
			return Span{a.Lo * b.Lo, hi}
		}
	case And:
		return Span{0, min(a.Hi, b.Hi)}
	case Or:
		return Span{max(a.Lo, b.Lo), ones(a.Hi | b.Hi)}
	case Xor:
		return Span{0, ones(a.Hi | b.Hi)}
	case Shl:
		if b.Single() && b.Lo < 64 && a.Hi<<b.Lo>>b.Lo == a.Hi {
			return Span{a.Lo << b.Lo, a.Hi << b.Lo}
		}
	case Shr:
		if b.Single() && b.Lo < 64 {
			return Span{a.Lo >> b.Lo, a.Hi >> b.Lo}
		}
		return Span{0, a.Hi}
	case Sar:
		if a.Hi <= math.MaxInt64 {
			return eval(Shr, a, b)
		}
	case Div:
		if b.Lo > 0 {
			return Span{a.Lo / b.Hi, a.Hi / b.Lo}
		}
		return Span{0, a.Hi}
	case Mod:
		if b.Lo > 0 {
			return Span{0, min(a.Hi, b.Hi-1)}
		}
		return Span{0, a.Hi}
	case Eq, ULess, SLess:
		return Span{0, 1}
	}
	return Anything
}

func addSpan(a, b Span) Span {
	lo, carryLo := bits.Add64(a.Lo, b.Lo, 0)
	hi, carryHi := bits.Add64(a.Hi, b.Hi, 0)
	if carryLo == carryHi {
		return Span{lo, hi}
	}
	return Anything
}

// ones is the smallest 2^n - 1 that is not below x.
func ones(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	return math.MaxUint64 >> bits.LeadingZeros64(x)
}
