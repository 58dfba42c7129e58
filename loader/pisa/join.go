package pisa

import (
	"cmp"
	"slices"
)

// widenAfter is how often a number may grow at a merge point before it is rounded up to a machine word.
const widenAfter = 3

// joiner makes one state of two of the same shape. What differs becomes a new number that belongs to the
// junction: it stands for "whatever was there at the last arrival". Numbers that differ in the same way
// become the same number, so copies stay copies.
type joiner struct {
	m       *machine
	j       *junction
	old     *state
	new     *state
	merged  map[[2]*node]*node
	given   map[*node]bool // results in merged: a second pair needs another number
	changed bool
}

// join adds s to what the junction stands for and says whether that has changed.
func (m *machine) join(j *junction, s *state) bool {
	w := &joiner{m: m, j: j, old: j.state, new: s, merged: make(map[[2]*node]*node), given: make(map[*node]bool)}
	out := j.state.clone()
	for i := range out.regs[:10] {
		out.regs[i] = w.value(out.regs[i], s.regs[i])
	}
	for d := range out.frames {
		f, g := &out.frames[d], &s.frames[d]
		if d > 0 {
			f.saved = w.saved(f.saved, g.saved)
		}
		f.stack = w.memory(f.stack, g.stack, -1)
	}
	for i := range out.scratch {
		out.scratch[i] = w.memory(out.scratch[i], s.scratch[i], m.scratch[i])
	}
	w.accesses(out)
	w.regions(out)
	w.ended(out)
	w.facts(out)
	out.outside = w.taint(out.outside, s.outside)
	w.grow(&out.touched, s.touched)
	w.grow(&out.failed, s.failed)
	if w.changed {
		j.state = out
	}
	return w.changed
}

func (w *joiner) grow(to *set, with set) {
	if *to|with != *to {
		*to |= with
		w.changed = true
	}
}

func (w *joiner) taint(a, b taint) taint {
	out := a.with(b)
	w.changed = w.changed || out != a
	return out
}

func (w *joiner) value(a, b value) value {
	if a.form == formNone && b.form == formNone {
		return a
	}
	if a.form != b.form || a.obj != b.obj {
		return w.mismatch(a, b)
	}
	out := a
	if a.base != b.base && a.base != nothing {
		out.base, w.changed = nothing, true
	}
	out.t = w.taint(a.t, b.t)
	w.grow(&out.why, b.why)
	if a.n != nil && b.n != nil {
		out.n = w.node(a.n, b.n)
	}
	if a.sum != b.sum && a.sum != (sum{}) {
		out.sum = sum{}
		w.changed = true
	}
	return out
}

func (w *joiner) saved(a, b *[10]value) *[10]value {
	out := new([10]value)
	for i := range out {
		out[i] = w.value(a[i], b[i])
	}
	return out
}

// mismatch is only met where nothing follows the value: shapes agree in all pointers.
func (w *joiner) mismatch(a, b value) value {
	if a.form == formLost {
		a.t = w.taint(a.t, b.t)
		return a
	}
	w.changed = true
	return value{form: formLost, t: a.t.with(b.t)}
}

func (w *joiner) node(a, b *node) *node {
	if a == b && a.owner != w.j {
		return a
	}
	pair := [2]*node{a, b}
	if n, ok := w.merged[pair]; ok {
		return n
	}
	out := a
	random := a.isRandom() && b.isRandom()
	if a.owner != w.j || w.given[a] {
		out = w.m.nodes.leaf(anything)
		out.owner, out.random = w.j, random
		w.changed = true
	}
	if out.random && !random {
		out.random, w.changed = false, true
	}
	w.merged[pair] = out
	w.given[out] = true
	return out
}

// facts keeps what both states know, and gives the new numbers the span of what they stand for.
func (w *joiner) facts(out *state) {
	kept := make(facts, 0, len(w.old.facts))
	keep := func(n *node, in span) {
		if in = in.meet(n.span); in != n.span {
			kept = append(kept, fact{n, in})
		}
	}
	for _, f := range w.old.facts {
		if f.n.owner == w.j {
			continue
		}
		in := f.in.join(w.new.facts.spanOf(f.n))
		w.changed = w.changed || in != f.in
		keep(f.n, in)
	}
	for pair, n := range w.merged {
		keep(n, w.span(pair, n))
	}
	slices.SortFunc(kept, func(a, b fact) int { return cmp.Compare(a.n.id, b.n.id) })
	out.facts = kept
}

func (w *joiner) span(pair [2]*node, n *node) span {
	was := w.old.facts.spanOf(pair[0])
	in := was.join(w.new.facts.spanOf(pair[1]))
	if pair[0] != n || in == was {
		return in
	}
	w.changed = true
	if n.grown++; n.grown > widenAfter {
		in = in.widen()
	}
	return in
}

// memory joins two lists of cells. obj is the scratch map, whose words have a value before they are
// written; -1 is a stack.
func (w *joiner) memory(a, b memory, obj int32) memory {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) && w.unowned(a) {
		return a
	}
	out := make(memory, 0, len(a))
	for r := range ranges(a, b) {
		at := cell{off: r.off, size: r.size}
		ca, inA := w.cellOf(a, at, obj)
		cb, inB := w.cellOf(b, at, obj)
		c := cell{off: at.off, size: at.size, sure: ca.sure && cb.sure}
		switch {
		case inA && inB:
			c.v = w.value(ca.v, cb.v)
		case inA:
			c.v = w.value(ca.v, w.undefined(ca))
		default:
			c.v = w.undefined(cb)
			c.v.t = cb.v.t
		}
		w.changed = w.changed || ca.sure != c.sure || r.a < 0
		if c.v.form != formNone {
			out = append(out, c)
		}
	}
	return out
}

// unowned says that no cell can be affected by the junction's own numbers having changed.
func (w *joiner) unowned(m memory) bool {
	return !slices.ContainsFunc(m, func(c cell) bool { return c.v.n != nil && c.v.n.owner == w.j })
}

// undefined stands for bytes of a stack that were not written: any number.
func (w *joiner) undefined(c cell) value {
	if c.v.isPointer() {
		return value{form: formLost, t: c.v.t}
	}
	return number(w.m.nodes.leaf(below(uint(c.size)*8)), taint{})
}

// cellOf is what a list says of a range.
func (w *joiner) cellOf(m memory, at cell, obj int32) (cell, bool) {
	v, known, sure := m.read(at.off, at.size, w.m.nodes)
	if !known && obj >= 0 {
		return cell{off: at.off, size: at.size, v: number(w.m.wordOf(obj, at.off, at.size), fromPacket)}, true
	}
	return cell{off: at.off, size: at.size, v: v, sure: sure}, known
}

func (w *joiner) accesses(out *state) {
	for i := range out.access {
		a, b := &out.access[i], &w.new.access[i]
		if len(b.tests) > len(a.tests) {
			a.tests = b.tests
			w.changed = true
		}
		for _, pc := range b.own {
			if !slices.Contains(a.own, pc) && len(a.own) <= conditions {
				a.own = append(slices.Clone(a.own), pc)
				w.changed = true
			}
		}
		if b.touched && b.first < a.first {
			a.first = b.first
			w.changed = true
		}
	}
}

// regions keeps every branch that one of the states is behind. Only where both agree on how it began can it be
// said later what it has changed.
func (w *joiner) regions(out *state) {
	var all []region
	for _, r := range w.old.regions {
		i := slices.IndexFunc(w.new.regions, r.same)
		if i < 0 {
			w.changed = w.changed || r.must || r.before != nil
			w.m.forgetBefore(w.old, &r)
			r.must = false
			all = append(all, r)
			continue
		}
		o := w.new.regions[i]
		w.changed = w.changed || r.must && !o.must || r.before != nil && r.before != o.before
		r.t, r.must = w.taint(r.t, o.t), r.must && o.must
		if r.before != o.before {
			w.m.forgetBefore(w.old, &r)
			w.m.forgetBefore(w.new, &o)
		}
		all = append(all, r)
	}
	for _, r := range w.new.regions {
		if !slices.ContainsFunc(w.old.regions, r.same) {
			w.m.forgetBefore(w.new, &r)
			r.must, w.changed = false, true
			all = append(all, r)
		}
	}
	slices.SortFunc(all, compareRegions)
	out.regions = all
	out.sumControl()
}

// ended keeps every flow that one of the states is still to carry.
func (w *joiner) ended(out *state) {
	for _, e := range w.new.ended {
		i := slices.IndexFunc(out.ended, e.same)
		if i < 0 {
			out.ended = append(slices.Clip(out.ended), e)
			w.changed = true
			continue
		}
		if t := w.taint(out.ended[i].t, e.t); t != out.ended[i].t {
			out.ended = slices.Clone(out.ended)
			out.ended[i].t = t
		}
	}
}
