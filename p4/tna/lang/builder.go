package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Builder compiles a program's declarations.
type Builder struct {
	Tables    []*Table
	ValueSets []*ValueSet
	Spots     []*Spot

	initial   []Cell // of a packet
	Global    *Scope
	Used      map[*syntax.Control]bool
	applied   map[*Table]bool
	externs   map[string]NewObject
	inParsers []string // externs that are allowed in a parser
	Env       any      // through which externs find each other
	Loose     bool     // compute what the chip cannot (chip.go)
}

// NewObject makes an instance of an extern.
type NewObject func(*Scope, *syntax.Instance) any

// object is an instance of an extern.
type object interface {
	Call(s *Scope, e *syntax.Call, method string) Expr
}

// direct is an extern that belongs to one table.
type direct interface {
	Join(t *Table) bool // false: it belongs to another table
}

// Unit is the context of an extern's method, which has rules of its own.
type Unit interface {
	// Read reads a name, or a field of one, that belongs to the unit; ok is false if it does not.
	Read(s *Scope, e syntax.Expr) (Expr, bool)
	Local(s *Scope, d *syntax.Var, t *Type) Step
	Assign(s *Scope, a *syntax.Assign) Step
	Condition(s *Scope, e syntax.Expr) Expr
	// this is a call of a method of the object itself.
	This(s *Scope, e *syntax.Call, method string) Expr
}

// Spot is a position in the text whose coverage is recorded.
type Spot struct {
	syntax.Pos
	Name string
	Runs uint64
}

func (b *Builder) spot(at syntax.Pos, name string) *Spot {
	s := &Spot{Pos: at, Name: name}
	b.Spots = append(b.Spots, s)
	return s
}

// NewBuilder takes externs by name, and which of them are allowed in a parser; env lets externs find each other.
func NewBuilder(externs map[string]NewObject, inParsers []string, env any) *Builder {
	b := &Builder{Used: map[*syntax.Control]bool{}, applied: map[*Table]bool{}, externs: externs, inParsers: inParsers, Env: env}
	b.Global = &Scope{Names: map[string]any{}, Build: b}
	return b
}

// Declare handles declarations outside of controls, except instances.
func (b *Builder) Declare(d syntax.Decl) {
	s := b.Global
	switch d := d.(type) {
	case *syntax.Const:
		s.declareConst(d)
	case *syntax.Typedef:
		s.Declare(d.Pos, d.Name, s.TypeOf(d.Type))
	case *syntax.Struct:
		s.declareStruct(d)
	case *syntax.Enum:
		s.declareEnum(d)
	case *syntax.Control:
		s.Declare(d.Pos, d.Name, d)
	}
}

// instance declares an object: of a control, or of an extern.
func (s *Scope) instance(i *syntax.Instance) {
	if decl, ok := s.Find(i.Type.Name).(*syntax.Control); ok {
		s.Declare(i.Pos, i.Name, s.newControl(i, decl))
		return
	}
	make, ok := s.Build.externs[i.Type.Name]
	if !ok {
		syntax.Throw(i.Pos, "%s is outside of the model", i.Type.Name)
	}
	if i.Type.Name != "RegisterAction" && len(i.Methods) > 0 {
		syntax.Throw(i.Pos, "%s has no methods to give", i.Type.Name)
	}
	s.Declare(i.Pos, i.Name, make(s, i))
}

// Arguments checks the number of types and values.
func Arguments(i *syntax.Instance, types int, values ...int) {
	if len(i.Type.Args) != types {
		syntax.Throw(i.Pos, "%s has %d types, not %d", i.Type.Name, types, len(i.Type.Args))
	}
	for _, n := range values {
		if n == len(i.Args) {
			return
		}
	}
	syntax.Throw(i.Pos, "%s is not built with %d arguments", i.Type.Name, len(i.Args))
}

// ScalarType is a type of bits.
func (s *Scope) ScalarType(t *syntax.Type) *Type {
	found := s.TypeOf(t)
	if found.Class != ClassBits {
		syntax.Throw(t.Pos, "%s where bits are expected", found)
	}
	return found
}
