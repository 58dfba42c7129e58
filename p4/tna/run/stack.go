package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// A header stack's first slot says how many of its elements were extracted: the index of `.next`.

// element of a stack.
func (p *place) element(i int) *place {
	return &place{slot: p.slot + 1 + i*p.typ.elem.slots(), typ: p.typ.elem, readonly: p.readonly}
}

// stack is the one that X.next or X.last is of; nil: e is nothing of that kind.
func (s *scope) stack(e syntax.Expr, which string) *place {
	f, ok := e.(*syntax.Field)
	if !ok || f.Name != which {
		return nil
	}
	x := s.expr(f.X)
	if x.place == nil || x.typ.class != classStack {
		return nil
	}
	if !s.parses {
		syntax.Throw(f.Pos, ".%s of a stack is the parser's", which)
	}
	return x.place
}

// extractNext fills the next element. A stack that is full is an error of the parser, which ends there.
func (s *scope) extractNext(at syntax.Pos, stack *place) expr {
	if stack.readonly {
		syntax.Throw(at, "%s is an `in` parameter", stack.typ)
	}
	elements := make([]*place, stack.typ.count)
	for i := range elements {
		elements[i] = stack.element(i)
	}
	return does(at, func(m *machine) {
		switch n := m.cells[stack.slot].val; {
		case m.short != 0:
		case n == uint64(len(elements)):
			m.short |= parserFull
		default:
			if m.extract(elements[n]); m.short == 0 {
				m.set(stack.slot, n+1, 0)
			}
		}
	})
}

// lastOf is a field of the element that was extracted last; before the first one it is undefined.
func lastOf(e *syntax.Field, stack *place) expr {
	first := stack.element(0).field(e.Pos, e.Name)
	all, apart := mask(first.typ.width), stack.typ.elem.slots()
	return expr{at: e.Pos, typ: first.typ, eval: func(m *machine) (uint64, uint64) {
		n := int(m.cells[stack.slot].val)
		if n == 0 {
			return 0, all
		}
		slot := first.slot + (n-1)*apart
		return m.cells[slot].val, m.cells[slot].undef
	}}
}
