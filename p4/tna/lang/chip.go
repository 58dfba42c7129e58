package lang

import (
	"math/bits"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// What the language allows and the chip does not, in pipelines: operations of actions, and conditions of gateways. Expressions of
// any depth are computed if a Builder is Loose, which is for tests of the computation itself.

const (
	widestEqual = 44 // bits that a gateway compares with a number: 4 bytes and 12 bits
	widestOrder = 12
)

// pipeline reports a control of the ingress or egress, whose statements become actions and gateways.
func (s *Scope) pipeline() bool { return s.Unit == nil && !s.Parses && !s.Deparses && !s.Build.Loose }

// gateway rejects a condition that no gateway supports.
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

// bitwise counts operations, with negations that are part of one operation: a & ~b.
func (s *Scope) bitwise(e syntax.Expr) int {
	if u, ok := e.(*syntax.Unary); ok && u.Op == "~" {
		return s.operations(u.X)
	}
	return s.operations(e)
}

// operations counts the operations of a value. Casts, slices and ++ only select bits; the hash unit has operations of its own.
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

// Simple rejects an index that needs a computation.
func (s *Scope) Simple(e syntax.Expr) {
	if s.pipeline() && s.operations(e) > 0 {
		syntax.Throw(e.At(), "an index that is calculated: it is a field, a slice, or fields one after the other")
	}
}

// one rejects an assignment of more than one operation.
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

// effects are what an action does in its one stage.
type effects struct {
	reads, makes []bitsOf // makes: what it computes instead of copying
	accesses     int      // to registers, filters and meters
	hit          bool     // it uses what only a hit provides
}

// effectsOf returns those of an action's body, and rejects what needs a second stage.
func (s *Scope) effectsOf(b *syntax.Block) (d effects) {
	if !s.pipeline() {
		return d
	}
	for _, stmt := range b.Stmts {
		one := s.effect(stmt)
		for _, r := range one.reads {
			for _, w := range d.makes {
				if r.meets(w) {
					syntax.Throw(stmt.At(), "this reads what the same action has computed: an action is one stage")
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

func (s *Scope) effect(stmt syntax.Stmt) (d effects) {
	switch stmt := stmt.(type) {
	case *syntax.Block:
		return s.effectsOf(stmt)
	case *syntax.If:
		syntax.Throw(stmt.Pos, "an if in an action: the chip's actions have no conditions")
	case *syntax.Do:
		if n, ok := stmt.Call.Fn.(*syntax.Name); ok {
			if a, ok := s.Find(n.ID).(*action); ok {
				return a.effects
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

func (s *Scope) read(e syntax.Expr, d *effects) {
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

// hit rejects default actions with what only a hit provides: an index, a hash and a random number arrive with an entry's address, which a miss lacks.
// Tables without a key whose only action has no parameters always hit, as does one with an entry for each value of its key.
func (t *Table) hit(s *Scope) {
	if !s.pipeline() || t.Default == nil {
		return
	}
	width := 0
	for _, k := range t.Keys {
		width += k.Width
	}
	alone := len(t.names) == 1
	if a := t.Default.action; a.effects.hit && !(alone && width == 0 && len(a.params) == 0) && !(alone && width < 24 && t.Size == 1<<width) {
		syntax.Throw(t.Default.At, "%s is what table %s does on a miss, and takes an index, a hash or a random number: only a hit has them. Make it an entry", t.Default.Action, t.Name)
	}
}

// onHit reports a call whose index (the last argument) is neither constant nor a parameter of the action, or that needs a hash or a random number.
func (s *Scope) onHit(e *syntax.Call, method string) bool {
	if method != "execute" || len(e.Args) == 0 {
		return method == "get"
	}
	x := s.Value(e.Args[len(e.Args)-1])
	return !x.Const && !slices.ContainsFunc(s.params, func(p *Place) bool { return x.Place != nil && x.Place.Slot == p.Slot })
}
