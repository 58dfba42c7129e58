package run

import (
	"math/bits"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// polynomial is CRCPolynomial.
type polynomial struct {
	width       int
	first, last uint64 // initial value, final exclusive-or
	table       [256]uint64
}

func newPolynomial(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 6)
	t := s.scalarType(i.Type.Args[0])
	var v [6]expr
	for n, a := range i.Args {
		v[n] = s.value(a)
		if !v[n].con {
			syntax.Throw(a.At(), "a polynomial is built with constants")
		}
	}
	if v[1].val != 1 || v[2].val != 0 || v[3].val != 0 || t.width != 32 {
		syntax.Throw(i.Pos, "the model has CRCs of 32 bits that are reversed, not msb and not extended")
	}
	coefficient := v[0].as(t).val
	p := &polynomial{width: t.width, first: uint64(v[4].as(t).val), last: uint64(v[5].as(t).val)}
	reflected := uint64(bits.Reverse32(uint32(coefficient)))
	for b := range p.table {
		crc := uint64(b)
		for range 8 {
			crc = crc>>1 ^ reflected&-(crc&1)
		}
		p.table[b] = crc
	}
	return p
}

func (*polynomial) call(_ *scope, e *syntax.Call, _ string) expr {
	syntax.Throw(e.Pos, "a polynomial has no methods")
	return expr{}
}

func (p *polynomial) sum(data []byte) uint64 {
	crc := p.first
	for _, b := range data {
		crc = crc>>8 ^ p.table[byte(crc)^b]
	}
	return crc ^ p.last
}

// hash is Hash: a CRC of a field list, or its bits as they are.
type hash struct {
	typ  *typ
	poly *polynomial // nil: identity
}

func newHash(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 1, 2)
	h := &hash{typ: s.scalarType(i.Type.Args[0])}
	f, ok := i.Args[0].(*syntax.Field)
	switch {
	case ok && f.Name == "IDENTITY" && len(i.Args) == 1:
	case ok && f.Name == "CUSTOM" && len(i.Args) == 2:
		n, _ := i.Args[1].(*syntax.Name)
		if n == nil {
			syntax.Throw(i.Pos, "a polynomial is wanted")
		}
		if h.poly, ok = s.must(n.Pos, n.ID).(*polynomial); !ok {
			syntax.Throw(n.Pos, "%s is no polynomial", n.ID)
		}
		if h.typ.width > h.poly.width {
			syntax.Throw(i.Pos, "%d bits of a CRC of %d", h.typ.width, h.poly.width)
		}
	default:
		syntax.Throw(i.Pos, "the model has hashes IDENTITY and CUSTOM")
	}
	return h
}

// mostHashed bytes go into one hash.
const mostHashed = 128

func (h *hash) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "get")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "get has one argument")
	}
	list := []expr{s.expr(e.Args[0])}
	if list[0].typ.class == classList {
		list = list[0].elems
	}
	total := 0
	for _, x := range list {
		if x.typ.class != classBits {
			syntax.Throw(x.at, "a hash of %s: everything in it needs a width", x.typ)
		}
		total += x.typ.width
	}
	if h.poly == nil {
		return h.identity(e, list, total)
	}
	if total%8 != 0 || total > 8*mostHashed {
		syntax.Throw(e.Pos, "a CRC over %d bits is outside of the model: whole bytes, %d at most", total, mostHashed)
	}
	p, all, width := h.poly, mask(h.typ.width), make([]int, len(list))
	for i, x := range list {
		width[i] = x.typ.width
	}
	return expr{at: e.Pos, typ: h.typ, eval: func(m *machine) (uint64, uint64) {
		var data [mostHashed]byte
		n, acc, have := 0, uint64(0), 0
		for i := range list {
			v, u := list[i].eval(m)
			if u != 0 {
				return 0, all
			}
			for left := width[i]; left > 0; {
				take := min(left, 8-have)
				left -= take
				acc, have = acc<<take|v>>left&mask(take), have+take
				if have == 8 {
					data[n], n, acc, have = byte(acc), n+1, 0, 0
				}
			}
		}
		return p.sum(data[:n]) & all, 0
	}}
}

// identity puts the fields side by side.
func (h *hash) identity(e *syntax.Call, list []expr, total int) expr {
	if total > 64 {
		syntax.Throw(e.Pos, "an identity hash of %d bits: the model has 64", total)
	}
	all := mask(h.typ.width)
	return expr{at: e.Pos, typ: h.typ, eval: func(m *machine) (uint64, uint64) {
		var val, undef uint64
		for i := range list {
			v, u := list[i].eval(m)
			w := list[i].typ.width
			val, undef = val<<w|v, undef<<w|u
		}
		return val & all, undef & all
	}}
}
