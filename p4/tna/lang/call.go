package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Call compiles a call; without a value its type is nil, and eval is run for its effect.
func (s *Scope) Call(e *syntax.Call) Expr {
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
	x := s.Expr(f.X)
	if x.Place == nil || x.Type.Class != ClassHeader {
		syntax.Throw(f.Pos, "%s has no method %s", x.Type, f.Name)
	}
	return s.validity(e, x.Place, f.Name)
}

// Does wraps a call without a value.
func Does(at syntax.Pos, st Step) Expr {
	return Expr{At: at, Eval: func(m *Machine) (uint64, uint64) { st(m); return 0, 0 }}
}

func (s *Scope) function(e *syntax.Call, n *syntax.Name) Expr {
	if a, ok := s.Find(n.ID).(*action); ok {
		return s.callAction(e, a)
	}
	if (n.ID == "min" || n.ID == "max") && len(e.Args) == 2 {
		return s.extreme(e, n.ID)
	}
	syntax.Throw(e.Pos, "%s is outside of the model", n.ID)
	return Expr{}
}

func (s *Scope) callAction(e *syntax.Call, a *action) Expr {
	if len(e.Args) != len(a.params) {
		syntax.Throw(e.Pos, "action %s has %d parameters, %d are given", a.name, len(a.params), len(e.Args))
	}
	var steps []Step
	for i, arg := range e.Args {
		steps = append(steps, storeValue(a.params[i], s.Value(arg).As(a.params[i].Type)))
	}
	return Does(e.Pos, sequence(append(steps, a.body)))
}

// extreme is min or max of two values.
func (s *Scope) extreme(e *syntax.Call, which string) Expr {
	x, y := Alike(e.Pos, s.Value(e.Args[0]), s.Value(e.Args[1]))
	if x.Type.Class != ClassBits {
		syntax.Throw(e.Pos, "%s of %s", which, x.Type)
	}
	op := "<"
	if which == "max" {
		op = ">"
	}
	first := compare(e.Pos, op, x, y).Eval
	f, g, all := x.Eval, y.Eval, Mask(x.Type.Width)
	return Expr{At: e.Pos, Type: x.Type, Eval: func(m *Machine) (uint64, uint64) {
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

func (s *Scope) validity(e *syntax.Call, p *Place, method string) Expr {
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "%s has no arguments", method)
	}
	slot, n := p.Slot, p.Type.Slots()
	switch method {
	case "isValid":
		return Expr{At: e.Pos, Type: BoolType, Eval: func(m *Machine) (uint64, uint64) { return m.Cells[slot].Val, m.Cells[slot].Undef }}
	case "setValid", "setInvalid":
		if p.Readonly {
			syntax.Throw(e.Pos, "%s of an `in` parameter", method)
		}
	default:
		syntax.Throw(e.Pos, "a header has no method %s", method)
	}
	valid, b := uint64(Number(method == "setValid")), s.Build
	return Does(e.Pos, func(m *Machine) {
		if m.Cells[slot].Val != valid { // the fields lose their values
			m.copy(slot, b.initial[slot:slot+n])
		}
		m.Set(slot, valid, 0)
	})
}

// method of an object that was declared with a name.
func (s *Scope) method(e *syntax.Call, n *syntax.Name, method string) (Expr, bool) {
	if n.ID == "this" && s.Unit != nil {
		return s.Unit.This(s, e, method), true
	}
	switch d := s.Find(n.ID).(type) {
	case *Control:
		WantMethod(e, method, "apply")
		return Does(e.Pos, s.apply(e.Pos, d, e.Args)), true
	case *Table:
		WantMethod(e, method, "apply")
		return Does(e.Pos, s.applyTable(e, d)), true
	case object:
		return d.Call(s, e, method), true
	case nil:
		syntax.Throw(n.Pos, "%s is not declared", n.ID)
	}
	return Expr{}, false
}

// WantMethod rejects all methods but one.
func WantMethod(e *syntax.Call, method, want string) {
	if method != want {
		syntax.Throw(e.Pos, "method %s is outside of the model", method)
	}
}
