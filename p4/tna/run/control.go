package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// control is an instance of a control or parser.
type control struct {
	decl    *syntax.Control
	ctor    []constant
	path    string
	applied bool
	home    *scope // where it was declared
}

// action of a control. What a table's entry gives it is copied to params before body runs.
type action struct {
	name   string
	at     syntax.Pos
	params []*place
	body   step
	spot   *Spot
}

func (s *scope) newControl(i *syntax.Instance, decl *syntax.Control) *control {
	if len(i.Args) != len(decl.Ctor) {
		syntax.Throw(i.Pos, "%s is built with %d arguments, not %d", decl.Name, len(decl.Ctor), len(i.Args))
	}
	c := &control{decl: decl, path: s.path + i.Name + ".", home: s.build.global}
	for n, a := range i.Args {
		t := s.typeOf(decl.Ctor[n].Type)
		x := s.value(a).as(t)
		if !x.con {
			syntax.Throw(a.At(), "%s is built with constants", decl.Name)
		}
		c.ctor = append(c.ctor, constant{typ: t, val: x.val})
	}
	s.build.used[decl] = true
	return c
}

// inside is the scope of a control's text with its parameters bound to places.
func (c *control) inside(b *builder, bound []*place) *scope {
	s := c.home.inner()
	s.path = c.path
	for n, p := range c.decl.Ctor {
		s.declare(p.Pos, p.Name, c.ctor[n])
	}
	for n, p := range c.decl.Params {
		if bound[n] != nil {
			s.declare(p.Pos, p.Name, bound[n])
		}
	}
	return s
}

// apply compiles one application of a control. It is inlined: parameters are the caller's own places.
func (s *scope) apply(at syntax.Pos, c *control, args []syntax.Expr) step {
	if c.applied {
		syntax.Throw(at, "%s is applied in two places: that is outside of the model (make a second instance)", c.decl.Name)
	}
	c.applied = true
	if len(args) != len(c.decl.Params) {
		syntax.Throw(at, "%s has %d parameters, %d are given", c.decl.Name, len(c.decl.Params), len(args))
	}
	bound := make([]*place, len(args))
	var steps []step
	for n, a := range args {
		var before step
		bound[n], before = s.bind(c, c.decl.Params[n], a)
		if before != nil {
			steps = append(steps, before)
		}
	}
	s.separate(at, c, bound)
	return sequence(append(steps, c.inside(s.build, bound).controlBody(c.decl)))
}

// bind gives a parameter its place, and the step that has to run first.
func (s *scope) bind(c *control, p *syntax.Param, a syntax.Expr) (*place, step) {
	t := c.home.typeOf(p.Type)
	x := s.expr(a)
	if x.typ.scalar() {
		x = x.as(t)
	} else if !same(x.typ, t) {
		syntax.Throw(a.At(), "%s where parameter %s is %s", x.typ, p.Name, t)
	}
	whole := x.place != nil && !x.place.sliced
	switch p.Dir {
	case "in":
		if whole {
			q := *x.place
			q.readonly = true
			return &q, nil
		}
		q := s.build.newPlace(t)
		before := s.store(a.At(), q, x)
		r := *q
		r.readonly = true
		return &r, before
	case "inout", "out":
		if !whole || x.place.readonly {
			syntax.Throw(a.At(), "parameter %s is %s: it needs a variable of its own", p.Name, p.Dir)
		}
		if p.Dir == "out" {
			return x.place, undefine(x.place)
		}
		return x.place, nil
	}
	syntax.Throw(p.Pos, "parameter %s of a control has no direction", p.Name)
	return nil, nil
}

// undefine is what happens to an `out` parameter.
func undefine(p *place) step {
	if !p.typ.scalar() {
		return nil // whole headers and metadata are the parser's alone
	}
	slot, all := p.slot, mask(p.typ.width)
	return func(m *machine) { m.set(slot, 0, all) }
}

// separate refuses parameters that would change each other: copying in and out would then differ from sharing.
func (s *scope) separate(at syntax.Pos, c *control, bound []*place) {
	for i, p := range bound {
		for j, q := range bound {
			if i != j && c.decl.Params[i].Dir != "in" && p.overlaps(q) {
				syntax.Throw(at, "parameters %s and %s of %s are the same variable: outside of the model", c.decl.Params[i].Name, c.decl.Params[j].Name, c.decl.Name)
			}
		}
	}
}

func (s *scope) controlBody(decl *syntax.Control) step {
	var steps []step
	for _, d := range decl.Locals {
		if st := s.local(d); st != nil {
			steps = append(steps, st)
		}
	}
	return sequence(append(steps, s.block(decl.Apply)))
}

// local declares a member of a control and returns what has to run for every packet.
func (s *scope) local(d syntax.Decl) step {
	switch d := d.(type) {
	case *syntax.Var:
		return s.variable(d)
	case *syntax.Const:
		s.declareConst(d)
	case *syntax.Instance:
		s.instance(d)
	case *syntax.Action:
		s.declare(d.Pos, d.Name, s.action(d))
	case *syntax.Table:
		s.declare(d.Pos, d.Name, s.table(d))
	}
	return nil
}

func (s *scope) action(d *syntax.Action) *action {
	a := &action{name: d.Name, at: d.Pos, spot: s.build.spot(d.Pos, "action "+s.path+d.Name)}
	in := s.inner()
	for _, p := range d.Params {
		if p.Dir == "out" || p.Dir == "inout" {
			syntax.Throw(p.Pos, "an action's parameter that is %s is outside of the model", p.Dir)
		}
		place := s.build.newPlace(s.typeOf(p.Type))
		if !place.typ.scalar() {
			syntax.Throw(p.Pos, "an action's parameter of %s is outside of the model", place.typ)
		}
		a.params = append(a.params, place)
		in.declare(p.Pos, p.Name, place)
	}
	body, spot := in.block(d.Body), a.spot
	a.body = func(m *machine) {
		if m.taint == 0 {
			spot.Runs++
		}
		body(m)
	}
	return a
}
