package lang

import (
	"math/bits"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// What the language has and the chip has not, for pipelines: the operations of actions, and the conditions of gateways. Expressions of
// any depth are calculated all the same where a Builder is Loose, which is for tests of the calculation itself.

const (
	widestEqual = 44 // bits that a gateway compares with a number: 4 bytes, and 12 bits beside them
	widestOrder = 12
)

// pipeline: a control of the ingress or egress, whose statements become actions and gateways.
func (s *Scope) pipeline() bool { return s.Unit == nil && !s.Parses && !s.Deparses && !s.Build.Loose }

// gateway refuses a condition that no gateway has.
func (s *Scope) gateway(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Unary:
		if e.Op == "!" {
			s.gateway(e.X)
		}
	case *syntax.Binary:
		if e.Op == "&&" || e.Op == "||" {
			s.gateway(e.X)
			s.gateway(e.Y)
			return
		}
		if s.operations(e.X)+s.operations(e.Y) > 0 {
			syntax.Throw(e.Pos, "a gateway compares fields: calculate before the if")
		}
		x, y := Alike(e.Pos, s.Value(e.X), s.Value(e.Y))
		if x.Const && y.Const {
			return
		}
		comparable(e, x, y)
	case *syntax.Choice:
		syntax.Throw(e.Pos, "?: in a condition: a gateway has none")
	}
}

func comparable(e *syntax.Binary, x, y Expr) {
	width, op, k := x.Type.Width, e.Op, y
	if x.Const {
		op, k = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], x
	}
	if e.Op == "==" || e.Op == "!=" {
		if width > widestEqual {
			syntax.Throw(e.Pos, "%s of %d bits: a gateway compares %d", e.Op, width, widestEqual)
		}
		return
	}
	if !k.Const {
		syntax.Throw(e.Pos, "%s of two fields: a gateway compares with a number; subtract and look at the sign", e.Op)
	}
	limit := uint64(k.Val) & Mask(width)
	if op == "<=" || op == ">" {
		limit++
	}
	sign := x.Type.Signed && limit == 0
	power := !x.Type.Signed && bits.OnesCount64(limit) == 1
	if width > widestOrder && !sign && !power {
		syntax.Throw(e.Pos, "%s of %d bits: a gateway orders %d, and more by one bit: subtract and look at the sign", e.Op, width, widestOrder)
	}
}

// negations that are part of one operation: a & ~b.
func (s *Scope) bitwise(e syntax.Expr) int {
	if u, ok := e.(*syntax.Unary); ok && u.Op == "~" {
		return s.operations(u.X)
	}
	return s.operations(e)
}

// operations that a value takes. Casts, slices and ++ only say which bits are meant; the hash unit has its own.
func (s *Scope) operations(e syntax.Expr) int {
	switch e := e.(type) {
	case *syntax.Binary:
		if s.Value(e).Const {
			return 0
		}
		switch e.Op {
		case "++":
			return s.operations(e.X) + s.operations(e.Y)
		case "&", "|", "^":
			return 1 + s.bitwise(e.X) + s.bitwise(e.Y)
		}
		return 1 + s.operations(e.X) + s.operations(e.Y)
	case *syntax.Unary:
		if s.Value(e).Const {
			return 0
		}
		return 1 + s.operations(e.X)
	case *syntax.Cast:
		return s.operations(e.X)
	case *syntax.Slice:
		return s.operations(e.X)
	case *syntax.Choice:
		syntax.Throw(e.Pos, "?: in an action: the chip has none; use an if around two actions")
	case *syntax.Call:
		if n, ok := e.Fn.(*syntax.Name); ok && (n.ID == "min" || n.ID == "max") {
			return 1 + s.operations(e.Args[0]) + s.operations(e.Args[1])
		}
	}
	return 0
}

// Simple refuses an index that has to be calculated.
func (s *Scope) Simple(e syntax.Expr) {
	if s.pipeline() && s.operations(e) > 0 {
		syntax.Throw(e.At(), "an index that is calculated: it is a field, a slice, or fields one after the other")
	}
}

// one refuses an assignment of more than one operation.
func (s *Scope) one(a *syntax.Assign) {
	if !s.pipeline() {
		return
	}
	if n := s.operations(a.R); n > 1 {
		syntax.Throw(a.Pos, "%d operations in one assignment: an action does one for each field", n)
	}
}

// bitsOf are some bits of a slot.
type bitsOf struct{ slot, lo, hi int }

func (b bitsOf) meets(o bitsOf) bool { return b.slot == o.slot && b.lo <= o.hi && o.lo <= b.hi }

// deeds are what an action does in its one stage.
type deeds struct {
	reads, makes []bitsOf // makes: what it calculates, and does not only copy
	accesses     int      // to registers, filters and meters
	hit          bool     // it has what comes with a hit alone
}

// deedsOf an action's body: refused is what would take a second stage.
func (s *Scope) deedsOf(b *syntax.Block) (d deeds) {
	if !s.pipeline() {
		return d
	}
	for _, stmt := range b.Stmts {
		one := s.deed(stmt)
		for _, r := range one.reads {
			for _, w := range d.makes {
				if r.meets(w) {
					syntax.Throw(stmt.At(), "this reads what the same action has calculated: an action is one stage")
				}
			}
		}
		d.reads, d.makes, d.accesses = append(d.reads, one.reads...), append(d.makes, one.makes...), d.accesses+one.accesses
		d.hit = d.hit || one.hit
		if d.accesses > 1 {
			syntax.Throw(stmt.At(), "a second register in one action: the chip's actions have one")
		}
	}
	return d
}

func (s *Scope) deed(stmt syntax.Stmt) (d deeds) {
	switch stmt := stmt.(type) {
	case *syntax.Block:
		return s.deedsOf(stmt)
	case *syntax.If:
		syntax.Throw(stmt.Pos, "an if in an action: the chip's actions have no conditions")
	case *syntax.Do:
		if n, ok := stmt.Call.Fn.(*syntax.Name); ok {
			if a, ok := s.Find(n.ID).(*action); ok {
				return a.deeds
			}
		}
		s.read(stmt.Call, &d)
	case *syntax.Assign:
		s.read(stmt.R, &d)
		_, call := stmt.R.(*syntax.Call)
		if p := s.Expr(stmt.L).Place; p != nil && (call || s.operations(stmt.R) > 0) {
			d.makes = append(d.makes, p.bits())
		}
	}
	return d
}

// bits of a scalar's place; of a whole struct or header its first slot.
func (p *Place) bits() bitsOf {
	if p.sliced {
		return bitsOf{p.Slot, p.lo, p.hi}
	}
	return bitsOf{p.Slot, 0, max(0, p.Type.Width-1)}
}

func (s *Scope) read(e syntax.Expr, d *deeds) {
	switch e := e.(type) {
	case *syntax.Call:
		if m, ok := e.Fn.(*syntax.Field); ok {
			d.accesses += int(Number(m.Name == "execute"))
			d.hit = d.hit || s.onHit(e, m.Name)
		}
		for _, a := range e.Args {
			s.read(a, d)
		}
	case *syntax.Binary:
		s.read(e.X, d)
		s.read(e.Y, d)
	case *syntax.Unary:
		s.read(e.X, d)
	case *syntax.Cast:
		s.read(e.X, d)
	case *syntax.List:
		for _, x := range e.Elems {
			s.read(x, d)
		}
	case *syntax.Name, *syntax.Field, *syntax.Slice:
		if p := s.Expr(e).Place; p != nil && p.Type.Scalar() {
			d.reads = append(d.reads, p.bits())
		}
	}
}

// hit refuses default actions that only a hit has: an index, a hash and a random number come with an entry's address, and a miss has none.
// Tables without a key whose one action has no parameters always hit, as does one with an entry for each value of its key.
func (t *Table) hit(s *Scope) {
	if !s.pipeline() || t.Default == nil {
		return
	}
	width := 0
	for _, k := range t.Keys {
		width += k.Width
	}
	alone := len(t.names) == 1
	if a := t.Default.action; a.deeds.hit && !(alone && width == 0 && len(a.params) == 0) && !(alone && width < 24 && t.Size == 1<<width) {
		syntax.Throw(t.Default.At, "%s is what table %s does on a miss, and takes an index, a hash or a random number: only a hit has them. Make it an entry", t.Default.Action, t.Name)
	}
}

// onHit: a call with an index that is no constant and no parameter of the action (the last argument), of a hash, or for a random number.
func (s *Scope) onHit(e *syntax.Call, method string) bool {
	if method != "execute" || len(e.Args) == 0 {
		return method == "get"
	}
	x := s.Value(e.Args[len(e.Args)-1])
	return !x.Const && !slices.ContainsFunc(s.params, func(p *Place) bool { return x.Place != nil && x.Place.Slot == p.Slot })
}
