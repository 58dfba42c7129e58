package lang

import (
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Control is an instance of a control or parser.
type Control struct {
	Decl    *syntax.Control
	Ctor    []Constant
	path    string
	applied bool
	Home    *Scope // where it was declared
}

// action of a control. A table entry's data is copied to params before body runs.
type action struct {
	name    string
	at      syntax.Pos
	params  []*Place
	body    Step
	spot    *Spot
	effects effects
}

func (s *Scope) newControl(i *syntax.Instance, decl *syntax.Control) *Control {
	if len(i.Args) != len(decl.Ctor) {
		syntax.Throw(i.Pos, "%s is built with %d arguments, not %d", decl.Name, len(decl.Ctor), len(i.Args))
	}
	c := &Control{Decl: decl, path: s.Path + i.Name + ".", Home: s.Build.Global}
	for n, a := range i.Args {
		t := s.TypeOf(decl.Ctor[n].Type)
		x := s.Value(a).As(t)
		if !x.Const {
			syntax.Throw(a.At(), "%s is built with constants", decl.Name)
		}
		c.Ctor = append(c.Ctor, Constant{Type: t, Val: x.Val})
	}
	s.Build.Used[decl] = true
	return c
}

// Inside is the scope of a control's text with its parameters bound to places.
func (c *Control) Inside(b *Builder, bound []*Place) *Scope {
	s := c.Home.Inner()
	s.Path = c.path
	for n, p := range c.Decl.Ctor {
		s.Declare(p.Pos, p.Name, c.Ctor[n])
	}
	for n, p := range c.Decl.Params {
		if bound[n] != nil {
			s.Declare(p.Pos, p.Name, bound[n])
		}
	}
	return s
}

// apply compiles one application of a control. It is inlined: parameters are the caller's own places.
func (s *Scope) apply(at syntax.Pos, c *Control, args []syntax.Expr) Step {
	if c.applied {
		syntax.Throw(at, "%s is applied in two places: that is outside of the model (make a second instance)", c.Decl.Name)
	}
	c.applied = true
	if len(args) != len(c.Decl.Params) {
		syntax.Throw(at, "%s has %d parameters, %d are given", c.Decl.Name, len(c.Decl.Params), len(args))
	}
	bound := make([]*Place, len(args))
	var steps []Step
	for n, a := range args {
		var before Step
		bound[n], before = s.bind(c, c.Decl.Params[n], a)
		if before != nil {
			steps = append(steps, before)
		}
	}
	s.separate(at, c, bound)
	return sequence(append(steps, c.Inside(s.Build, bound).ControlBody(c.Decl)))
}

// bind gives a parameter its place, and the step that has to run first.
func (s *Scope) bind(c *Control, p *syntax.Param, a syntax.Expr) (*Place, Step) {
	t := c.Home.TypeOf(p.Type)
	x := s.Expr(a)
	if x.Type.Scalar() {
		x = x.As(t)
	} else if !Same(x.Type, t) {
		syntax.Throw(a.At(), "%s where parameter %s is %s", x.Type, p.Name, t)
	}
	whole := x.Place != nil && !x.Place.sliced
	switch p.Dir {
	case "in":
		if whole {
			q := *x.Place
			q.Readonly = true
			return &q, nil
		}
		q := s.Build.NewPlace(t)
		before := s.Store(a.At(), q, x)
		r := *q
		r.Readonly = true
		return &r, before
	case "inout", "out":
		if !whole || x.Place.Readonly {
			syntax.Throw(a.At(), "parameter %s is %s: it needs a variable of its own", p.Name, p.Dir)
		}
		if p.Dir == "out" {
			return x.Place, undefine(x.Place)
		}
		return x.Place, nil
	}
	syntax.Throw(p.Pos, "parameter %s of a control has no direction", p.Name)
	return nil, nil
}

// undefine invalidates an `out` parameter.
func undefine(p *Place) Step {
	if !p.Type.Scalar() {
		return nil // whole headers and metadata are assigned only by the parser
	}
	slot, all := p.Slot, Mask(p.Type.Width)
	return func(m *Machine) { m.Set(slot, 0, all) }
}

// separate rejects parameters that alias each other: copying in and out would then differ from sharing.
func (s *Scope) separate(at syntax.Pos, c *Control, bound []*Place) {
	for i, p := range bound {
		for j, q := range bound {
			if i != j && c.Decl.Params[i].Dir != "in" && p.overlaps(q) {
				syntax.Throw(at, "parameters %s and %s of %s are the same variable: outside of the model", c.Decl.Params[i].Name, c.Decl.Params[j].Name, c.Decl.Name)
			}
		}
	}
}

// ControlBody compiles what a control declares and applies.
func (s *Scope) ControlBody(decl *syntax.Control) Step {
	var steps []Step
	for _, d := range decl.Locals {
		if st := s.Local(d); st != nil {
			steps = append(steps, st)
		}
	}
	return sequence(append(steps, s.Block(decl.Apply)))
}

// Local declares a member of a control and returns the step that runs for every packet.
func (s *Scope) Local(d syntax.Decl) Step {
	switch d := d.(type) {
	case *syntax.Var:
		return s.variable(d)
	case *syntax.Const:
		s.declareConst(d)
	case *syntax.Instance:
		s.instance(d)
	case *syntax.Action:
		s.Declare(d.Pos, d.Name, s.action(d))
	case *syntax.Table:
		s.Declare(d.Pos, d.Name, s.table(d))
	}
	return nil
}

func (s *Scope) action(d *syntax.Action) *action {
	a := &action{name: d.Name, at: d.Pos, spot: s.Build.spot(d.Pos, "action "+s.Path+d.Name)}
	in := s.Inner()
	for _, p := range d.Params {
		if p.Dir == "out" || p.Dir == "inout" {
			syntax.Throw(p.Pos, "an action's parameter that is %s is outside of the model", p.Dir)
		}
		place := s.Build.NewPlace(s.TypeOf(p.Type))
		if !place.Type.Scalar() {
			syntax.Throw(p.Pos, "an action's parameter of %s is outside of the model", place.Type)
		}
		a.params = append(a.params, place)
		in.Declare(p.Pos, p.Name, place)
	}
	body, spot := in.Block(d.Body), a.spot
	in.params = a.params
	a.effects = in.effectsOf(d.Body)
	a.body = func(m *Machine) {
		if m.Taint == 0 {
			spot.Runs++
		}
		body(m)
	}
	return a
}
