package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// builder compiles what a program declares.
type builder struct {
	Tables    []*Table
	ValueSets []*ValueSet
	Spots     []*Spot

	initial   []cell // of a packet
	global    *scope
	used      map[*syntax.Control]bool
	applied   map[*Table]bool
	externs   map[string]newObject
	inParsers []string // externs that a parser may declare
	env       any      // what externs find each other by
}

// newObject makes an instance of an extern.
type newObject func(*scope, *syntax.Instance) any

// object is an instance of an extern.
type object interface {
	call(s *scope, e *syntax.Call, method string) expr
}

// direct is an extern that belongs to one table.
type direct interface {
	join(t *Table) bool // no: it belongs to another one
}

// unit is what the method of an extern is compiled for: it has rules of its own.
type unit interface {
	// read a name, or a field of one, that is the unit's; no: it is not.
	read(s *scope, e syntax.Expr) (expr, bool)
	local(s *scope, d *syntax.Var, t *typ) step
	assign(s *scope, a *syntax.Assign) step
	condition(s *scope, e syntax.Expr) expr
	// this is a call of a method of the object itself.
	this(s *scope, e *syntax.Call, method string) expr
}

// Spot is a place of the text that packets may or may not reach.
type Spot struct {
	syntax.Pos
	Name string
	Runs uint64
}

func (b *builder) spot(at syntax.Pos, name string) *Spot {
	s := &Spot{Pos: at, Name: name}
	b.Spots = append(b.Spots, s)
	return s
}

func newBuilder(externs map[string]newObject, inParsers []string, env any) *builder {
	b := &builder{used: map[*syntax.Control]bool{}, applied: map[*Table]bool{}, externs: externs, inParsers: inParsers, env: env}
	b.global = &scope{names: map[string]any{}, build: b}
	return b
}

// declare what stands outside of controls, but for instances.
func (b *builder) declare(d syntax.Decl) {
	s := b.global
	switch d := d.(type) {
	case *syntax.Const:
		s.declareConst(d)
	case *syntax.Typedef:
		s.declare(d.Pos, d.Name, s.typeOf(d.Type))
	case *syntax.Struct:
		s.declareStruct(d)
	case *syntax.Enum:
		s.declareEnum(d)
	case *syntax.Control:
		s.declare(d.Pos, d.Name, d)
	}
}

// instance declares an object: of a control, or of an extern.
func (s *scope) instance(i *syntax.Instance) {
	if decl, ok := s.find(i.Type.Name).(*syntax.Control); ok {
		s.declare(i.Pos, i.Name, s.newControl(i, decl))
		return
	}
	make, ok := s.build.externs[i.Type.Name]
	if !ok {
		syntax.Throw(i.Pos, "%s is outside of the model", i.Type.Name)
	}
	if i.Type.Name != "RegisterAction" && len(i.Methods) > 0 {
		syntax.Throw(i.Pos, "%s has no methods to give", i.Type.Name)
	}
	s.declare(i.Pos, i.Name, make(s, i))
}
