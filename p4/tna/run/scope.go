package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// scope holds what names refer to: *typ, *enum, constant, *place, *action, *table, *syntax.Control, *control and externs.
type scope struct {
	outer  *scope
	names  map[string]any
	build  *builder
	path   string // of the control, in front of names: "fridge.inserts."
	unit   unit   // that this is compiled for; nil: the pipeline itself
	parses bool   // inside of a parser
}

// constant is a value known before the program runs.
type constant struct {
	typ *typ
	val int64
}

func (s *scope) inner() *scope {
	return &scope{outer: s, names: map[string]any{}, build: s.build, path: s.path, unit: s.unit, parses: s.parses}
}

func (s *scope) find(name string) any {
	for ; s != nil; s = s.outer {
		if d, ok := s.names[name]; ok {
			return d
		}
	}
	return nil
}

func (s *scope) declare(at syntax.Pos, name string, d any) {
	if _, twice := s.names[name]; twice {
		syntax.Throw(at, "%s is declared twice", name)
	}
	s.names[name] = d
}

// must finds what a name refers to.
func (s *scope) must(at syntax.Pos, name string) any {
	d := s.find(name)
	if d == nil {
		syntax.Throw(at, "%s is not declared", name)
	}
	return d
}

// constant evaluates what has to be known before the program runs.
func (s *scope) constant(e syntax.Expr) int64 {
	x := s.expr(e)
	if !x.con {
		syntax.Throw(e.At(), "a constant is wanted here")
	}
	return x.val
}

// place is where a value lives: slots of the machine's state, or a slice of one.
type place struct {
	slot     int
	typ      *typ
	hi, lo   int
	sliced   bool
	readonly bool
}

// newPlace allocates slots that begin undefined.
func (b *builder) newPlace(t *typ) *place {
	p := &place{slot: len(b.initial), typ: t}
	b.layout(t)
	return p
}

func (b *builder) layout(t *typ) {
	switch t.class {
	case classStruct, classHeader:
		if t.class == classHeader {
			b.slot(0)
		}
		for _, f := range t.fields {
			b.layout(f.typ)
		}
	case classStack:
		b.slot(0)
		for range t.count {
			b.layout(t.elem)
		}
	default:
		b.slot(mask(t.width))
	}
}

func (b *builder) slot(undefined uint64) {
	b.initial = append(b.initial, cell{undef: undefined})
}

// zero makes what a place holds begin as zeros, which the chip's parser does for metadata.
func (b *builder) zero(p *place) {
	for i := range p.typ.slots() {
		b.initial[p.slot+i].undef = 0
	}
}

func (p *place) field(at syntax.Pos, name string) *place {
	if p.typ.class != classStruct && p.typ.class != classHeader {
		syntax.Throw(at, "%s has no field %s", p.typ, name)
	}
	f, ok := p.typ.field(name)
	if !ok {
		syntax.Throw(at, "%s has no field %s", p.typ, name)
	}
	return &place{slot: p.slot + f.offset, typ: f.typ, readonly: p.readonly}
}

func (p *place) overlaps(q *place) bool {
	return p.slot < q.slot+q.typ.slots() && q.slot < p.slot+p.typ.slots()
}

func mask(width int) uint64 {
	if width >= 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}
