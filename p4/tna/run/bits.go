package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// bitsAt reads up to 64 bits, first bit first; the data has them.
func bitsAt(data []byte, at, width int) uint64 {
	v := uint64(0)
	for have := 0; have < width; {
		free := 8 - at&7
		take := min(free, width-have)
		v = v<<take | uint64(data[at>>3])>>(free-take)&mask(take)
		at, have = at+take, have+take
	}
	return v
}

// bitWriter appends values to bytes.
type bitWriter struct {
	data []byte
	acc  uint64
	have int
}

func (w *bitWriter) put(v uint64, width int) {
	for width > 0 {
		take := min(width, 8-w.have)
		width -= take
		w.acc, w.have = w.acc<<take|v>>width&mask(take), w.have+take
		if w.have == 8 {
			w.data, w.acc, w.have = append(w.data, byte(w.acc)), 0, 0
		}
	}
}

// emit appends a header's fields; it is a fault when one is undefined.
func (w *bitWriter) emit(m *machine, at syntax.Pos, p *place) {
	for i, f := range p.typ.fields {
		slot := p.slot + f.offset
		if m.cells[slot].undef != 0 {
			m.fail(at, "field %s of %s leaves the switch undefined", p.typ.fields[i].name, p.typ)
		}
		w.put(m.cells[slot].val, f.typ.width)
	}
}

func emitted(m *machine, at syntax.Pos, p *place) []byte {
	var w bitWriter
	w.emit(m, at, p)
	return w.data
}

// packetIn and packetOut are the packet in a parser and in a deparser.
type (
	packetIn  struct{}
	packetOut struct{}
)

func (packetIn) call(s *scope, e *syntax.Call, method string) expr {
	switch method {
	case "extract":
		if len(e.Args) != 1 || len(e.Types) != 0 {
			syntax.Throw(e.Pos, "extract has one argument in the model")
		}
		return s.extract(e)
	case "advance":
		if len(e.Args) != 1 {
			syntax.Throw(e.Pos, "advance has one argument")
		}
		n := s.constant(e.Args[0])
		if n < 0 || n%8 != 0 {
			syntax.Throw(e.Pos, "advance by %d bits: whole bytes only", n)
		}
		return does(e.Pos, func(m *machine) { m.need(int(n)); m.at += int(n) })
	case "lookahead":
		if len(e.Types) != 1 || len(e.Args) != 0 {
			syntax.Throw(e.Pos, "lookahead has one type and no arguments")
		}
		t := s.typeOf(e.Types[0])
		if t.class != classBits {
			syntax.Throw(e.Pos, "of a lookahead of %s the model reads one field", t)
		}
		return look(e.Pos, t, 0, t.width)
	}
	syntax.Throw(e.Pos, "%s is outside of the model", method)
	return expr{}
}

// lookaheadField is pkt.lookahead<header>().field.
func (s *scope) lookaheadField(c *syntax.Call, f *syntax.Field) expr {
	fn, ok := c.Fn.(*syntax.Field)
	if !ok || fn.Name != "lookahead" || len(c.Args) != 0 {
		syntax.Throw(f.Pos, "a field of a call is outside of the model")
	}
	if n, ok := fn.X.(*syntax.Name); !ok || s.find(n.ID) != any(packetIn{}) {
		syntax.Throw(f.Pos, "lookahead is the packet's")
	}
	t := s.typeOf(c.Types[0])
	at := 0
	for _, field := range t.fields {
		if field.name == f.Name {
			return look(f.Pos, field.typ, at, t.bits())
		}
		at += field.typ.bits()
	}
	syntax.Throw(f.Pos, "%s has no field %s", t, f.Name)
	return expr{}
}

func look(at syntax.Pos, t *typ, from, need int) expr {
	return expr{at: at, typ: t, eval: func(m *machine) (uint64, uint64) {
		if !m.need(need) {
			return 0, mask(t.width)
		}
		return bitsAt(m.data, m.at+from, t.width), 0
	}}
}

// Parser errors, as prsr.parser_err has them.
const (
	parserNoMatch = 0x0001
	parserShort   = 0x0002
	parserFull    = 0x0004 // of a header stack; the compiler's name for it is one of its counters' range
)

// need says whether so many bits are left; if not, parsing ends here.
func (m *machine) need(n int) bool {
	if m.at+n > 8*len(m.data) {
		m.short |= parserShort
		return false
	}
	return m.short == 0
}

func (s *scope) extract(e *syntax.Call) expr {
	if stack := s.stack(e.Args[0], "next"); stack != nil {
		return s.extractNext(e.Pos, stack)
	}
	x := s.expr(e.Args[0])
	if x.place == nil || x.typ.class != classHeader || x.place.readonly {
		syntax.Throw(e.Pos, "%s where a header is wanted", x.typ)
	}
	p := x.place
	return does(e.Pos, func(m *machine) { m.extract(p) })
}

// extract a header.
func (m *machine) extract(p *place) {
	if !m.need(p.typ.bits()) {
		return
	}
	m.set(p.slot, 1, 0)
	at := m.at
	for _, f := range p.typ.fields {
		m.set(p.slot+f.offset, bitsAt(m.data, at, f.typ.width), 0)
		at += f.typ.width
	}
	m.at = at
}

func (packetOut) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "emit")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "emit has one argument")
	}
	x := s.expr(e.Args[0])
	if x.place == nil {
		syntax.Throw(e.Pos, "%s cannot be emitted", x.typ)
	}
	return does(e.Pos, emission(e.Pos, x.place))
}

// emission of a header, or of all that are in a struct or stack.
func emission(at syntax.Pos, p *place) step {
	var steps []step
	switch p.typ.class {
	case classHeader:
		return func(m *machine) {
			if m.cells[p.slot].undef != 0 {
				m.fail(at, "whether %s is valid is undefined", p.typ)
			}
			if m.cells[p.slot].val != 0 {
				w := bitWriter{data: m.out}
				w.emit(m, at, p)
				m.out = w.data
			}
		}
	case classStruct:
		for _, f := range p.typ.fields {
			steps = append(steps, emission(at, &place{slot: p.slot + f.offset, typ: f.typ}))
		}
	case classStack:
		for i := range p.typ.count {
			steps = append(steps, emission(at, p.element(i)))
		}
	default:
		syntax.Throw(at, "%s cannot be emitted", p.typ)
	}
	return sequence(steps)
}
