package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// mathUnit is a register's MathUnit: a function of a number's four leading bits, scaled by its exponent. A number is m/8 * 2^e with
// m from 8 to 15; for roots, whose exponent is halved, e is even and m from 4 to 15.
type mathUnit struct {
	invert       bool
	shift, scale int // of the exponent, and of the result
	table        [16]uint64
}

// The compiler itself generates the tables of these operations; RSQR is missing, since the compiler computes 1/x*x for it.
var mathOps = map[string]struct {
	invert bool
	shift  int
	most   float64 // of f, over the range of m
	f      func(x float64) float64
}{
	"MUL":   {false, 0, 15.0 / 8, func(x float64) float64 { return x }},
	"SQR":   {false, 1, 15.0 / 8 * 15 / 8, func(x float64) float64 { return x * x }},
	"SQRT":  {false, -1, math.Sqrt(15.0 / 8), math.Sqrt},
	"DIV":   {true, 0, 1, func(x float64) float64 { return 1 / x }},
	"RSQRT": {true, -1, math.Sqrt2, func(x float64) float64 { return 1 / math.Sqrt(x) }},
}

func newMathUnit(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 2, 3, 4)
	if t := s.ScalarType(i.Type.Args[0]); t.Signed || t.Width != 32 {
		syntax.Throw(i.Pos, "a math unit of %s: the model has those of bit<32>", t)
	}
	u := &mathUnit{}
	if b, ok := i.Args[0].(*syntax.Bool); ok {
		u.invert = b.Value
		u.given(s, i)
		return u
	}
	f, ok := i.Args[0].(*syntax.Field)
	if !ok || len(i.Args) > 3 {
		syntax.Throw(i.Pos, "a math unit is built with MathOp_t and a factor, or with inversion, shift, scale and sixteen values")
	}
	op, ok := mathOps[f.Name]
	if !ok {
		syntax.Throw(i.Pos, "%s of a math unit is outside of the model: give its table", f.Name)
	}
	factor := float64(s.Positive(i.Args[1], math.MaxInt32))
	if len(i.Args) == 3 {
		factor /= float64(s.Positive(i.Args[2], math.MaxInt32))
	}
	u.invert, u.shift = op.invert, op.shift
	u.scale = int(math.Floor(math.Log2(factor*op.most))) - 7 // the values fit into a byte
	if u.scale < -32 || u.scale > 31 {
		syntax.Throw(i.Pos, "a scale of 2^%d: a math unit has -32 to 31", u.scale)
	}
	for m := u.least(); m < 16; m++ {
		u.table[m] = uint64(min(255, math.RoundToEven(op.f(float64(m)/8)*factor*math.Pow(2, -float64(u.scale)))))
	}
	return u
}

// given reads an explicit table, the value of 15 first.
func (u *mathUnit) given(s *lang.Scope, i *syntax.Instance) {
	list, ok := i.Args[len(i.Args)-1].(*syntax.List)
	if len(i.Args) != 4 || !ok || len(list.Elems) != 16 {
		syntax.Throw(i.Pos, "a math unit that is given its table has an inversion, a shift, a scale and sixteen values")
	}
	u.shift, u.scale = int(s.Constant(i.Args[1])), int(s.Constant(i.Args[2]))
	if u.shift < -1 || u.shift > 1 || u.scale < -32 || u.scale > 31 {
		syntax.Throw(i.Pos, "shift %d and scale %d: a math unit has -1 to 1, and -32 to 31", u.shift, u.scale)
	}
	for n, x := range list.Elems {
		v := s.Value(x).As(lang.BitsType(8))
		if !v.Const {
			syntax.Throw(x.At(), "a math unit's table has constants")
		}
		u.table[15-n] = uint64(v.Val)
	}
}

// least is the smallest m.
func (u *mathUnit) least() int {
	if u.shift < 0 {
		return 4
	}
	return 8
}

// of computes the result; ok is false where the chip's behaviour is not documented.
func (u *mathUnit) of(x uint64) (y uint64, ok bool) {
	if x == 0 {
		return 0, u.table[0] == 0
	}
	e := bits.Len64(x) - 1
	if u.shift < 0 {
		e += e & 1
	}
	m := x << 3 >> e
	switch u.shift {
	case 1:
		e *= 2
	case -1:
		e /= 2
	}
	if u.invert {
		e = -e
	}
	if e += u.scale; e < 0 {
		return u.table[m] >> min(-e, 63), true
	}
	return u.table[m] << min(e, 63), bits.Len64(u.table[m])+e <= 32
}

func (u *mathUnit) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "execute")
	if alu := aluOf(s); alu == nil || alu.result != 0 {
		syntax.Throw(e.Pos, "a math unit computes the first word of a register's element, in its action")
	}
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "execute has one argument")
	}
	t, at := lang.BitsType(32), e.Pos
	f := s.Value(e.Args[0]).As(t).Eval
	return lang.Expr{At: at, Type: t, Eval: func(m *lang.Machine) (uint64, uint64) {
		x, undef := f(m)
		if undef != 0 {
			return 0, lang.Mask(32)
		}
		y, ok := u.of(x)
		if !ok {
			m.Fail(at, "a math unit of %#x: its result has more than 32 bits, or is that of 0 and not 0", x)
		}
		return y & lang.Mask(32), 0
	}}
}
