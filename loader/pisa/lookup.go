package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// mapHelper interprets the helpers that look up or change elements of a map; false when fn is none.
func (m *machine) mapHelper(s *state, fn asm.BuiltinFunc) bool {
	switch fn {
	case asm.FnMapLookupElem, asm.FnMapLookupPercpuElem:
		m.lookup(s)
	case asm.FnMapUpdateElem, asm.FnMapDeleteElem, asm.FnMapPushElem, asm.FnMapPopElem, asm.FnMapPeekElem:
		m.change(s, fn)
	default:
		return false
	}
	return true
}

// lookup is bpf_map_lookup_elem(r1, r2).
func (m *machine) lookup(s *state) {
	table := s.regs[asm.R1]
	if table.form != formMap {
		m.result(s, m.innerLookup(s, table))
		return
	}
	a := m.env.arrays[table.obj]
	key, t := m.key(s, s.regs[asm.R2], int(a.spec.KeySize))
	m.refuseSecret(s, t.from&m.env.secrets, "is used as an index")
	out := value{form: formMemory, obj: table.obj, n: m.nodes.number(0), t: t}
	switch {
	case isMapOfMaps(a.spec.Type):
		out = value{form: formInner, obj: table.obj, t: t}
		m.used(table.obj, true, false)
	case a.staged():
		out.form = formElement
		out.lookup = m.openAccess(s, table.obj)
	}
	if !a.indexed() || key == nil || s.facts.spanOf(key).hi >= uint64(a.spec.MaxEntries) {
		out = m.maybe(out)
	}
	m.result(s, out)
}

// innerLookup: what lies in a map inside a map is as read-only as the outer one.
func (m *machine) innerLookup(s *state, table value) value {
	if table.form != formInner {
		m.fail(s.pc, nil, 2, Unfollowed, "a lookup in a map that cannot be followed")
		return number(m.nodes.leaf(anything), table.t)
	}
	return m.maybe(value{form: formMemory, obj: table.obj, n: m.nodes.number(0), t: table.t})
}

// key reads a 32-bit index behind a pointer, and what it depends on. nil when it is no number that is known.
func (m *machine) key(s *state, ptr value, size int) (*node, taint) {
	t := ptr.t.with(s.control)
	switch ptr.form {
	case formNumber, formStack, formMemory:
		v := m.read(s, ptr, size)
		if t = t.with(v.t); v.isNumber() && size == 4 {
			return v.n, t
		}
	case formElement:
		t = t.with(m.read(s, ptr, min(size, 8)).t)
	}
	return nil, t
}

// change is an update, a deletion or a queue operation through a helper: the whole element is written.
func (m *machine) change(s *state, fn asm.BuiltinFunc) {
	table := s.regs[asm.R1]
	if table.form != formMap {
		m.fail(s.pc, nil, 1, FlowState, "a map inside a map is changed")
		m.result(s, number(m.nodes.leaf(anything), fromPacket))
		return
	}
	a := m.env.arrays[table.obj]
	m.used(table.obj, fn == asm.FnMapPeekElem || fn == asm.FnMapPopElem, true)
	_, t := m.key(s, s.regs[asm.R2], int(a.spec.KeySize))
	m.refuseSecret(s, t.from&m.env.secrets, "is used as an index")
	t = t.with(m.valueTaint(s, a, fn))
	switch {
	case a.staged():
		m.keepSecret(s, t, table.obj, formElement)
		ptr := value{form: formElement, obj: table.obj, lookup: m.openAccess(s, table.obj), t: t}
		m.touchElement(s, ptr, touch{pc: s.pc, write: true, off: -1, size: 8, value: t})
	case a.kind == Scratch:
		m.fail(s.pc, a, 1, FlowState, "scratch memory is replaced through a helper: the proof follows pointers only")
	default:
		m.refuseWrite(s, a)
	}
	m.result(s, number(m.nodes.leaf(anything), fromPacket))
}

// valueTaint is what the new element depends on.
func (m *machine) valueTaint(s *state, a *array, fn asm.BuiltinFunc) taint {
	ptr := s.regs[asm.R3]
	if fn != asm.FnMapUpdateElem {
		return s.control
	}
	t := ptr.t.with(s.control)
	if ptr.form == formNumber || ptr.form == formStack || ptr.form == formMemory {
		t = t.with(m.read(s, ptr, int(a.spec.ValueSize)).t)
	}
	return t
}
