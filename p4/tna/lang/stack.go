package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// A header stack's first slot is the number of its extracted elements: the index of `.next`.

// element of a stack.
func (p *Place) element(i int) *Place {
	return &Place{Slot: p.Slot + 1 + i*p.Type.elem.Slots(), Type: p.Type.elem, Readonly: p.Readonly}
}

// stack is the stack of X.next or X.last; nil: e is neither.
func (s *Scope) stack(e syntax.Expr, which string) *Place {
	f, ok := e.(*syntax.Field)
	if !ok || f.Name != which {
		return nil
	}
	x := s.Expr(f.X)
	if x.Place == nil || x.Type.Class != classStack {
		return nil
	}
	if !s.Parses {
		syntax.Throw(f.Pos, ".%s of a stack is the parser's", which)
	}
	return x.Place
}

// extractNext fills the next element. If the stack is full, this is a parser error, which ends parsing.
func (s *Scope) extractNext(at syntax.Pos, stack *Place) Expr {
	if stack.Readonly {
		syntax.Throw(at, "%s is an `in` parameter", stack.Type)
	}
	elements := make([]*Place, stack.Type.count)
	for i := range elements {
		elements[i] = stack.element(i)
	}
	return Does(at, func(m *Machine) {
		switch n := m.Cells[stack.Slot].Val; {
		case m.Short != 0:
		case n == uint64(len(elements)):
			m.Short |= ParserFull
		default:
			if m.extract(elements[n]); m.Short == 0 {
				m.Set(stack.Slot, n+1, 0)
			}
		}
	})
}

// lastOf is a field of the element that was extracted last; undefined before the first one.
func lastOf(e *syntax.Field, stack *Place) Expr {
	first := stack.element(0).Field(e.Pos, e.Name)
	all, apart := Mask(first.Type.Width), stack.Type.elem.Slots()
	return Expr{At: e.Pos, Type: first.Type, Eval: func(m *Machine) (uint64, uint64) {
		n := int(m.Cells[stack.Slot].Val)
		if n == 0 {
			return 0, all
		}
		slot := first.Slot + (n-1)*apart
		return m.Cells[slot].Val, m.Cells[slot].Undef
	}}
}
