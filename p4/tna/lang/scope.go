package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Scope maps names to declarations: *typ, *enum, constant, *place, *action, *table, *syntax.Control, *control and externs.
type Scope struct {
	Outer  *Scope
	Names  map[string]any
	Build  *Builder
	Path   string // of the control, as a prefix of names: "fridge.inserts."
	Unit   Unit   // that this is compiled for; nil: the pipeline
	Parses bool   // inside of a parser

	Deparses bool     // inside of a deparser
	params   []*Place // of the current action
}

// Constant is a value known before the program runs.
type Constant struct {
	Type *Type
	Val  int64
}

// Inner is a scope inside of this one.
func (s *Scope) Inner() *Scope {
	return &Scope{Outer: s, Names: map[string]any{}, Build: s.Build, Path: s.Path, Unit: s.Unit, Parses: s.Parses, Deparses: s.Deparses}
}

// Find returns the declaration of a name; nil: none.
func (s *Scope) Find(name string) any {
	for ; s != nil; s = s.Outer {
		if d, ok := s.Names[name]; ok {
			return d
		}
	}
	return nil
}

// Declare a name in this scope.
func (s *Scope) Declare(at syntax.Pos, name string, d any) {
	if _, twice := s.Names[name]; twice {
		syntax.Throw(at, "%s is declared twice", name)
	}
	s.Names[name] = d
}

// Must returns the declaration of a name.
func (s *Scope) Must(at syntax.Pos, name string) any {
	d := s.Find(name)
	if d == nil {
		syntax.Throw(at, "%s is not declared", name)
	}
	return d
}

// Constant evaluates an expression at compile time.
func (s *Scope) Constant(e syntax.Expr) int64 {
	x := s.Expr(e)
	if !x.Const {
		syntax.Throw(e.At(), "a constant is expected here")
	}
	return x.Val
}

// Place is the storage of a value: slots of the machine's state, or a slice of one.
type Place struct {
	Slot     int
	Type     *Type
	hi, lo   int
	sliced   bool
	Readonly bool
}

// NewPlace allocates slots that are initially undefined.
func (b *Builder) NewPlace(t *Type) *Place {
	p := &Place{Slot: len(b.initial), Type: t}
	b.layout(t)
	return p
}

func (b *Builder) layout(t *Type) {
	switch t.Class {
	case ClassStruct, ClassHeader:
		if t.Class == ClassHeader {
			b.slot(0)
		}
		for _, f := range t.Fields {
			b.layout(f.Type)
		}
	case classStack:
		b.slot(0)
		for range t.count {
			b.layout(t.elem)
		}
	default:
		b.slot(Mask(t.Width))
	}
}

func (b *Builder) slot(undefined uint64) {
	b.initial = append(b.initial, Cell{Undef: undefined})
}

// Zero initializes a place to zeros, as the chip's parser does for metadata.
func (b *Builder) Zero(p *Place) {
	for i := range p.Type.Slots() {
		b.initial[p.Slot+i].Undef = 0
	}
}

// Field of a header or struct.
func (p *Place) Field(at syntax.Pos, name string) *Place {
	if p.Type.Class != ClassStruct && p.Type.Class != ClassHeader {
		syntax.Throw(at, "%s has no field %s", p.Type, name)
	}
	f, ok := p.Type.field(name)
	if !ok {
		syntax.Throw(at, "%s has no field %s", p.Type, name)
	}
	return &Place{Slot: p.Slot + f.Offset, Type: f.Type, Readonly: p.Readonly}
}

func (p *Place) overlaps(q *Place) bool {
	return p.Slot < q.Slot+q.Type.Slots() && q.Slot < p.Slot+p.Type.Slots()
}

// Mask of the lowest bits.
func Mask(width int) uint64 {
	if width >= 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}
