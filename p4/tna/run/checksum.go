package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// checksum is Checksum: a sum of 16 bits in ones' complement.
type checksum struct{ sum *lang.Place }

func newChecksum(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 0, 0)
	c := &checksum{sum: s.Build.NewPlace(lang.BitsType(16))}
	s.Build.Zero(c.sum)
	return c
}

func (c *checksum) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	parser, slot := s.Parses, c.sum.Slot
	switch {
	case method == "update" && !parser:
		return c.update(s, e)
	case (method == "add" || method == "subtract") && parser && len(e.Args) == 1:
		sum := summed(s, e.Args[0], method == "subtract")
		return lang.Does(e.Pos, func(m *lang.Machine) {
			if m.Short == 0 {
				v, u := sum(m, m.Cells[slot].Val, m.Cells[slot].Undef)
				m.Set(slot, v, u)
			}
		})
	case method == "verify" && parser && len(e.Args) == 0:
		return lang.Expr{At: e.Pos, Type: lang.BoolType, Eval: func(m *lang.Machine) (uint64, uint64) {
			return uint64(lang.Number(m.Cells[slot].Val == 0xffff)), m.Cells[slot].Undef & 1
		}}
	case method == "get" && parser && len(e.Args) == 0:
		return lang.Read(e.Pos, &lang.Place{Slot: slot, Type: c.sum.Type, Readonly: true})
	}
	syntax.Throw(e.Pos, "%s of a Checksum is outside of the model here: a parser has add, subtract, get and verify, a deparser update", method)
	return lang.Expr{}
}

// update is the checksum of a list.
func (c *checksum) update(s *lang.Scope, e *syntax.Call) lang.Expr {
	if len(e.Args) < 1 || len(e.Args) > 2 {
		syntax.Throw(e.Pos, "update has a list, and possibly whether zeros become ones")
	}
	ones := false
	if len(e.Args) == 2 {
		b, ok := e.Args[1].(*syntax.Bool)
		if !ok {
			syntax.Throw(e.Pos, "whether zeros become ones is true or false")
		}
		ones = b.Value
	}
	sum := summed(s, e.Args[0], false)
	return lang.Expr{At: e.Pos, Type: lang.BitsType(16), Eval: func(m *lang.Machine) (uint64, uint64) {
		v, u := sum(m, 0, 0)
		v ^= 0xffff
		if v == 0 && ones {
			v = 0xffff
		}
		return v, u
	}}
}

// summed compiles the addition of a list, in words of 16 bits, to a sum.
func summed(s *lang.Scope, e syntax.Expr, subtract bool) func(m *lang.Machine, sum, undef uint64) (uint64, uint64) {
	list := flat(s.Expr(e))
	total := 0
	for _, x := range list {
		if x.Type.Class != lang.ClassBits {
			syntax.Throw(x.At, "a checksum over %s: everything in it needs a width", x.Type)
		}
		total += x.Type.Width
	}
	if total%16 != 0 {
		syntax.Throw(e.At(), "a checksum over %d bits is outside of the model: words of 16", total)
	}
	return func(m *lang.Machine, sum, undef uint64) (uint64, uint64) {
		acc, have := uint64(0), 0
		for i := range list {
			v, u := list[i].Eval(m)
			if u != 0 {
				undef = 0xffff
			}
			for left := list[i].Type.Width; left > 0; {
				take := min(left, 16-have)
				left -= take
				acc, have = acc<<take|v>>left&lang.Mask(take), have+take
				if have == 16 {
					if subtract {
						acc ^= 0xffff
					}
					sum += acc
					sum, acc, have = sum&0xffff+sum>>16, 0, 0
				}
			}
		}
		return sum, undef
	}
}

// flat is a list in which headers and structs are replaced by their fields.
func flat(x lang.Expr) []lang.Expr {
	switch x.Type.Class {
	case lang.ClassList:
		var all []lang.Expr
		for _, e := range x.Elems {
			all = append(all, flat(e)...)
		}
		return all
	case lang.ClassHeader, lang.ClassStruct:
		var all []lang.Expr
		for _, f := range x.Type.Fields {
			all = append(all, flat(lang.Read(x.At, &lang.Place{Slot: x.Place.Slot + f.Offset, Type: f.Type}))...)
		}
		return all
	}
	return []lang.Expr{x}
}
