package run

import (
	"encoding/binary"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"math/bits"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// polynomial is CRCPolynomial.
type polynomial struct {
	width       int
	first, last uint64              // initial value, final exclusive-or
	table       [sliced][256]uint64 // of a byte with so many bytes after it
}

// sliced is the number of bytes of a CRC that are looked up together (Kounavis and Berry, "Novel Table Lookup-Based Algorithms for
// High-Performance CRC Generation", IEEE Transactions on Computers 2008).
const sliced = 8

func newPolynomial(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 6)
	t := s.ScalarType(i.Type.Args[0])
	var v [6]lang.Expr
	for n, a := range i.Args {
		v[n] = s.Value(a)
		if !v[n].Const {
			syntax.Throw(a.At(), "a polynomial is built with constants")
		}
	}
	if v[1].Val != 1 || v[2].Val != 0 || v[3].Val != 0 || t.Width != 32 {
		syntax.Throw(i.Pos, "the model has CRCs of 32 bits that are reversed, not msb and not extended")
	}
	coefficient := v[0].As(t).Val
	p := &polynomial{width: t.Width, first: uint64(v[4].As(t).Val), last: uint64(v[5].As(t).Val)}
	reflected := uint64(bits.Reverse32(uint32(coefficient)))
	for b := range p.table[0] {
		crc := uint64(b)
		for range 8 {
			crc = crc>>1 ^ reflected&-(crc&1)
		}
		p.table[0][b] = crc
	}
	for n := range sliced - 1 {
		for b, crc := range p.table[n] {
			p.table[n+1][b] = crc>>8 ^ p.table[0][byte(crc)]
		}
	}
	return p
}

func (*polynomial) Call(_ *lang.Scope, e *syntax.Call, _ string) lang.Expr {
	syntax.Throw(e.Pos, "a polynomial has no methods")
	return lang.Expr{}
}

func (p *polynomial) sum(data []byte) uint64 {
	crc, t := p.first, &p.table
	for ; len(data) >= sliced; data = data[sliced:] {
		x := binary.LittleEndian.Uint64(data) ^ crc
		crc = t[7][byte(x)] ^ t[6][byte(x>>8)] ^ t[5][byte(x>>16)] ^ t[4][byte(x>>24)] ^ t[3][byte(x>>32)] ^ t[2][byte(x>>40)] ^ t[1][byte(x>>48)] ^ t[0][byte(x>>56)]
	}
	for _, b := range data {
		crc = crc>>8 ^ t[0][byte(crc)^b]
	}
	return crc ^ p.last
}

// hash is Hash: a CRC of a field list, or its bits as they are.
type hash struct {
	typ  *lang.Type
	poly *polynomial // nil: identity
	list string      // its field list, as first written
}

func newHash(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 1, 2)
	h := &hash{typ: s.ScalarType(i.Type.Args[0])}
	f, ok := i.Args[0].(*syntax.Field)
	switch {
	case ok && f.Name == "IDENTITY" && len(i.Args) == 1:
	case ok && f.Name == "CUSTOM" && len(i.Args) == 2:
		n, _ := i.Args[1].(*syntax.Name)
		if n == nil {
			syntax.Throw(i.Pos, "a polynomial is expected")
		}
		if h.poly, ok = s.Must(n.Pos, n.ID).(*polynomial); !ok {
			syntax.Throw(n.Pos, "%s is no polynomial", n.ID)
		}
		if h.typ.Width > h.poly.width {
			syntax.Throw(i.Pos, "%d bits of a CRC of %d", h.typ.Width, h.poly.width)
		}
	default:
		syntax.Throw(i.Pos, "the model has hashes IDENTITY and CUSTOM")
	}
	return h
}

// mostHashed is the maximum of bytes of a hash.
const mostHashed = 128

func (h *hash) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "get")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "get has one argument")
	}
	if text := syntax.Print(e.Args[0]); h.list == "" {
		h.list = text
	} else if text != h.list && !s.Build.Loose {
		syntax.Throw(e.Pos, "a second field list of one Hash: use another Hash")
	}
	if !s.Build.Loose {
		shifted(s, e.Args[0])
	}
	list := []lang.Expr{s.Expr(e.Args[0])}
	if list[0].Type.Class == lang.ClassList {
		list = list[0].Elems
	}
	total := 0
	for _, x := range list {
		if x.Type.Class != lang.ClassBits {
			syntax.Throw(x.At, "a hash of %s: everything in it needs a width", x.Type)
		}
		total += x.Type.Width
	}
	if h.poly == nil {
		return h.identity(e, list, total)
	}
	if total%8 != 0 || total > 8*mostHashed {
		syntax.Throw(e.Pos, "a CRC over %d bits is outside of the model: whole bytes, %d at most", total, mostHashed)
	}
	p, all, width := h.poly, lang.Mask(h.typ.Width), make([]int, len(list))
	for i, x := range list {
		width[i] = x.Type.Width
	}
	return lang.Expr{At: e.Pos, Type: h.typ, Eval: func(m *lang.Machine) (uint64, uint64) {
		var data [mostHashed]byte
		n, acc, have := 0, uint64(0), 0
		for i := range list {
			v, u := list[i].Eval(m)
			if u != 0 {
				return 0, all
			}
			left := width[i]
			for have == 0 && left >= 8 {
				left -= 8
				data[n], n = byte(v>>left), n+1
			}
			for left > 0 {
				take := min(left, 8-have)
				left -= take
				acc, have = acc<<take|v>>left&lang.Mask(take), have+take
				if have == 8 {
					data[n], n, acc, have = byte(acc), n+1, 0, 0
				}
			}
		}
		return p.sum(data[:n]) & all, 0
	}}
}

// shifted rejects a shifted field with bits above its width: the compiler makes a slice of (bit<n>)(x >> k) only if it lies within x, and
// supports no other shift in a field list. Zeros before x solve it.
func shifted(s *lang.Scope, e syntax.Expr) {
	var high int
	var of syntax.Expr
	switch e := e.(type) {
	case *syntax.List:
		for _, x := range e.Elems {
			shifted(s, x)
		}
		return
	case *syntax.Binary:
		if e.Op == "++" {
			shifted(s, e.X)
			shifted(s, e.Y)
		}
		return
	case *syntax.Cast:
		high, of = s.Value(e).Type.Width, e.X
	case *syntax.Slice:
		high, of = int(s.Value(e.Hi).Val)+1, e.X
	}
	b, ok := of.(*syntax.Binary)
	if !ok || b.Op != ">>" {
		return
	}
	x, k := s.Value(b.X), s.Value(b.Y)
	if w := x.Type.Width; !x.Const && high < w && high+int(k.Val) > w {
		syntax.Throw(e.At(), "bits %d to %d of %d in a field list: the compiler treats a shift as a slice of the field alone; put zeros in front of it", high+int(k.Val)-1, k.Val, w)
	}
}

// identity concatenates the fields.
func (h *hash) identity(e *syntax.Call, list []lang.Expr, total int) lang.Expr {
	if total > 64 {
		syntax.Throw(e.Pos, "an identity hash of %d bits: the model has 64", total)
	}
	all := lang.Mask(h.typ.Width)
	return lang.Expr{At: e.Pos, Type: h.typ, Eval: func(m *lang.Machine) (uint64, uint64) {
		var val, undef uint64
		for i := range list {
			v, u := list[i].Eval(m)
			w := list[i].Type.Width
			val, undef = val<<w|v, undef<<w|u
		}
		return val & all, undef & all
	}}
}
