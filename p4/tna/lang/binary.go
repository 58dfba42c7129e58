package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

func (s *Scope) binary(e *syntax.Binary) Expr {
	x, y := s.Value(e.X), s.Value(e.Y)
	switch e.Op {
	case "&&", "||":
		return Logic(e, x.As(BoolType), y.As(BoolType))
	case "++":
		return concat(e.Pos, x, y)
	case "<<", ">>":
		return shift(e, x, y)
	case "&&&", "..":
		syntax.Throw(e.Pos, "%s stands only where keys are matched", e.Op)
	}
	x, y = Alike(e.Pos, x, y)
	switch e.Op {
	case "==", "!=":
		return compare(e.Pos, e.Op, x, y)
	case "<", "<=", ">", ">=":
		if x.Type.Class != ClassBits && x.Type.Class != classInt {
			syntax.Throw(e.Pos, "%s of %s", e.Op, x.Type)
		}
		return compare(e.Pos, e.Op, x, y)
	}
	if x.Type.Class != ClassBits && x.Type.Class != classInt {
		syntax.Throw(e.Pos, "%s of %s", e.Op, x.Type)
	}
	return s.arithmetic(e.Pos, e.Op, x, y)
}

// Logic is && or ||, whose second side is not evaluated if the first one decides.
func Logic(e *syntax.Binary, x, y Expr) Expr {
	f, g := x.Eval, y.Eval
	stop := uint64(0) // the value of the first side that decides
	if e.Op == "||" {
		stop = 1
	}
	return Expr{At: e.Pos, Type: BoolType, Eval: func(m *Machine) (uint64, uint64) {
		v, u := f(m)
		if u == 0 && v == stop {
			return v, 0
		}
		w, t := g(m)
		if t == 0 && w == stop {
			return w, 0
		}
		return w, u | t
	}}
}

func concat(at syntax.Pos, x, y Expr) Expr {
	if x.Type.Class != ClassBits || y.Type.Class != ClassBits {
		syntax.Throw(at, "%s ++ %s: both need a width", x.Type, y.Type)
	}
	low := y.Type.Width
	if x.Type.Width+low > 64 {
		syntax.Throw(at, "%d bits in one value: the model has at most 64", x.Type.Width+low)
	}
	t := BitsType(x.Type.Width + low)
	if x.Const && y.Const {
		return known(at, t, x.Val<<low|int64(uint64(y.Val)&Mask(low)))
	}
	f, g := x.Eval, y.Eval
	return Expr{At: at, Type: t, Eval: func(m *Machine) (uint64, uint64) {
		v, u := f(m)
		w, t := g(m)
		return v<<low | w, u<<low | t
	}}
}

func shift(e *syntax.Binary, x, y Expr) Expr {
	if !y.Const || y.Val < 0 || y.Val > 63 {
		syntax.Throw(e.Pos, "a shift that is no constant from 0 to 63")
	}
	n := uint(y.Val)
	if x.Const {
		if e.Op == "<<" {
			return known(e.Pos, x.Type, x.Val<<n)
		}
		return known(e.Pos, x.Type, x.Val>>n)
	}
	if x.Type.Class != ClassBits {
		syntax.Throw(e.Pos, "%s of %s", e.Op, x.Type)
	}
	f, bits, width, signed := x.Eval, Mask(x.Type.Width), x.Type.Width, x.Type.Signed
	fn := func(v uint64) uint64 { return v >> n }
	switch {
	case e.Op == "<<":
		fn = func(v uint64) uint64 { return v << n & bits }
	case signed:
		fn = func(v uint64) uint64 { return uint64(extend(v, width)>>n) & bits }
	}
	return Expr{At: e.Pos, Type: x.Type, Eval: func(m *Machine) (uint64, uint64) { v, u := f(m); return fn(v), fn(u) }}
}

// compare of two values of one type.
func compare(at syntax.Pos, op string, x, y Expr) Expr {
	width, signed := x.Type.Width, x.Type.Signed
	test := Comparison(at, op)
	order := func(v, w uint64) int {
		switch {
		case v == w:
			return 0
		case signed && extend(v, width) < extend(w, width), !signed && v < w:
			return -1
		}
		return 1
	}
	if x.Const && y.Const {
		c := 0
		if x.Val != y.Val {
			c = 1
			if x.Val < y.Val {
				c = -1
			}
		}
		return known(at, BoolType, Number(test(c)))
	}
	f, g := x.Eval, y.Eval
	return Expr{At: at, Type: BoolType, Eval: func(m *Machine) (uint64, uint64) {
		v, u := f(m)
		w, t := g(m)
		if u|t != 0 {
			return 0, 1
		}
		return uint64(Number(test(order(v, w)))), 0
	}}
}

// Number of a truth: 1 or 0.
func Number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Comparison maps less (-1), equal (0) and more (1) to an operator's result.
func Comparison(at syntax.Pos, op string) func(int) bool {
	switch op {
	case "==":
		return func(c int) bool { return c == 0 }
	case "!=":
		return func(c int) bool { return c != 0 }
	case "<":
		return func(c int) bool { return c < 0 }
	case "<=":
		return func(c int) bool { return c <= 0 }
	case ">":
		return func(c int) bool { return c > 0 }
	case ">=":
		return func(c int) bool { return c >= 0 }
	}
	syntax.Throw(at, "%s is no comparison", op)
	return nil
}

// arithmetic of two values of one type.
func (s *Scope) arithmetic(at syntax.Pos, op string, x, y Expr) Expr {
	if x.Type.Class == classInt {
		return known(at, intType, fold(at, op, x.Val, y.Val))
	}
	fn, exact := operation(at, op, x.Type)
	if x.Const && y.Const {
		bits := Mask(x.Type.Width)
		return known(at, x.Type, int64(fn(uint64(x.Val)&bits, uint64(y.Val)&bits)))
	}
	f, g := x.Eval, y.Eval
	all := Mask(x.Type.Width)
	return Expr{At: at, Type: x.Type, Eval: func(m *Machine) (uint64, uint64) {
		v, u := f(m)
		w, t := g(m)
		if u|t == 0 {
			return fn(v, w), 0
		}
		if exact == nil {
			return fn(v, w), all
		}
		return fn(v, w), exact(v, u, w, t)
	}}
}

func fold(at syntax.Pos, op string, x, y int64) int64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		if y > 0 && x >= 0 {
			return x / y
		}
	case "%":
		if y > 0 && x >= 0 {
			return x % y
		}
	case "&":
		return x & y
	case "|":
		return x | y
	case "^":
		return x ^ y
	}
	syntax.Throw(at, "%d %s %d of numbers without width is outside of the model", x, op, y)
	return 0
}

// operation computes the result, and its undefined bits; nil: all of them.
func operation(at syntax.Pos, op string, t *Type) (fn func(v, w uint64) uint64, undefined func(v, u, w, t uint64) uint64) {
	bits, width := Mask(t.Width), t.Width
	switch op {
	case "+":
		return func(v, w uint64) uint64 { return (v + w) & bits }, nil
	case "-":
		return func(v, w uint64) uint64 { return (v - w) & bits }, nil
	case "&":
		return func(v, w uint64) uint64 { return v & w }, func(v, u, w, t uint64) uint64 { return u&(w|t) | t&(v|u) }
	case "|":
		return func(v, w uint64) uint64 { return v | w },
			func(v, u, w, t uint64) uint64 { return (u&(^w|t) | t&(^v|u)) & bits }
	case "^":
		return func(v, w uint64) uint64 { return v ^ w }, func(_, u, _, t uint64) uint64 { return u | t }
	case "|+|", "|-|":
		if t.Signed {
			return saturateSigned(op, width), nil
		}
		return saturate(op, bits), nil
	}
	syntax.Throw(at, "%s of %s is outside of the model: the chip has no such operation", op, t)
	return nil, nil
}

func saturate(op string, bits uint64) func(v, w uint64) uint64 {
	if op == "|-|" {
		return func(v, w uint64) uint64 {
			if w > v {
				return 0
			}
			return v - w
		}
	}
	return func(v, w uint64) uint64 {
		if sum := v + w; sum >= v && sum <= bits {
			return sum
		}
		return bits
	}
}

// saturateSigned supports at most 32 bits, as a stateful ALU does.
func saturateSigned(op string, width int) func(v, w uint64) uint64 {
	low, high := int64(-1)<<(width-1), int64(1)<<(width-1)-1
	return func(v, w uint64) uint64 {
		x, y := extend(v, width), extend(w, width)
		if op == "|-|" {
			y = -y
		}
		return uint64(min(max(x+y, low), high)) & Mask(width)
	}
}
