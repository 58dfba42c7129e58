package structure

import (
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// scope is a control's text with the names that it declares.
type scope struct {
	w     *walker
	outer *scope
	names map[string]any // place, *syntax.Const, constant, *action, *table, *register, *method, *hash, *source, *instance
	path  string
}

// constant is an argument of a control's constructor.
type constant uint64

type (
	// action of a control, or the method of a RegisterAction.
	action struct {
		decl *syntax.Action
		in   *scope
	}
	table struct {
		decl *syntax.Table
		in   *scope
	}
	instance struct {
		decl *syntax.Control
		args []uint64
		path string
	}
	// register or low-pass filter.
	register struct {
		name, path string
		at         syntax.Pos
		width      int
		entries    uint64
		initial    []uint64
		filter     bool
		actions    []string // declared for it
	}
	method struct {
		name string
		of   *register
		decl *syntax.Instance
		in   *scope
	}
	hash struct{ row int } // -1: not a hash but the plain bits
	// source is an extern whose results depend on their arguments and on this name; "": only on the arguments.
	source struct{ name string }
)

func (s *scope) find(name string) any {
	for at := s; at != nil; at = at.outer {
		if x, ok := at.names[name]; ok {
			return x
		}
	}
	return nil
}

// body declares what a control has and runs its apply.
func (s *scope) body(c *syntax.Control) {
	for _, d := range c.Locals {
		s.local(d)
	}
	s.block(c.Apply)
}

func (s *scope) local(d syntax.Decl) {
	switch d := d.(type) {
	case *syntax.Var:
		s.variable(d)
	case *syntax.Const:
		s.names[d.Name] = d
	case *syntax.Action:
		s.names[d.Name] = &action{d, s}
	case *syntax.Table:
		s.names[d.Name] = &table{d, s}
	case *syntax.Instance:
		s.names[d.Name] = s.instance(d)
	}
}

func (s *scope) variable(d *syntax.Var) {
	p := place(s.path + d.Name)
	s.names[d.Name] = p
	var of set
	if d.Init != nil {
		of = s.expr(d.Init).or(s.w.guard)
	}
	s.w.assign(p, of)
}

func (s *scope) instance(i *syntax.Instance) any {
	w := s.w
	if c, ok := w.controls[i.Type.Name]; ok {
		out := &instance{decl: c, path: s.path + i.Name + "."}
		for _, a := range i.Args {
			out.args = append(out.args, s.number(a))
		}
		return out
	}
	switch i.Type.Name {
	case "Register", "Lpf":
		return s.register(i)
	case "RegisterAction":
		r, ok := s.find(i.Args[0].(*syntax.Name).ID).(*register)
		if !ok {
			syntax.Throw(i.Pos, "%s is of no register", i.Name)
		}
		if !slices.Contains(r.actions, i.Name) {
			r.actions = append(r.actions, i.Name)
		}
		return &method{i.Name, r, i, s}
	case "CRCPolynomial":
		return constant(s.number(i.Args[0]))
	case "Hash":
		return s.hash(i)
	case "Random":
		return &source{randomSource}
	case "Meter":
		return &source{"budget"}
	case "RegisterParam", "MathUnit", "DirectCounter", "Counter", "Digest", "Mirror", "Resubmit", "Checksum":
		return &source{}
	}
	syntax.Throw(i.Pos, "%s is outside of the comparison", i.Type.Name)
	return nil
}

// polynomials of the rows, as in p4/include/hashing.p4; a test compares them with the loader's.
var polynomials = []uint64{0x04C11DB7, 0x1EDC6F41, 0x741B8CD7, 0x814141AB}

func (s *scope) hash(i *syntax.Instance) *hash {
	if f, ok := i.Args[0].(*syntax.Field); ok && f.Name == "IDENTITY" {
		return &hash{-1}
	}
	if len(i.Args) == 2 {
		if name, ok := i.Args[1].(*syntax.Name); ok {
			if p, ok := s.find(name.ID).(constant); ok {
				for row, known := range polynomials {
					if known == uint64(p) {
						return &hash{row}
					}
				}
			}
		}
	}
	syntax.Throw(i.Pos, "hash %s is of none of the rows", i.Name)
	return nil
}

func (s *scope) register(i *syntax.Instance) *register {
	r := &register{name: i.Name, path: s.path + i.Name, at: i.Pos, entries: s.number(i.Args[0]), filter: i.Type.Name == "Lpf", initial: []uint64{}}
	r.width = s.w.widthOf(s, i.Type.Args[0])
	if len(i.Args) > 1 {
		if list, ok := i.Args[1].(*syntax.List); ok {
			for _, e := range list.Elems {
				r.initial = append(r.initial, s.number(e))
			}
		} else {
			r.initial = append(r.initial, s.number(i.Args[1]))
		}
	}
	return r
}

// widthOf a type in bits.
func (w *walker) widthOf(s *scope, t *syntax.Type) int {
	if t.Name == "bit" || t.Name == "int" {
		if t.Width == nil {
			return 1
		}
		return int(s.number(t.Width))
	}
	if to, ok := w.types[t.Name]; ok {
		return w.widthOf(w.global, to)
	}
	if d, ok := w.structs[t.Name]; ok {
		n := 0
		for _, f := range d.Fields {
			n += w.widthOf(w.global, f.Type)
		}
		return n
	}
	syntax.Throw(t.Pos, "width of %s is outside of the comparison", t.Name)
	return 0
}

// number calculates a constant.
func (s *scope) number(e syntax.Expr) uint64 {
	n, ok := s.constant(e)
	if !ok {
		syntax.Throw(e.At(), "%s is no constant here", syntax.Print(e))
	}
	return n
}

func (s *scope) constant(e syntax.Expr) (uint64, bool) {
	switch e := e.(type) {
	case *syntax.Number:
		return e.Value, true
	case *syntax.Bool:
		if e.Value {
			return 1, true
		}
		return 0, true
	case *syntax.Cast:
		return s.constant(e.X)
	case *syntax.Name:
		switch x := s.find(e.ID).(type) {
		case constant:
			return uint64(x), true
		case *syntax.Const:
			return s.w.global.constant(x.Value)
		}
	case *syntax.Unary:
		x, ok := s.constant(e.X)
		switch e.Op {
		case "-":
			return -x, ok
		case "~":
			return ^x, ok
		}
	case *syntax.Binary:
		x, okX := s.constant(e.X)
		y, okY := s.constant(e.Y)
		if n, ok := calculate(e.Op, x, y); ok && okX && okY {
			return n, true
		}
	}
	return 0, false
}

func calculate(op string, x, y uint64) (uint64, bool) {
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "<<":
		return x << y, true
	case ">>":
		return x >> y, true
	case "&":
		return x & y, true
	case "|":
		return x | y, true
	case "/":
		if y != 0 {
			return x / y, true
		}
	}
	return 0, false
}

// place of an expression that names a variable or a part of one; sliced: of some of its bits.
func (s *scope) place(e syntax.Expr) (p place, sliced, ok bool) {
	switch e := e.(type) {
	case *syntax.Name:
		p, ok = s.find(e.ID).(place)
	case *syntax.Field:
		if p, sliced, ok = s.place(e.X); ok {
			p = p.field(e.Name)
		}
	case *syntax.Index:
		return s.place(e.X)
	case *syntax.Slice:
		p, _, ok = s.place(e.X)
		sliced = true
	}
	return p, sliced, ok
}
