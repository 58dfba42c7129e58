package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

func (s *scope) block(b *syntax.Block) step {
	in := s.inner()
	var steps []step
	for _, stmt := range b.Stmts {
		steps = append(steps, in.statement(stmt))
	}
	return sequence(steps)
}

func (s *scope) statement(stmt syntax.Stmt) step {
	switch stmt := stmt.(type) {
	case *syntax.Block:
		return s.block(stmt)
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
		return func(*machine) {}
	case *syntax.Do:
		return s.do(stmt)
	}
	syntax.Throw(stmt.At(), "this statement is outside of the model")
	return nil
}

func (s *scope) declareConst(d *syntax.Const) {
	t := s.typeOf(d.Type)
	x := s.value(d.Value).as(t)
	if !x.con {
		syntax.Throw(d.Pos, "%s is no constant", d.Name)
	}
	s.declare(d.Pos, d.Name, constant{typ: t, val: x.val})
}

// variable declares it and returns the step that gives it its first value.
func (s *scope) variable(d *syntax.Var) step {
	t := s.typeOf(d.Type)
	if s.unit != nil {
		return s.unit.local(s, d, t)
	}
	p := s.build.newPlace(t)
	s.declare(d.Pos, d.Name, p)
	if d.Init == nil {
		return nil
	}
	return s.store(d.Pos, p, s.expr(d.Init))
}

func (s *scope) assign(a *syntax.Assign) step {
	if s.unit != nil {
		return s.unit.assign(s, a)
	}
	l := s.expr(a.L)
	if l.place == nil {
		syntax.Throw(a.Pos, "the left side cannot be assigned to")
	}
	if l.place.readonly {
		syntax.Throw(a.Pos, "the left side is an `in` parameter")
	}
	return s.store(a.Pos, l.place, s.expr(a.R))
}

// store assigns a value, a struct or a list.
func (s *scope) store(at syntax.Pos, p *place, x expr) step {
	if p.typ.class == classStruct || p.typ.class == classHeader {
		return s.storeStruct(at, p, x)
	}
	if !p.typ.scalar() {
		syntax.Throw(at, "an assignment of a whole %s is outside of the model", p.typ)
	}
	return storeValue(p, x.as(p.typ))
}

func storeValue(p *place, x expr) step {
	slot, f := p.slot, x.eval
	if !p.sliced {
		all := mask(p.typ.width)
		if x.con {
			v := uint64(x.val) & all
			f = func(*machine) (uint64, uint64) { return v, 0 }
		}
		return func(m *machine) {
			v, u := f(m)
			if m.parsing && m.short != 0 {
				return
			}
			m.set(slot, v, u)
		}
	}
	lo, bits := p.lo, mask(p.hi-p.lo+1)
	return func(m *machine) {
		v, u := f(m)
		if m.parsing && m.short != 0 {
			return
		}
		was := m.cells[slot]
		m.set(slot, was.val&^(bits<<lo)|v<<lo, was.undef&^(bits<<lo)|u<<lo)
	}
}

func (s *scope) storeStruct(at syntax.Pos, p *place, x expr) step {
	if x.typ.class == classList {
		if p.typ.class == classHeader || len(x.elems) != len(p.typ.fields) {
			syntax.Throw(at, "%d values for the %d fields of %s", len(x.elems), len(p.typ.fields), p.typ)
		}
		var steps []step
		for i, f := range p.typ.fields {
			steps = append(steps, s.store(at, &place{slot: p.slot + f.offset, typ: f.typ}, x.elems[i]))
		}
		return sequence(steps)
	}
	if x.place == nil || !same(x.typ, p.typ) {
		syntax.Throw(at, "%s where %s is wanted", x.typ, p.typ)
	}
	to, from, n := p.slot, x.place.slot, p.typ.slots()
	return func(m *machine) {
		m.copy(to, m.cells[from:from+n])
	}
}

func (s *scope) branch(stmt *syntax.If) step {
	cond := s.value(stmt.Cond).as(boolType)
	if s.unit != nil {
		cond = s.unit.condition(s, stmt.Cond)
	}
	return s.branches(stmt, cond)
}

func (s *scope) branches(stmt *syntax.If, cond expr) step {
	then := s.block(stmt.Then)
	otherwise := func(*machine) {}
	if stmt.Else != nil {
		otherwise = s.statement(stmt.Else)
	}
	yes, no := s.build.spot(stmt.Then.Pos, "if"), s.build.spot(stmt.Pos, "else")
	if stmt.Else != nil {
		no.Pos = stmt.Else.At()
	}
	if cond.con {
		yes.Runs, no.Runs = 1, 1 // decided when it is compiled
	}
	f := cond.eval
	return func(m *machine) {
		v, u := f(m)
		switch {
		case u != 0:
			m.join(then, otherwise)
		case v != 0:
			if m.taint == 0 {
				yes.Runs++
			}
			then(m)
		default:
			if m.taint == 0 {
				no.Runs++
			}
			otherwise(m)
		}
	}
}

func (s *scope) do(stmt *syntax.Do) step {
	x := s.call(stmt.Call)
	if x.typ == nil {
		return step(func(m *machine) { x.eval(m) })
	}
	f := x.eval
	return func(m *machine) { f(m) }
}
