package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Eval computes a value and its undefined bits.
type Eval func(m *Machine) (val, undef uint64)

// Expr is an expression with its type.
type Expr struct {
	At    syntax.Pos
	Type  *Type
	Const bool // val is known
	Val   int64
	Eval  Eval
	Place *Place
	Elems []Expr // of a list
}

func known(at syntax.Pos, t *Type, val int64) Expr {
	e := Expr{At: at, Type: t, Const: true, Val: val}
	v := uint64(val)
	if t.Scalar() && t.Class != classInt {
		v &= Mask(t.Width)
		e.Val = int64(v)
		if t.Signed {
			e.Val = extend(v, t.Width)
		}
	}
	e.Eval = func(*Machine) (uint64, uint64) { return v, 0 }
	return e
}

// extend reads the bits of a signed value.
func extend(v uint64, width int) int64 { return int64(v<<(64-width)) >> (64 - width) }

// As converts a literal without width to the expected type, and rejects every other difference.
func (e Expr) As(t *Type) Expr {
	if e.Type.Class == classInt && t.Class == ClassBits {
		low, high := int64(0), int64(Mask(t.Width)&Mask(63))
		if t.Signed {
			low = -1 << (t.Width - 1)
		}
		if t.Width < 64 && (e.Val > high || e.Val < low) {
			syntax.Throw(e.At, "%d does not fit into %s", e.Val, t)
		}
		return known(e.At, t, e.Val)
	}
	if !Same(e.Type, t) {
		syntax.Throw(e.At, "%s where %s is expected", e.Type, t)
	}
	return e
}

// Expr compiles an expression.
func (s *Scope) Expr(e syntax.Expr) Expr {
	switch e := e.(type) {
	case *syntax.Number:
		t := intType
		if e.Width > 0 {
			t = &Type{Class: ClassBits, Width: e.Width, Signed: e.Signed}
		}
		return known(e.Pos, t, int64(e.Value))
	case *syntax.Bool:
		if e.Value {
			return known(e.Pos, BoolType, 1)
		}
		return known(e.Pos, BoolType, 0)
	case *syntax.Name:
		return s.named(e)
	case *syntax.Field:
		return s.fieldOf(e)
	case *syntax.Index:
		return s.index(e)
	case *syntax.Slice:
		return s.slice(e)
	case *syntax.Unary:
		return s.unary(e)
	case *syntax.Binary:
		return s.binary(e)
	case *syntax.Cast:
		return s.cast(e)
	case *syntax.Choice:
		return s.choice(e)
	case *syntax.Call:
		x := s.Call(e)
		if x.Type == nil {
			syntax.Throw(e.Pos, "this call has no value")
		}
		return x
	case *syntax.List:
		l := Expr{At: e.Pos, Type: &Type{Class: ClassList}}
		for _, x := range e.Elems {
			l.Elems = append(l.Elems, s.Expr(x))
			l.Type.Fields = append(l.Type.Fields, field{Type: l.Elems[len(l.Elems)-1].Type})
		}
		return l
	}
	syntax.Throw(e.At(), "this is outside of the model")
	return Expr{}
}

// Value is an expression of one scalar.
func (s *Scope) Value(e syntax.Expr) Expr {
	x := s.Expr(e)
	if !x.Type.Scalar() {
		syntax.Throw(e.At(), "%s where one value is expected", x.Type)
	}
	return x
}

func (s *Scope) named(e *syntax.Name) Expr {
	switch d := s.Must(e.Pos, e.ID).(type) {
	case Constant:
		return known(e.Pos, d.Type, d.Val)
	case *Place:
		return Read(e.Pos, d)
	}
	if s.Unit != nil {
		if x, ok := s.Unit.Read(s, e); ok {
			return x
		}
	}
	syntax.Throw(e.Pos, "%s is no value", e.ID)
	return Expr{}
}

// Read of a place.
func Read(at syntax.Pos, p *Place) Expr {
	e := Expr{At: at, Type: p.Type, Place: p}
	if !p.Type.Scalar() {
		return e
	}
	slot := p.Slot
	if !p.sliced {
		e.Eval = func(m *Machine) (uint64, uint64) { return m.Cells[slot].Val, m.Cells[slot].Undef }
		return e
	}
	lo, bits := p.lo, Mask(p.hi-p.lo+1)
	e.Eval = func(m *Machine) (uint64, uint64) {
		return m.Cells[slot].Val >> lo & bits, m.Cells[slot].Undef >> lo & bits
	}
	return e
}

func (s *Scope) fieldOf(e *syntax.Field) Expr {
	if n, ok := e.X.(*syntax.Name); ok {
		if d, ok := s.Find(n.ID).(*enum); ok {
			return d.member(e)
		}
		if s.Unit != nil {
			if x, ok := s.Unit.Read(s, e); ok {
				return x
			}
		}
	}
	if c, ok := e.X.(*syntax.Call); ok && len(c.Types) == 1 {
		return s.lookaheadField(c, e)
	}
	if stack := s.stack(e.X, "last"); stack != nil {
		return lastOf(e, stack)
	}
	x := s.Expr(e.X)
	if x.Place == nil {
		syntax.Throw(e.Pos, "%s has no field %s", x.Type, e.Name)
	}
	return Read(e.Pos, x.Place.Field(e.Pos, e.Name))
}

func (d *enum) member(e *syntax.Field) Expr {
	if v, ok := d.values[e.Name]; ok {
		return known(e.Pos, d.typ, v)
	}
	for i, f := range d.typ.Fields {
		if f.Name == e.Name && d.values == nil {
			return known(e.Pos, d.typ, int64(i))
		}
	}
	syntax.Throw(e.Pos, "the enum has no member %s", e.Name)
	return Expr{}
}

func (s *Scope) index(e *syntax.Index) Expr {
	x := s.Expr(e.X)
	if x.Place == nil || x.Type.Class != classStack {
		syntax.Throw(e.Pos, "%s has no elements", x.Type)
	}
	i := s.Constant(e.I)
	if i < 0 || i >= int64(x.Type.count) {
		syntax.Throw(e.Pos, "element %d of %s", i, x.Type)
	}
	return Read(e.Pos, x.Place.element(int(i)))
}

func (s *Scope) slice(e *syntax.Slice) Expr {
	x := s.Value(e.X)
	hi, lo := s.Constant(e.Hi), s.Constant(e.Lo)
	if x.Type.Class != ClassBits || lo < 0 || hi < lo || hi >= int64(x.Type.Width) {
		syntax.Throw(e.Pos, "[%d:%d] of %s", hi, lo, x.Type)
	}
	t := BitsType(int(hi - lo + 1))
	if x.Const {
		return known(e.Pos, t, x.Val>>lo)
	}
	if x.Place != nil {
		p := *x.Place
		p.hi, p.lo = p.lo+int(hi), p.lo+int(lo)
		p.Type, p.sliced = t, true
		return Read(e.Pos, &p)
	}
	f, bits := x.Eval, Mask(t.Width)
	return Expr{At: e.Pos, Type: t, Eval: func(m *Machine) (uint64, uint64) {
		v, u := f(m)
		return v >> lo & bits, u >> lo & bits
	}}
}

func (s *Scope) unary(e *syntax.Unary) Expr {
	x := s.Value(e.X)
	switch {
	case e.Op == "!" && x.Type == BoolType:
		if x.Const {
			return known(e.Pos, BoolType, x.Val^1)
		}
		f := x.Eval
		return Expr{At: e.Pos, Type: BoolType, Eval: func(m *Machine) (uint64, uint64) { v, u := f(m); return v ^ 1, u }}
	case e.Op == "-" && x.Const && (x.Type.Class == classInt || x.Type.Signed):
		return known(e.Pos, x.Type, -x.Val)
	case e.Op == "-" && x.Type.Class == ClassBits:
		return s.arithmetic(e.Pos, "-", known(e.Pos, x.Type, 0), x)
	case e.Op == "~" && x.Type.Class == ClassBits:
		f, bits := x.Eval, Mask(x.Type.Width)
		if x.Const {
			return known(e.Pos, x.Type, ^x.Val)
		}
		return Expr{At: e.Pos, Type: x.Type, Eval: func(m *Machine) (uint64, uint64) { v, u := f(m); return ^v & bits, u }}
	}
	syntax.Throw(e.Pos, "%s of %s", e.Op, x.Type)
	return Expr{}
}

func (s *Scope) choice(e *syntax.Choice) Expr {
	c, x, y := s.Value(e.C).As(BoolType), s.Value(e.X), s.Value(e.Y)
	x, y = Alike(e.Pos, x, y)
	if x.Type.Class == classInt {
		syntax.Throw(e.Pos, "neither side of ?: has a width")
	}
	fc, fx, fy := c.Eval, x.Eval, y.Eval
	bits := Mask(x.Type.Width)
	return Expr{At: e.Pos, Type: x.Type, Eval: func(m *Machine) (uint64, uint64) {
		v, u := fc(m)
		if u != 0 {
			return 0, bits
		}
		if v != 0 {
			return fx(m)
		}
		return fy(m)
	}}
}

// Alike converts a literal to the type of the other side.
func Alike(at syntax.Pos, x, y Expr) (Expr, Expr) {
	if x.Type.Class == classInt && y.Type.Class != classInt {
		x = x.As(y.Type)
	} else if y.Type.Class == classInt && x.Type.Class != classInt {
		y = y.As(x.Type)
	}
	if !Same(x.Type, y.Type) {
		syntax.Throw(at, "%s and %s are not of one type", x.Type, y.Type)
	}
	return x, y
}

func (s *Scope) cast(e *syntax.Cast) Expr {
	x, t := s.Value(e.X), s.TypeOf(e.Type)
	if t.Class != ClassBits && t != BoolType {
		syntax.Throw(e.Pos, "a cast to %s", t)
	}
	switch {
	case x.Type.Class == classInt:
		return x.As(t)
	case x.Type.Class == classEnum, (x.Type == BoolType || t == BoolType) && x.Type.Width != t.Width:
		syntax.Throw(e.Pos, "a cast of %s to %s", x.Type, t)
	case x.Type.Signed != t.Signed && x.Type.Width != t.Width:
		syntax.Throw(e.Pos, "a cast of %s to %s changes sign and width at once", x.Type, t)
	}
	if x.Const {
		return known(e.Pos, t, x.Val)
	}
	f, bits, from := x.Eval, Mask(t.Width), x.Type.Width
	if t.Signed && t.Width > from {
		return Expr{At: e.Pos, Type: t, Eval: func(m *Machine) (uint64, uint64) {
			v, u := f(m)
			return uint64(extend(v, from)) & bits, uint64(extend(u, from)) & bits
		}}
	}
	return Expr{At: e.Pos, Type: t, Eval: func(m *Machine) (uint64, uint64) { v, u := f(m); return v & bits, u & bits }}
}
