package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// eval computes a value and which of its bits are undefined.
type eval func(m *machine) (val, undef uint64)

// expr is an expression whose type is known.
type expr struct {
	at    syntax.Pos
	typ   *typ
	con   bool // val is known
	val   int64
	eval  eval
	place *place
	elems []expr // of a list
}

func known(at syntax.Pos, t *typ, val int64) expr {
	e := expr{at: at, typ: t, con: true, val: val}
	v := uint64(val)
	if t.scalar() && t.class != classInt {
		v &= mask(t.width)
		e.val = int64(v)
		if t.signed {
			e.val = extend(v, t.width)
		}
	}
	e.eval = func(*machine) (uint64, uint64) { return v, 0 }
	return e
}

// extend reads the bits of a signed value.
func extend(v uint64, width int) int64 { return int64(v<<(64-width)) >> (64 - width) }

// as gives a literal without width the type that is wanted, and refuses every other difference.
func (e expr) as(t *typ) expr {
	if e.typ.class == classInt && t.class == classBits {
		low, high := int64(0), int64(mask(t.width)&mask(63))
		if t.signed {
			low = -1 << (t.width - 1)
		}
		if t.width < 64 && (e.val > high || e.val < low) {
			syntax.Throw(e.at, "%d does not fit into %s", e.val, t)
		}
		return known(e.at, t, e.val)
	}
	if !same(e.typ, t) {
		syntax.Throw(e.at, "%s where %s is wanted", e.typ, t)
	}
	return e
}

// expr compiles an expression.
func (s *scope) expr(e syntax.Expr) expr {
	switch e := e.(type) {
	case *syntax.Number:
		t := intType
		if e.Width > 0 {
			t = &typ{class: classBits, width: e.Width, signed: e.Signed}
		}
		return known(e.Pos, t, int64(e.Value))
	case *syntax.Bool:
		if e.Value {
			return known(e.Pos, boolType, 1)
		}
		return known(e.Pos, boolType, 0)
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
		x := s.call(e)
		if x.typ == nil {
			syntax.Throw(e.Pos, "this call has no value")
		}
		return x
	case *syntax.List:
		l := expr{at: e.Pos, typ: &typ{class: classList}}
		for _, x := range e.Elems {
			l.elems = append(l.elems, s.expr(x))
			l.typ.fields = append(l.typ.fields, field{typ: l.elems[len(l.elems)-1].typ})
		}
		return l
	}
	syntax.Throw(e.At(), "this is outside of the model")
	return expr{}
}

// value is an expression of one scalar.
func (s *scope) value(e syntax.Expr) expr {
	x := s.expr(e)
	if !x.typ.scalar() {
		syntax.Throw(e.At(), "%s where one value is wanted", x.typ)
	}
	return x
}

func (s *scope) named(e *syntax.Name) expr {
	switch d := s.must(e.Pos, e.ID).(type) {
	case constant:
		return known(e.Pos, d.typ, d.val)
	case *place:
		return read(e.Pos, d)
	}
	if s.unit != nil {
		if x, ok := s.unit.read(s, e); ok {
			return x
		}
	}
	syntax.Throw(e.Pos, "%s is no value", e.ID)
	return expr{}
}

// read of a place.
func read(at syntax.Pos, p *place) expr {
	e := expr{at: at, typ: p.typ, place: p}
	if !p.typ.scalar() {
		return e
	}
	slot := p.slot
	if !p.sliced {
		e.eval = func(m *machine) (uint64, uint64) { return m.cells[slot].val, m.cells[slot].undef }
		return e
	}
	lo, bits := p.lo, mask(p.hi-p.lo+1)
	e.eval = func(m *machine) (uint64, uint64) {
		return m.cells[slot].val >> lo & bits, m.cells[slot].undef >> lo & bits
	}
	return e
}

func (s *scope) fieldOf(e *syntax.Field) expr {
	if n, ok := e.X.(*syntax.Name); ok {
		if d, ok := s.find(n.ID).(*enum); ok {
			return d.member(e)
		}
		if s.unit != nil {
			if x, ok := s.unit.read(s, e); ok {
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
	x := s.expr(e.X)
	if x.place == nil {
		syntax.Throw(e.Pos, "%s has no field %s", x.typ, e.Name)
	}
	return read(e.Pos, x.place.field(e.Pos, e.Name))
}

func (d *enum) member(e *syntax.Field) expr {
	if v, ok := d.values[e.Name]; ok {
		return known(e.Pos, d.typ, v)
	}
	for i, f := range d.typ.fields {
		if f.name == e.Name && d.values == nil {
			return known(e.Pos, d.typ, int64(i))
		}
	}
	syntax.Throw(e.Pos, "the enum has no member %s", e.Name)
	return expr{}
}

func (s *scope) index(e *syntax.Index) expr {
	x := s.expr(e.X)
	if x.place == nil || x.typ.class != classStack {
		syntax.Throw(e.Pos, "%s has no elements", x.typ)
	}
	i := s.constant(e.I)
	if i < 0 || i >= int64(x.typ.count) {
		syntax.Throw(e.Pos, "element %d of %s", i, x.typ)
	}
	return read(e.Pos, x.place.element(int(i)))
}

func (s *scope) slice(e *syntax.Slice) expr {
	x := s.value(e.X)
	hi, lo := s.constant(e.Hi), s.constant(e.Lo)
	if x.typ.class != classBits || lo < 0 || hi < lo || hi >= int64(x.typ.width) {
		syntax.Throw(e.Pos, "[%d:%d] of %s", hi, lo, x.typ)
	}
	t := bitsType(int(hi - lo + 1))
	if x.con {
		return known(e.Pos, t, x.val>>lo)
	}
	if x.place != nil {
		p := *x.place
		p.hi, p.lo = p.lo+int(hi), p.lo+int(lo)
		p.typ, p.sliced = t, true
		return read(e.Pos, &p)
	}
	f, bits := x.eval, mask(t.width)
	return expr{at: e.Pos, typ: t, eval: func(m *machine) (uint64, uint64) {
		v, u := f(m)
		return v >> lo & bits, u >> lo & bits
	}}
}

func (s *scope) unary(e *syntax.Unary) expr {
	x := s.value(e.X)
	switch {
	case e.Op == "!" && x.typ == boolType:
		if x.con {
			return known(e.Pos, boolType, x.val^1)
		}
		f := x.eval
		return expr{at: e.Pos, typ: boolType, eval: func(m *machine) (uint64, uint64) { v, u := f(m); return v ^ 1, u }}
	case e.Op == "-" && x.con && (x.typ.class == classInt || x.typ.signed):
		return known(e.Pos, x.typ, -x.val)
	case e.Op == "-" && x.typ.class == classBits:
		return s.arithmetic(e.Pos, "-", known(e.Pos, x.typ, 0), x)
	case e.Op == "~" && x.typ.class == classBits:
		f, bits := x.eval, mask(x.typ.width)
		if x.con {
			return known(e.Pos, x.typ, ^x.val)
		}
		return expr{at: e.Pos, typ: x.typ, eval: func(m *machine) (uint64, uint64) { v, u := f(m); return ^v & bits, u }}
	}
	syntax.Throw(e.Pos, "%s of %s", e.Op, x.typ)
	return expr{}
}

func (s *scope) choice(e *syntax.Choice) expr {
	c, x, y := s.value(e.C).as(boolType), s.value(e.X), s.value(e.Y)
	x, y = alike(e.Pos, x, y)
	if x.typ.class == classInt {
		syntax.Throw(e.Pos, "neither side of ?: has a width")
	}
	fc, fx, fy := c.eval, x.eval, y.eval
	bits := mask(x.typ.width)
	return expr{at: e.Pos, typ: x.typ, eval: func(m *machine) (uint64, uint64) {
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

// alike gives a literal the type of the other side.
func alike(at syntax.Pos, x, y expr) (expr, expr) {
	if x.typ.class == classInt && y.typ.class != classInt {
		x = x.as(y.typ)
	} else if y.typ.class == classInt && x.typ.class != classInt {
		y = y.as(x.typ)
	}
	if !same(x.typ, y.typ) {
		syntax.Throw(at, "%s and %s are not of one type", x.typ, y.typ)
	}
	return x, y
}

func (s *scope) cast(e *syntax.Cast) expr {
	x, t := s.value(e.X), s.typeOf(e.Type)
	if t.class != classBits && t != boolType {
		syntax.Throw(e.Pos, "a cast to %s", t)
	}
	switch {
	case x.typ.class == classInt:
		return x.as(t)
	case x.typ.class == classEnum, (x.typ == boolType || t == boolType) && x.typ.width != t.width:
		syntax.Throw(e.Pos, "a cast of %s to %s", x.typ, t)
	case x.typ.signed != t.signed && x.typ.width != t.width:
		syntax.Throw(e.Pos, "a cast of %s to %s changes sign and width at once", x.typ, t)
	}
	if x.con {
		return known(e.Pos, t, x.val)
	}
	f, bits, from := x.eval, mask(t.width), x.typ.width
	if t.signed && t.width > from {
		return expr{at: e.Pos, typ: t, eval: func(m *machine) (uint64, uint64) {
			v, u := f(m)
			return uint64(extend(v, from)) & bits, uint64(extend(u, from)) & bits
		}}
	}
	return expr{at: e.Pos, typ: t, eval: func(m *machine) (uint64, uint64) { v, u := f(m); return v & bits, u & bits }}
}
