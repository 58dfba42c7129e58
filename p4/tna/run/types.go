package run

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

type class uint8

const (
	classBits class = iota
	classInt        // a literal without width
	classBool       // one bit
	classEnum       // without values of its own
	classStruct
	classHeader // its first slot says whether it is valid
	classStack
	classList // { ... }
)

// typ is a type. Every scalar, and the validity of every header, has one slot of the machine's state.
type typ struct {
	class  class
	name   string // of a struct, header or enum
	width  int    // bits
	signed bool
	fields []field
	elem   *typ // of a stack
	count  int
}

type field struct {
	name   string
	typ    *typ
	offset int // slots from the beginning
}

var (
	boolType = &typ{class: classBool, width: 1}
	intType  = &typ{class: classInt}
)

func bitsType(width int) *typ { return &typ{class: classBits, width: width} }

func (t *typ) scalar() bool { return t.class <= classEnum }

// slots that a value takes.
func (t *typ) slots() int {
	switch t.class {
	case classStruct, classHeader:
		n := 0
		if t.class == classHeader {
			n = 1
		}
		for _, f := range t.fields {
			n += f.typ.slots()
		}
		return n
	case classStack:
		return 1 + t.count*t.elem.slots() // the first one: how many were extracted
	}
	return 1
}

// bits of a header, struct or scalar.
func (t *typ) bits() int {
	n := t.width
	for _, f := range t.fields {
		n += f.typ.bits()
	}
	return n
}

func (t *typ) field(name string) (field, bool) {
	for _, f := range t.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func (t *typ) String() string {
	switch t.class {
	case classBits:
		if t.signed {
			return fmt.Sprintf("int<%d>", t.width)
		}
		return fmt.Sprintf("bit<%d>", t.width)
	case classInt:
		return "int"
	case classBool:
		return "bool"
	case classStack:
		return fmt.Sprintf("%s[%d]", t.elem, t.count)
	case classList:
		names := make([]string, len(t.fields))
		for i, f := range t.fields {
			names[i] = f.typ.String()
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	return t.name
}

func same(a, b *typ) bool {
	if a.class != b.class || a.width != b.width || a.signed != b.signed {
		return false
	}
	switch a.class {
	case classStack:
		return a.count == b.count && same(a.elem, b.elem)
	case classStruct, classHeader, classEnum:
		return a.name == b.name
	}
	return true
}

// typeOf resolves a type as it is written.
func (s *scope) typeOf(t *syntax.Type) *typ {
	found := s.plainType(t)
	if t.Stack == nil {
		return found
	}
	if found.class != classHeader {
		syntax.Throw(t.Pos, "a stack of %s: only headers are stacked", found)
	}
	return &typ{class: classStack, elem: found, count: s.positive(t.Stack, 64)}
}

func (s *scope) plainType(t *syntax.Type) *typ {
	switch t.Name {
	case "bool":
		return boolType
	case "bit", "int":
		if t.Width == nil {
			syntax.Throw(t.Pos, "%s without a width is outside of the model", t.Name)
		}
		return &typ{class: classBits, width: s.positive(t.Width, 64), signed: t.Name == "int"}
	}
	switch d := s.find(t.Name).(type) {
	case *typ:
		return d
	case *enum:
		return d.typ
	}
	syntax.Throw(t.Pos, "%s is no type", t.Name)
	return nil
}

// positive is a constant from 1 to most.
func (s *scope) positive(e syntax.Expr, most int64) int {
	n := s.constant(e)
	if n < 1 || n > most {
		syntax.Throw(e.At(), "%d where 1 to %d is possible", n, most)
	}
	return int(n)
}

func (s *scope) declareStruct(d *syntax.Struct) {
	t := &typ{class: classStruct, name: d.Name}
	offset := 0
	if d.Header {
		t.class, offset = classHeader, 1
	}
	for _, f := range d.Fields {
		ft := s.typeOf(f.Type)
		if d.Header && ft.class != classBits {
			syntax.Throw(f.Pos, "field %s of a header is %s, not bits", f.Name, ft)
		}
		if _, twice := t.field(f.Name); twice {
			syntax.Throw(f.Pos, "a second field %s", f.Name)
		}
		t.fields = append(t.fields, field{name: f.Name, typ: ft, offset: offset})
		offset += ft.slots()
	}
	if d.Header && t.bits()%8 != 0 {
		syntax.Throw(d.Pos, "header %s has %d bits, no whole bytes", d.Name, t.bits())
	}
	s.declare(d.Pos, d.Name, t)
}

func (s *scope) declareEnum(d *syntax.Enum) {
	if d.Type == nil {
		t := &typ{class: classEnum, name: d.Name, width: 8}
		for _, m := range d.Members {
			t.fields = append(t.fields, field{name: m, typ: t})
		}
		s.declare(d.Pos, d.Name, &enum{typ: t, values: nil})
		return
	}
	t := s.typeOf(d.Type)
	e := &enum{typ: t, values: map[string]int64{}}
	for i, m := range d.Members {
		e.values[m] = s.constant(d.Values[i])
	}
	s.declare(d.Pos, d.Name, e)
}

// enum is what the name of an enum refers to.
type enum struct {
	typ    *typ
	values map[string]int64 // nil: of its own
}
