package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

func (s *scope) binary(e *syntax.Binary) expr {
	x, y := s.value(e.X), s.value(e.Y)
	switch e.Op {
	case "&&", "||":
		return logic(e, x.as(boolType), y.as(boolType))
	case "++":
		return concat(e.Pos, x, y)
	case "<<", ">>":
		return shift(e, x, y)
	case "&&&", "..":
		syntax.Throw(e.Pos, "%s stands only where keys are matched", e.Op)
	}
	x, y = alike(e.Pos, x, y)
	switch e.Op {
	case "==", "!=":
		return compare(e.Pos, e.Op, x, y)
	case "<", "<=", ">", ">=":
		if x.typ.class != classBits && x.typ.class != classInt {
			syntax.Throw(e.Pos, "%s of %s", e.Op, x.typ)
		}
		return compare(e.Pos, e.Op, x, y)
	}
	if x.typ.class != classBits && x.typ.class != classInt {
		syntax.Throw(e.Pos, "%s of %s", e.Op, x.typ)
	}
	return s.arithmetic(e.Pos, e.Op, x, y)
}

func logic(e *syntax.Binary, x, y expr) expr {
	f, g := x.eval, y.eval
	stop := uint64(0) // the value of the first side that decides
	if e.Op == "||" {
		stop = 1
	}
	return expr{at: e.Pos, typ: boolType, eval: func(m *machine) (uint64, uint64) {
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

func concat(at syntax.Pos, x, y expr) expr {
	if x.typ.class != classBits || y.typ.class != classBits {
		syntax.Throw(at, "%s ++ %s: both need a width", x.typ, y.typ)
	}
	low := y.typ.width
	if x.typ.width+low > 64 {
		syntax.Throw(at, "%d bits in one value: the model has at most 64", x.typ.width+low)
	}
	t := bitsType(x.typ.width + low)
	if x.con && y.con {
		return known(at, t, x.val<<low|int64(uint64(y.val)&mask(low)))
	}
	f, g := x.eval, y.eval
	return expr{at: at, typ: t, eval: func(m *machine) (uint64, uint64) {
		v, u := f(m)
		w, t := g(m)
		return v<<low | w, u<<low | t
	}}
}

func shift(e *syntax.Binary, x, y expr) expr {
	if !y.con || y.val < 0 || y.val > 63 {
		syntax.Throw(e.Pos, "a shift that is no constant from 0 to 63")
	}
	n := uint(y.val)
	if x.con {
		if e.Op == "<<" {
			return known(e.Pos, x.typ, x.val<<n)
		}
		return known(e.Pos, x.typ, x.val>>n)
	}
	if x.typ.class != classBits {
		syntax.Throw(e.Pos, "%s of %s", e.Op, x.typ)
	}
	f, bits, width, signed := x.eval, mask(x.typ.width), x.typ.width, x.typ.signed
	fn := func(v uint64) uint64 { return v >> n }
	switch {
	case e.Op == "<<":
		fn = func(v uint64) uint64 { return v << n & bits }
	case signed:
		fn = func(v uint64) uint64 { return uint64(extend(v, width)>>n) & bits }
	}
	return expr{at: e.Pos, typ: x.typ, eval: func(m *machine) (uint64, uint64) { v, u := f(m); return fn(v), fn(u) }}
}

// compare of two values of one type.
func compare(at syntax.Pos, op string, x, y expr) expr {
	width, signed := x.typ.width, x.typ.signed
	test := comparison(at, op)
	order := func(v, w uint64) int {
		switch {
		case v == w:
			return 0
		case signed && extend(v, width) < extend(w, width), !signed && v < w:
			return -1
		}
		return 1
	}
	if x.con && y.con {
		c := 0
		if x.val != y.val {
			c = 1
			if x.val < y.val {
				c = -1
			}
		}
		return known(at, boolType, number(test(c)))
	}
	f, g := x.eval, y.eval
	return expr{at: at, typ: boolType, eval: func(m *machine) (uint64, uint64) {
		v, u := f(m)
		w, t := g(m)
		if u|t != 0 {
			return 0, 1
		}
		return uint64(number(test(order(v, w)))), 0
	}}
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// comparison says what an operator makes of less (-1), equal (0) and more (1).
func comparison(at syntax.Pos, op string) func(int) bool {
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
func (s *scope) arithmetic(at syntax.Pos, op string, x, y expr) expr {
	if x.typ.class == classInt {
		return known(at, intType, fold(at, op, x.val, y.val))
	}
	fn, exact := operation(at, op, x.typ)
	if x.con && y.con {
		bits := mask(x.typ.width)
		return known(at, x.typ, int64(fn(uint64(x.val)&bits, uint64(y.val)&bits)))
	}
	f, g := x.eval, y.eval
	all := mask(x.typ.width)
	return expr{at: at, typ: x.typ, eval: func(m *machine) (uint64, uint64) {
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

// operation computes, and says which bits of the result are undefined; nil: all of them.
func operation(at syntax.Pos, op string, t *typ) (fn func(v, w uint64) uint64, undefined func(v, u, w, t uint64) uint64) {
	bits, width := mask(t.width), t.width
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
		if t.signed {
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

// saturateSigned is for at most 32 bits, which is what a stateful ALU has.
func saturateSigned(op string, width int) func(v, w uint64) uint64 {
	low, high := int64(-1)<<(width-1), int64(1)<<(width-1)-1
	return func(v, w uint64) uint64 {
		x, y := extend(v, width), extend(w, width)
		if op == "|-|" {
			y = -y
		}
		return uint64(min(max(x+y, low), high)) & mask(width)
	}
}
