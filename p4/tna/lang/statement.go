package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Block compiles statements in a scope of their own.
func (s *Scope) Block(b *syntax.Block) Step {
	in := s.Inner()
	var steps []Step
	for _, stmt := range b.Stmts {
		steps = append(steps, in.statement(stmt))
	}
	return sequence(steps)
}

func (s *Scope) statement(stmt syntax.Stmt) Step {
	switch stmt := stmt.(type) {
	case *syntax.Block:
		return s.Block(stmt)
	case *syntax.Assign:
		return s.assign(stmt)
	case *syntax.If:
		if t, call, of := s.asked(stmt.Cond); t != nil {
			return s.found(stmt, t, call, of)
		}
		return s.branch(stmt)
	case *syntax.Switch:
		return s.choose(stmt)
	case *syntax.Var:
		return s.variable(stmt)
	case *syntax.Const:
		s.declareConst(stmt)
		return func(*Machine) {}
	case *syntax.Do:
		return s.do(stmt)
	}
	syntax.Throw(stmt.At(), "this statement is outside of the model")
	return nil
}

func (s *Scope) declareConst(d *syntax.Const) {
	t := s.TypeOf(d.Type)
	x := s.Value(d.Value).As(t)
	if !x.Const {
		syntax.Throw(d.Pos, "%s is no constant", d.Name)
	}
	s.Declare(d.Pos, d.Name, Constant{Type: t, Val: x.Val})
}

// variable declares a variable and returns the step that initializes it.
func (s *Scope) variable(d *syntax.Var) Step {
	t := s.TypeOf(d.Type)
	if s.Unit != nil {
		return s.Unit.Local(s, d, t)
	}
	p := s.Build.NewPlace(t)
	s.Declare(d.Pos, d.Name, p)
	if d.Init == nil {
		return nil
	}
	return s.Store(d.Pos, p, s.Expr(d.Init))
}

func (s *Scope) assign(a *syntax.Assign) Step {
	if s.Unit != nil {
		return s.Unit.Assign(s, a)
	}
	l := s.Expr(a.L)
	if l.Place == nil {
		syntax.Throw(a.Pos, "the left side cannot be assigned to")
	}
	if l.Place.Readonly {
		syntax.Throw(a.Pos, "the left side is an `in` parameter")
	}
	s.one(a)
	return s.Store(a.Pos, l.Place, s.Expr(a.R))
}

// Store assigns a value, a struct or a list.
func (s *Scope) Store(at syntax.Pos, p *Place, x Expr) Step {
	if p.Type.Class == ClassStruct || p.Type.Class == ClassHeader {
		return s.storeStruct(at, p, x)
	}
	if !p.Type.Scalar() {
		syntax.Throw(at, "an assignment of a whole %s is outside of the model", p.Type)
	}
	return storeValue(p, x.As(p.Type))
}

func storeValue(p *Place, x Expr) Step {
	slot, f := p.Slot, x.Eval
	if !p.sliced {
		all := Mask(p.Type.Width)
		if x.Const {
			v := uint64(x.Val) & all
			f = func(*Machine) (uint64, uint64) { return v, 0 }
		}
		return func(m *Machine) {
			v, u := f(m)
			if m.parsing && m.Short != 0 {
				return
			}
			m.Set(slot, v, u)
		}
	}
	lo, bits := p.lo, Mask(p.hi-p.lo+1)
	return func(m *Machine) {
		v, u := f(m)
		if m.parsing && m.Short != 0 {
			return
		}
		was := m.Cells[slot]
		m.Set(slot, was.Val&^(bits<<lo)|v<<lo, was.Undef&^(bits<<lo)|u<<lo)
	}
}

func (s *Scope) storeStruct(at syntax.Pos, p *Place, x Expr) Step {
	if x.Type.Class == ClassList {
		if p.Type.Class == ClassHeader || len(x.Elems) != len(p.Type.Fields) {
			syntax.Throw(at, "%d values for the %d fields of %s", len(x.Elems), len(p.Type.Fields), p.Type)
		}
		var steps []Step
		for i, f := range p.Type.Fields {
			steps = append(steps, s.Store(at, &Place{Slot: p.Slot + f.Offset, Type: f.Type}, x.Elems[i]))
		}
		return sequence(steps)
	}
	if x.Place == nil || !Same(x.Type, p.Type) {
		syntax.Throw(at, "%s where %s is expected", x.Type, p.Type)
	}
	to, from, n := p.Slot, x.Place.Slot, p.Type.Slots()
	return func(m *Machine) {
		m.copy(to, m.Cells[from:from+n])
	}
}

func (s *Scope) branch(stmt *syntax.If) Step {
	cond := s.Value(stmt.Cond).As(BoolType)
	if s.Unit != nil {
		cond = s.Unit.Condition(s, stmt.Cond)
	} else if s.pipeline() {
		s.gateway(stmt.Cond)
	}
	return s.branches(stmt, cond)
}

func (s *Scope) branches(stmt *syntax.If, cond Expr) Step {
	then := s.Block(stmt.Then)
	otherwise := func(*Machine) {}
	if stmt.Else != nil {
		otherwise = s.statement(stmt.Else)
	}
	yes, no := s.Build.spot(stmt.Then.Pos, "if"), s.Build.spot(stmt.Pos, "else")
	if stmt.Else != nil {
		no.Pos = stmt.Else.At()
	}
	if cond.Const {
		yes.Runs, no.Runs = 1, 1 // decided at compile time
	}
	f := cond.Eval
	return func(m *Machine) {
		v, u := f(m)
		switch {
		case u != 0:
			m.Join(then, otherwise)
		case v != 0:
			if m.Taint == 0 {
				yes.Runs++
			}
			then(m)
		default:
			if m.Taint == 0 {
				no.Runs++
			}
			otherwise(m)
		}
	}
}

func (s *Scope) do(stmt *syntax.Do) Step {
	x := s.Call(stmt.Call)
	if x.Type == nil {
		return Step(func(m *Machine) { x.Eval(m) })
	}
	f := x.Eval
	return func(m *Machine) { f(m) }
}
