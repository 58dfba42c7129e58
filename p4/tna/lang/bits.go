package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// bitsAt reads up to 64 bits, first bit first; the data must contain them.
func bitsAt(data []byte, at, width int) uint64 {
	v := uint64(0)
	if at&7 == 0 && width&7 == 0 {
		for _, b := range data[at>>3 : (at+width)>>3] {
			v = v<<8 | uint64(b)
		}
		return v
	}
	for have := 0; have < width; {
		free := 8 - at&7
		take := min(free, width-have)
		v = v<<take | uint64(data[at>>3])>>(free-take)&Mask(take)
		at, have = at+take, have+take
	}
	return v
}

// BitWriter appends values to bytes.
type BitWriter struct {
	Data []byte
	acc  uint64
	have int
}

// Put appends a value of so many bits.
func (w *BitWriter) Put(v uint64, width int) {
	for w.have == 0 && width >= 8 {
		width -= 8
		w.Data = append(w.Data, byte(v>>width))
	}
	for width > 0 {
		take := min(width, 8-w.have)
		width -= take
		w.acc, w.have = w.acc<<take|v>>width&Mask(take), w.have+take
		if w.have == 8 {
			w.Data, w.acc, w.have = append(w.Data, byte(w.acc)), 0, 0
		}
	}
}

// emit appends a header's fields; an undefined one is a fault.
func (w *BitWriter) emit(m *Machine, at syntax.Pos, p *Place) {
	for i, f := range p.Type.Fields {
		slot := p.Slot + f.Offset
		if m.Cells[slot].Undef != 0 {
			m.Fail(at, "field %s of %s leaves the switch undefined", p.Type.Fields[i].Name, p.Type)
		}
		w.Put(m.Cells[slot].Val, f.Type.Width)
	}
}

// Emitted are the bytes of a header.
func Emitted(m *Machine, at syntax.Pos, p *Place) []byte {
	var w BitWriter
	w.emit(m, at, p)
	return w.Data
}

// Made is a header as it was emitted.
type Made struct {
	Type   *Type
	Values []uint64 // of its fields, in order
}

// MadeOf is the current content of a header.
func MadeOf(m *Machine, p *Place) Made {
	made := Made{Type: p.Type, Values: make([]uint64, len(p.Type.Fields))}
	for i, f := range p.Type.Fields {
		made.Values[i] = m.Cells[p.Slot+f.Offset].Val
	}
	return made
}

// PacketIn and packetOut are the packet in a parser and in a deparser.
type (
	PacketIn  struct{}
	PacketOut struct{}
)

// Call is extract, advance or lookahead.
func (PacketIn) Call(s *Scope, e *syntax.Call, method string) Expr {
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
		n := s.Constant(e.Args[0])
		if n < 0 || n%8 != 0 {
			syntax.Throw(e.Pos, "advance by %d bits: whole bytes only", n)
		}
		return Does(e.Pos, func(m *Machine) { m.need(int(n)); m.at += int(n) })
	case "lookahead":
		if len(e.Types) != 1 || len(e.Args) != 0 {
			syntax.Throw(e.Pos, "lookahead has one type and no arguments")
		}
		t := s.TypeOf(e.Types[0])
		if t.Class != ClassBits {
			syntax.Throw(e.Pos, "of a lookahead of %s the model reads one field", t)
		}
		return look(e.Pos, t, 0, t.Width)
	}
	syntax.Throw(e.Pos, "%s is outside of the model", method)
	return Expr{}
}

// lookaheadField is pkt.lookahead<header>().field.
func (s *Scope) lookaheadField(c *syntax.Call, f *syntax.Field) Expr {
	fn, ok := c.Fn.(*syntax.Field)
	if !ok || fn.Name != "lookahead" || len(c.Args) != 0 {
		syntax.Throw(f.Pos, "a field of a call is outside of the model")
	}
	if n, ok := fn.X.(*syntax.Name); !ok || s.Find(n.ID) != any(PacketIn{}) {
		syntax.Throw(f.Pos, "lookahead is the packet's")
	}
	t := s.TypeOf(c.Types[0])
	at := 0
	for _, field := range t.Fields {
		if field.Name == f.Name {
			return look(f.Pos, field.Type, at, t.Bits())
		}
		at += field.Type.Bits()
	}
	syntax.Throw(f.Pos, "%s has no field %s", t, f.Name)
	return Expr{}
}

func look(at syntax.Pos, t *Type, from, need int) Expr {
	return Expr{At: at, Type: t, Eval: func(m *Machine) (uint64, uint64) {
		if !m.need(need) {
			return 0, Mask(t.Width)
		}
		return bitsAt(m.data, m.at+from, t.Width), 0
	}}
}

// Parser errors, with the values of prsr.parser_err.
const (
	parserNoMatch = 0x0001
	ParserShort   = 0x0002
	ParserFull    = 0x0004 // of a header stack; the compiler calls it counter range error
)

// need reports whether so many bits are left; if not, parsing ends here.
func (m *Machine) need(n int) bool {
	if m.at+n > 8*len(m.data) {
		m.Short |= ParserShort
		return false
	}
	return m.Short == 0
}

func (s *Scope) extract(e *syntax.Call) Expr {
	if stack := s.stack(e.Args[0], "next"); stack != nil {
		return s.extractNext(e.Pos, stack)
	}
	x := s.Expr(e.Args[0])
	if x.Place == nil || x.Type.Class != ClassHeader || x.Place.Readonly {
		syntax.Throw(e.Pos, "%s where a header is expected", x.Type)
	}
	p := x.Place
	return Does(e.Pos, func(m *Machine) { m.extract(p) })
}

// extract a header.
func (m *Machine) extract(p *Place) {
	if !m.need(p.Type.Bits()) {
		return
	}
	m.Set(p.Slot, 1, 0)
	m.parsed[p.Slot] = m.Pass
	at := m.at
	for _, f := range p.Type.Fields {
		m.Set(p.Slot+f.Offset, bitsAt(m.data, at, f.Type.Width), 0)
		at += f.Type.Width
	}
	m.at = at
}

// Call is emit.
func (PacketOut) Call(s *Scope, e *syntax.Call, method string) Expr {
	WantMethod(e, method, "emit")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "emit has one argument")
	}
	x := s.Expr(e.Args[0])
	if x.Place == nil {
		syntax.Throw(e.Pos, "%s cannot be emitted", x.Type)
	}
	return Does(e.Pos, emission(e.Pos, x.Place))
}

// emission of a header, or of all that are in a struct or stack.
func emission(at syntax.Pos, p *Place) Step {
	var steps []Step
	switch p.Type.Class {
	case ClassHeader:
		return func(m *Machine) {
			if m.Cells[p.Slot].Undef != 0 {
				m.Fail(at, "whether %s is valid is undefined", p.Type)
			}
			if m.Cells[p.Slot].Val != 0 {
				w := BitWriter{Data: m.Out}
				w.emit(m, at, p)
				m.Out = w.Data
				if m.parsed[p.Slot] != m.Pass {
					m.Made = append(m.Made, MadeOf(m, p))
				}
			}
		}
	case ClassStruct:
		for _, f := range p.Type.Fields {
			steps = append(steps, emission(at, &Place{Slot: p.Slot + f.Offset, Type: f.Type}))
		}
	case classStack:
		for i := range p.Type.count {
			steps = append(steps, emission(at, p.element(i)))
		}
	default:
		syntax.Throw(at, "%s cannot be emitted", p.Type)
	}
	return sequence(steps)
}
