package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// checksum is Checksum: a sum of 16 bits in ones' complement.
type checksum struct{ sum *place }

func newChecksum(s *scope, i *syntax.Instance) any {
	arguments(i, 0, 0)
	c := &checksum{sum: s.build.newPlace(bitsType(16))}
	s.build.zero(c.sum)
	return c
}

func (c *checksum) call(s *scope, e *syntax.Call, method string) expr {
	parser, slot := s.parses, c.sum.slot
	switch {
	case method == "update" && !parser:
		return c.update(s, e)
	case (method == "add" || method == "subtract") && parser && len(e.Args) == 1:
		sum := s.summed(e.Args[0], method == "subtract")
		return does(e.Pos, func(m *machine) {
			if m.short == 0 {
				v, u := sum(m, m.cells[slot].val, m.cells[slot].undef)
				m.set(slot, v, u)
			}
		})
	case method == "verify" && parser && len(e.Args) == 0:
		return expr{at: e.Pos, typ: boolType, eval: func(m *machine) (uint64, uint64) {
			return uint64(number(m.cells[slot].val == 0xffff)), m.cells[slot].undef & 1
		}}
	case method == "get" && parser && len(e.Args) == 0:
		return read(e.Pos, &place{slot: slot, typ: c.sum.typ, readonly: true})
	}
	syntax.Throw(e.Pos, "%s of a Checksum is outside of the model here: a parser has add, subtract, get and verify, a deparser update", method)
	return expr{}
}

// update is the checksum of a list.
func (c *checksum) update(s *scope, e *syntax.Call) expr {
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
	sum := s.summed(e.Args[0], false)
	return expr{at: e.Pos, typ: bitsType(16), eval: func(m *machine) (uint64, uint64) {
		v, u := sum(m, 0, 0)
		v ^= 0xffff
		if v == 0 && ones {
			v = 0xffff
		}
		return v, u
	}}
}

// summed compiles the addition of a list, in words of 16 bits, to a sum.
func (s *scope) summed(e syntax.Expr, subtract bool) func(m *machine, sum, undef uint64) (uint64, uint64) {
	list := flat(s.expr(e))
	total := 0
	for _, x := range list {
		if x.typ.class != classBits {
			syntax.Throw(x.at, "a checksum over %s: everything in it needs a width", x.typ)
		}
		total += x.typ.width
	}
	if total%16 != 0 {
		syntax.Throw(e.At(), "a checksum over %d bits is outside of the model: words of 16", total)
	}
	return func(m *machine, sum, undef uint64) (uint64, uint64) {
		acc, have := uint64(0), 0
		for i := range list {
			v, u := list[i].eval(m)
			if u != 0 {
				undef = 0xffff
			}
			for left := list[i].typ.width; left > 0; {
				take := min(left, 16-have)
				left -= take
				acc, have = acc<<take|v>>left&mask(take), have+take
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

// flat is a list with the fields of headers and structs in their place.
func flat(x expr) []expr {
	switch x.typ.class {
	case classList:
		var all []expr
		for _, e := range x.elems {
			all = append(all, flat(e)...)
		}
		return all
	case classHeader, classStruct:
		var all []expr
		for _, f := range x.typ.fields {
			all = append(all, flat(read(x.at, &place{slot: x.place.slot + f.offset, typ: f.typ}))...)
		}
		return all
	}
	return []expr{x}
}
