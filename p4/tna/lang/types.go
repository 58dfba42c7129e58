package lang

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

type class uint8

const (
	ClassBits class = iota
	classInt        // a literal without width
	classBool       // one bit
	classEnum       // without values of its own
	ClassStruct
	ClassHeader // its first slot is its validity
	classStack
	ClassList // { ... }
)

// Type is a type. Every scalar, and the validity of every header, has one slot of the machine's state.
type Type struct {
	Class  class
	Name   string // of a struct, header or enum
	Width  int    // bits
	Signed bool
	Fields []field
	elem   *Type // of a stack
	count  int
}

type field struct {
	Name   string
	Type   *Type
	Offset int // slots from the beginning
}

var (
	BoolType = &Type{Class: classBool, Width: 1}
	intType  = &Type{Class: classInt}
)

// BitsType is bit<width>.
func BitsType(width int) *Type { return &Type{Class: ClassBits, Width: width} }

// Scalar reports whether it is a single value.
func (t *Type) Scalar() bool { return t.Class <= classEnum }

// Slots that a value takes.
func (t *Type) Slots() int {
	switch t.Class {
	case ClassStruct, ClassHeader:
		n := 0
		if t.Class == ClassHeader {
			n = 1
		}
		for _, f := range t.Fields {
			n += f.Type.Slots()
		}
		return n
	case classStack:
		return 1 + t.count*t.elem.Slots() // the first one is the number of extracted elements
	}
	return 1
}

// Bits of a header, struct or scalar.
func (t *Type) Bits() int {
	n := t.Width
	for _, f := range t.Fields {
		n += f.Type.Bits()
	}
	return n
}

func (t *Type) field(name string) (field, bool) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return field{}, false
}

func (t *Type) String() string {
	switch t.Class {
	case ClassBits:
		if t.Signed {
			return fmt.Sprintf("int<%d>", t.Width)
		}
		return fmt.Sprintf("bit<%d>", t.Width)
	case classInt:
		return "int"
	case classBool:
		return "bool"
	case classStack:
		return fmt.Sprintf("%s[%d]", t.elem, t.count)
	case ClassList:
		names := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			names[i] = f.Type.String()
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	return t.Name
}

// Same reports whether two types are equal.
func Same(a, b *Type) bool {
	if a.Class != b.Class || a.Width != b.Width || a.Signed != b.Signed {
		return false
	}
	switch a.Class {
	case classStack:
		return a.count == b.count && Same(a.elem, b.elem)
	case ClassStruct, ClassHeader, classEnum:
		return a.Name == b.Name
	}
	return true
}

// TypeOf resolves a type in the text.
func (s *Scope) TypeOf(t *syntax.Type) *Type {
	found := s.plainType(t)
	if t.Stack == nil {
		return found
	}
	if found.Class != ClassHeader {
		syntax.Throw(t.Pos, "a stack of %s: only headers are stacked", found)
	}
	return &Type{Class: classStack, elem: found, count: s.Positive(t.Stack, 64)}
}

func (s *Scope) plainType(t *syntax.Type) *Type {
	switch t.Name {
	case "bool":
		return BoolType
	case "bit", "int":
		if t.Width == nil {
			syntax.Throw(t.Pos, "%s without a width is outside of the model", t.Name)
		}
		return &Type{Class: ClassBits, Width: s.Positive(t.Width, 64), Signed: t.Name == "int"}
	}
	switch d := s.Find(t.Name).(type) {
	case *Type:
		return d
	case *enum:
		return d.typ
	}
	syntax.Throw(t.Pos, "%s is no type", t.Name)
	return nil
}

// Positive is a constant from 1 to most.
func (s *Scope) Positive(e syntax.Expr, most int64) int {
	n := s.Constant(e)
	if n < 1 || n > most {
		syntax.Throw(e.At(), "%d where 1 to %d is possible", n, most)
	}
	return int(n)
}

func (s *Scope) declareStruct(d *syntax.Struct) {
	t := &Type{Class: ClassStruct, Name: d.Name}
	offset := 0
	if d.Header {
		t.Class, offset = ClassHeader, 1
	}
	for _, f := range d.Fields {
		ft := s.TypeOf(f.Type)
		if d.Header && ft.Class != ClassBits {
			syntax.Throw(f.Pos, "field %s of a header is %s, not bits", f.Name, ft)
		}
		if _, twice := t.field(f.Name); twice {
			syntax.Throw(f.Pos, "a second field %s", f.Name)
		}
		t.Fields = append(t.Fields, field{Name: f.Name, Type: ft, Offset: offset})
		offset += ft.Slots()
	}
	if d.Header && t.Bits()%8 != 0 {
		syntax.Throw(d.Pos, "header %s has %d bits, no whole bytes", d.Name, t.Bits())
	}
	s.Declare(d.Pos, d.Name, t)
}

func (s *Scope) declareEnum(d *syntax.Enum) {
	if d.Type == nil {
		t := &Type{Class: classEnum, Name: d.Name, Width: 8}
		for _, m := range d.Members {
			t.Fields = append(t.Fields, field{Name: m, Type: t})
		}
		s.Declare(d.Pos, d.Name, &enum{typ: t, values: nil})
		return
	}
	t := s.TypeOf(d.Type)
	e := &enum{typ: t, values: map[string]int64{}}
	for i, m := range d.Members {
		e.values[m] = s.Constant(d.Values[i])
	}
	s.Declare(d.Pos, d.Name, e)
}

// enum is the declaration of an enum.
type enum struct {
	typ    *Type
	values map[string]int64 // nil: of its own
}
