package machine

import (
	"cmp"
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// widenAfter is how often a number may grow at a merge point before it is rounded up to a machine word.
const widenAfter = 3

// joiner makes one state of two of the same shape. What differs becomes a new number that belongs to the
// junction: it represents the value at the last arrival. Numbers that differ in the same way
// become the same number, so copies stay copies.
type joiner struct {
	m       *Machine
	j       *junction
	old     *state.State
	new     *state.State
	merged  map[[2]*expr.Node]*expr.Node
	given   map[*expr.Node]bool // results in merged: a second pair needs another number
	changed bool
}

// join adds s to the states that the junction represents and reports whether that has changed.
func (m *Machine) join(j *junction, s *state.State) bool {
	w := &joiner{m: m, j: j, old: j.state, new: s, merged: make(map[[2]*expr.Node]*expr.Node), given: make(map[*expr.Node]bool)}
	out := j.state.Clone()
	for i := range out.Regs[:10] {
		out.Regs[i] = w.value(out.Regs[i], s.Regs[i])
	}
	for d := range out.Frames {
		f, g := &out.Frames[d], &s.Frames[d]
		if d > 0 {
			f.Saved = w.saved(f.Saved, g.Saved)
		}
		f.Stack = w.memory(f.Stack, g.Stack, -1)
	}
	for i := range out.Scratch {
		out.Scratch[i] = w.memory(out.Scratch[i], s.Scratch[i], m.scratch[i])
	}
	w.accesses(out)
	w.regions(out)
	w.ended(out)
	w.facts(out)
	out.Outside = w.taint(out.Outside, s.Outside)
	w.grow(&out.Touched, s.Touched)
	w.grow(&out.Failed, s.Failed)
	if w.changed {
		j.state = out
	}
	return w.changed
}

func (w *joiner) grow(to *declared.Set, with declared.Set) {
	if now := to.Or(with); now != *to {
		*to = now
		w.changed = true
	}
}

func (w *joiner) taint(a, b value.Taint) value.Taint {
	out := a.With(b)
	w.changed = w.changed || out != a
	return out
}

func (w *joiner) value(a, b value.Value) value.Value {
	if a.Form == value.FormNone && b.Form == value.FormNone {
		return a
	}
	if a.Form != b.Form || a.Obj != b.Obj {
		return w.mismatch(a, b)
	}
	out := a
	if a.Base != b.Base && a.Base != value.Nothing {
		out.Base, w.changed = value.Nothing, true
	}
	out.T = w.taint(a.T, b.T)
	w.grow(&out.Why, b.Why)
	if a.N != nil && b.N != nil {
		out.N = w.node(a.N, b.N)
	}
	if a.Sum != b.Sum && a.Sum != (value.Sum{}) {
		out.Sum = value.Sum{}
		w.changed = true
	}
	return out
}

func (w *joiner) saved(a, b *[10]value.Value) *[10]value.Value {
	out := new([10]value.Value)
	for i := range out {
		out[i] = w.value(a[i], b[i])
	}
	return out
}

// mismatch is only met where nothing follows the value: shapes agree in all pointers.
func (w *joiner) mismatch(a, b value.Value) value.Value {
	if a.Form == value.FormLost {
		a.T = w.taint(a.T, b.T)
		return a
	}
	w.changed = true
	return value.Value{Form: value.FormLost, T: a.T.With(b.T)}
}

func (w *joiner) node(a, b *expr.Node) *expr.Node {
	if a == b && a.Owner != w.j {
		return a
	}
	pair := [2]*expr.Node{a, b}
	if n, ok := w.merged[pair]; ok {
		return n
	}
	out := a
	random := a.IsRandom() && b.IsRandom()
	if a.Owner != w.j || w.given[a] {
		out = w.m.nodes.Leaf(expr.Anything)
		out.Owner, out.Random = w.j, random
		w.changed = true
	}
	if out.Random && !random {
		out.Random, w.changed = false, true
	}
	w.merged[pair] = out
	w.given[out] = true
	return out
}

// facts holds what is known in both states, and gives each new number the union of the spans that it replaces.
func (w *joiner) facts(out *state.State) {
	common := make(expr.Facts, 0, len(w.old.Facts))
	keep := func(n *expr.Node, in expr.Span) {
		if in = in.Meet(n.Span); in != n.Span {
			common = append(common, expr.Fact{N: n, In: in})
		}
	}
	for _, f := range w.old.Facts {
		if f.N.Owner == w.j {
			continue
		}
		in := f.In.Join(w.new.Facts.SpanOf(f.N))
		w.changed = w.changed || in != f.In
		keep(f.N, in)
	}
	for pair, n := range w.merged {
		keep(n, w.span(pair, n))
	}
	slices.SortFunc(common, func(a, b expr.Fact) int { return cmp.Compare(a.N.Id, b.N.Id) })
	out.Facts = common
}

func (w *joiner) span(pair [2]*expr.Node, n *expr.Node) expr.Span {
	was := w.old.Facts.SpanOf(pair[0])
	in := was.Join(w.new.Facts.SpanOf(pair[1]))
	if pair[0] != n || in == was {
		return in
	}
	w.changed = true
	if n.Grown++; n.Grown > widenAfter {
		in = in.Widen()
	}
	return in
}

// memory joins two lists of cells. obj is the scratch map, whose words have a value before they are
// written; -1 is a stack.
func (w *joiner) memory(a, b value.Memory, obj int32) value.Memory {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) && w.unowned(a) {
		return a
	}
	out := make(value.Memory, 0, len(a))
	for r := range value.Ranges(a, b) {
		at := value.Cell{Off: r.Off, Size: r.Size}
		ca, inA := w.cellOf(a, at, obj)
		cb, inB := w.cellOf(b, at, obj)
		c := value.Cell{Off: at.Off, Size: at.Size, Sure: ca.Sure && cb.Sure}
		switch {
		case inA && inB:
			c.V = w.value(ca.V, cb.V)
		case inA:
			c.V = w.value(ca.V, w.undefined(ca))
		default:
			c.V = w.undefined(cb)
			c.V.T = cb.V.T
		}
		w.changed = w.changed || ca.Sure != c.Sure || r.A < 0
		if c.V.Form != value.FormNone {
			out = append(out, c)
		}
	}
	return out
}

// unowned reports whether no cell depends on the junction's own numbers, so that a change of them affects none.
func (w *joiner) unowned(m value.Memory) bool {
	return !slices.ContainsFunc(m, func(c value.Cell) bool { return c.V.N != nil && c.V.N.Owner == w.j })
}

// undefined stands for bytes of a stack that were not written: any number.
func (w *joiner) undefined(c value.Cell) value.Value {
	if c.V.IsPointer() {
		return value.Value{Form: value.FormLost, T: c.V.T}
	}
	return value.Number(w.m.nodes.Leaf(expr.Below(uint(c.Size)*8)), value.Taint{})
}

// cellOf returns what a list of cells holds for a range.
func (w *joiner) cellOf(m value.Memory, at value.Cell, obj int32) (value.Cell, bool) {
	v, known, sure := m.Read(at.Off, at.Size, w.m.nodes)
	if !known && obj >= 0 {
		return value.Cell{Off: at.Off, Size: at.Size, V: w.m.firstWord(obj, at.Off, at.Size)}, true
	}
	return value.Cell{Off: at.Off, Size: at.Size, V: v, Sure: sure}, known
}

func (w *joiner) accesses(out *state.State) {
	for i := range out.Access {
		a, b := &out.Access[i], &w.new.Access[i]
		if len(b.Tests) > len(a.Tests) {
			a.Tests = b.Tests
			w.changed = true
		}
		for _, pc := range b.Own {
			if !slices.Contains(a.Own, pc) && len(a.Own) <= state.Conditions {
				a.Own = append(slices.Clone(a.Own), pc)
				w.changed = true
			}
		}
		if b.Touched && b.First < a.First {
			a.First = b.First
			w.changed = true
		}
	}
}

// regions holds every branch that either state has taken and not yet left. Only where both agree on the branch's start can its changes
// be determined at its end.
func (w *joiner) regions(out *state.State) {
	var all []state.Region
	for _, r := range w.old.Regions {
		i := slices.IndexFunc(w.new.Regions, r.Same)
		if i < 0 {
			w.changed = w.changed || r.Must || r.Before != nil
			w.m.flows.ForgetBefore(w.old, &r)
			r.Must = false
			all = append(all, r)
			continue
		}
		o := w.new.Regions[i]
		w.changed = w.changed || r.Must && !o.Must || r.Before != nil && r.Before != o.Before
		r.T, r.Must = w.taint(r.T, o.T), r.Must && o.Must
		if r.Before != o.Before {
			w.m.flows.ForgetBefore(w.old, &r)
			w.m.flows.ForgetBefore(w.new, &o)
		}
		all = append(all, r)
	}
	for _, r := range w.new.Regions {
		if !slices.ContainsFunc(w.old.Regions, r.Same) {
			w.m.flows.ForgetBefore(w.new, &r)
			r.Must, w.changed = false, true
			all = append(all, r)
		}
	}
	slices.SortFunc(all, state.CompareRegions)
	out.Regions = all
	out.SumControl()
}

// ended holds every flow of taint that either state has still to apply.
func (w *joiner) ended(out *state.State) {
	for _, e := range w.new.Ended {
		i := slices.IndexFunc(out.Ended, e.Same)
		if i < 0 {
			out.Ended = append(slices.Clip(out.Ended), e)
			w.changed = true
			continue
		}
		if t := w.taint(out.Ended[i].T, e.T); t != out.Ended[i].T {
			out.Ended = slices.Clone(out.Ended)
			out.Ended[i].T = t
		}
	}
}
