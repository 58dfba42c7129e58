package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// call compiles a call; without a value its typ is nil, and its eval is run for what it does.
func (s *scope) call(e *syntax.Call) expr {
	if n, ok := e.Fn.(*syntax.Name); ok {
		return s.function(e, n)
	}
	f, ok := e.Fn.(*syntax.Field)
	if !ok {
		syntax.Throw(e.Pos, "this cannot be called")
	}
	if n, ok := f.X.(*syntax.Name); ok {
		if x, ok := s.method(e, n, f.Name); ok {
			return x
		}
	}
	x := s.expr(f.X)
	if x.place == nil || x.typ.class != classHeader {
		syntax.Throw(f.Pos, "%s has no method %s", x.typ, f.Name)
	}
	return s.validity(e, x.place, f.Name)
}

// does is a call without a value.
func does(at syntax.Pos, st step) expr {
	return expr{at: at, eval: func(m *machine) (uint64, uint64) { st(m); return 0, 0 }}
}

func (s *scope) function(e *syntax.Call, n *syntax.Name) expr {
	if a, ok := s.find(n.ID).(*action); ok {
		return s.callAction(e, a)
	}
	if (n.ID == "min" || n.ID == "max") && len(e.Args) == 2 {
		return s.extreme(e, n.ID)
	}
	syntax.Throw(e.Pos, "%s is outside of the model", n.ID)
	return expr{}
}

func (s *scope) callAction(e *syntax.Call, a *action) expr {
	if len(e.Args) != len(a.params) {
		syntax.Throw(e.Pos, "action %s has %d parameters, %d are given", a.name, len(a.params), len(e.Args))
	}
	var steps []step
	for i, arg := range e.Args {
		steps = append(steps, storeValue(a.params[i], s.value(arg).as(a.params[i].typ)))
	}
	return does(e.Pos, sequence(append(steps, a.body)))
}

// extreme is min or max of two values.
func (s *scope) extreme(e *syntax.Call, which string) expr {
	x, y := alike(e.Pos, s.value(e.Args[0]), s.value(e.Args[1]))
	if x.typ.class != classBits {
		syntax.Throw(e.Pos, "%s of %s", which, x.typ)
	}
	op := "<"
	if which == "max" {
		op = ">"
	}
	first := compare(e.Pos, op, x, y).eval
	f, g, all := x.eval, y.eval, mask(x.typ.width)
	return expr{at: e.Pos, typ: x.typ, eval: func(m *machine) (uint64, uint64) {
		v, u := first(m)
		if u != 0 {
			return 0, all
		}
		if v != 0 {
			return f(m)
		}
		return g(m)
	}}
}

func (s *scope) validity(e *syntax.Call, p *place, method string) expr {
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "%s has no arguments", method)
	}
	slot, n := p.slot, p.typ.slots()
	switch method {
	case "isValid":
		return expr{at: e.Pos, typ: boolType, eval: func(m *machine) (uint64, uint64) { return m.cells[slot].val, m.cells[slot].undef }}
	case "setValid", "setInvalid":
		if p.readonly {
			syntax.Throw(e.Pos, "%s of an `in` parameter", method)
		}
	default:
		syntax.Throw(e.Pos, "a header has no method %s", method)
	}
	valid, b := uint64(number(method == "setValid")), s.build
	return does(e.Pos, func(m *machine) {
		if m.cells[slot].val != valid { // what was in the fields is gone
			m.copy(slot, b.initial[slot:slot+n])
		}
		m.set(slot, valid, 0)
	})
}

// method of an object that was declared with a name.
func (s *scope) method(e *syntax.Call, n *syntax.Name, method string) (expr, bool) {
	if n.ID == "this" && s.unit != nil {
		return s.unit.this(s, e, method), true
	}
	switch d := s.find(n.ID).(type) {
	case *control:
		wantMethod(e, method, "apply")
		return does(e.Pos, s.apply(e.Pos, d, e.Args)), true
	case *Table:
		wantMethod(e, method, "apply")
		return does(e.Pos, s.applyTable(e, d)), true
	case object:
		return d.call(s, e, method), true
	case nil:
		syntax.Throw(n.Pos, "%s is not declared", n.ID)
	}
	return expr{}, false
}

func wantMethod(e *syntax.Call, method, want string) {
	if method != want {
		syntax.Throw(e.Pos, "method %s is outside of the model", method)
	}
}
