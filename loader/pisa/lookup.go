package pisa

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// lookup is bpf_map_lookup_elem(r1, r2).
func (m *machine) lookup(s *state) {
	table := s.regs[asm.R1]
	if table.form != formMap {
		m.result(s, m.innerLookup(s, table))
		return
	}
	a := m.env.arrays[table.obj]
	if !mapRoles[a.kind].looked {
		m.fail(s.pc, a, 1, Unlisted, "an element of a %s is looked up", a.kind)
	}
	key, t := m.key(s, s.regs[asm.R2], int(a.spec.KeySize))
	m.refuseSecret(s, t.from&m.env.secrets, "is used as an index")
	if a.kind == Budget {
		m.ownBudget(s, a, key)
	}
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
	case formElement:
		t = t.with(m.read(s, ptr, min(size, 8)).t)
	default:
		v := m.read(s, ptr, size)
		if t = t.with(v.t); v.isNumber() && size == 4 {
			return v.n, t
		}
	}
	return nil, t
}

// update is bpf_map_update_elem(r1, r2, r3, r4): the whole element is written, unless the flags say otherwise.
func (m *machine) update(s *state) {
	a := m.mapArgument(s, asm.R1)
	if a == nil {
		m.fail(s.pc, nil, 1, FlowState, "a map inside a map is changed")
		m.result(s, number(m.nodes.leaf(anything), fromPacket))
		return
	}
	obj := s.regs[asm.R1].obj
	m.used(obj, false, true)
	_, t := m.key(s, s.regs[asm.R2], int(a.spec.KeySize))
	t = t.with(m.readRange(s, s.regs[asm.R3], int(a.spec.ValueSize))).with(s.regs[asm.R4].t).with(s.control)
	m.refuseSecret(s, t.from&m.env.secrets&^a.bit, "decides what is stored")
	switch {
	case a.staged():
		ptr := value{form: formElement, obj: obj, lookup: m.openAccess(s, obj), t: t}
		m.touchElement(s, ptr, touch{pc: s.pc, write: true, off: -1, size: 8, value: t})
	case a.kind == Scratch:
		m.fail(s.pc, a, 1, FlowState, "scratch memory is replaced through a helper: the proof follows pointers only")
	default:
		m.refuseWrite(s, a)
	}
	m.result(s, number(m.nodes.leaf(anything), t.with(fromPacket)))
}

// peek is bpf_map_peek_elem(r1, r2): the head of a queue that is a table.
func (m *machine) peek(s *state) bool {
	a := m.mapArgument(s, asm.R1)
	queue := a != nil && (a.spec.Type == ebpf.Queue || a.spec.Type == ebpf.Stack)
	if !queue {
		m.fail(s.pc, a, 1, Unlisted, "bpf_map_peek_elem of something that is no queue or stack of configuration")
		m.result(s, number(m.nodes.leaf(anything), fromPacket))
		return true
	}
	m.used(s.regs[asm.R1].obj, true, false)
	m.filled(s, asm.R2, span{uint64(a.spec.ValueSize), uint64(a.spec.ValueSize)}, leavesOld, s.control)
	return true
}
