package machine

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// lookup is bpf_map_lookup_elem(r1, r2).
func (m *Machine) lookup(s *state.State) {
	table := s.Regs[asm.R1]
	if table.Form != value.FormMap {
		m.result(s, m.innerLookup(s, table))
		return
	}
	a := m.env.Arrays[table.Obj]
	if !declared.MapRoles[a.Kind].Looked {
		m.fail(s.PC, a, 1, rule.Unlisted, "an element of a %s is looked up", a.Kind)
	}
	key, t := m.key(s, s.Regs[asm.R2], int(a.Spec.KeySize))
	m.refuseSecret(s, t.From.And(m.env.Secrets), "is used as an index")
	if a.Kind == declared.Budget {
		m.ownBudget(s, a, key)
	}
	out := value.Value{Form: value.FormMemory, Obj: table.Obj, N: m.nodes.Number(0), T: t}
	switch {
	case declared.IsMapOfMaps(a.Spec.Type):
		out = value.Value{Form: value.FormInner, Obj: table.Obj, T: t}
		m.used(table.Obj, true, false)
	case a.Staged():
		out.Form = value.FormElement
		out.Lookup = m.openAccess(s, table.Obj)
	}
	if !a.Indexed() || key == nil || s.Facts.SpanOf(key).Hi >= uint64(a.Spec.MaxEntries) {
		out = m.maybe(out)
	}
	m.result(s, out)
}

// innerLookup: the inner map of a read-only map is read-only, too.
func (m *Machine) innerLookup(s *state.State, table value.Value) value.Value {
	if table.Form != value.FormInner {
		m.fail(s.PC, nil, 2, rule.Unfollowed, "a lookup in a map that cannot be followed")
		return value.Number(m.nodes.Leaf(expr.Anything), table.T)
	}
	return m.maybe(value.Value{Form: value.FormMemory, Obj: table.Obj, N: m.nodes.Number(0), T: table.T})
}

// key reads the 32-bit index that a pointer refers to, and its taint; nil when it is not a number that is known.
func (m *Machine) key(s *state.State, ptr value.Value, size int) (*expr.Node, value.Taint) {
	t := ptr.T.With(s.Control)
	switch ptr.Form {
	case value.FormElement:
		t = t.With(m.read(s, ptr, min(size, 8)).T)
	default:
		v := m.read(s, ptr, size)
		if t = t.With(v.T); v.IsNumber() && size == 4 {
			return v.N, t
		}
	}
	return nil, t
}

// update is bpf_map_update_elem(r1, r2, r3, r4): it writes the whole element or, as the flags decide, nothing.
func (m *Machine) update(s *state.State) {
	a := m.mapArgument(s, asm.R1)
	if a == nil {
		m.fail(s.PC, nil, 1, rule.FlowState, "a map inside a map is changed")
		m.result(s, value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket))
		return
	}
	obj := s.Regs[asm.R1].Obj
	m.used(obj, false, true)
	_, t := m.key(s, s.Regs[asm.R2], int(a.Spec.KeySize))
	t = t.With(m.readRange(s, s.Regs[asm.R3], int(a.Spec.ValueSize))).With(s.Regs[asm.R4].T).With(s.Control)
	m.refuseSecret(s, t.From.And(m.env.Secrets).Without(a.Bit), "decides what is stored")
	switch {
	case a.Beside > 1:
		m.fail(s.PC, a, 2, rule.SecondAccess, "all arrays of map %s are written at once", a.Map)
	case a.Staged():
		ptr := value.Value{Form: value.FormElement, Obj: obj, Lookup: m.openAccess(s, obj), T: t}
		m.touchElement(s, ptr, touch{pc: s.PC, write: true, off: -1, size: 8, value: t})
	case a.Kind == declared.Scratch:
		m.fail(s.PC, a, 1, rule.FlowState, "scratch memory is replaced through a helper: the proof follows pointers only")
	default:
		m.refuseWrite(s, a)
	}
	m.result(s, value.Number(m.nodes.Leaf(expr.Anything), t.With(value.FromPacket)))
}

// peek is bpf_map_peek_elem(r1, r2): the head of a queue that is a table.
func (m *Machine) peek(s *state.State) bool {
	a := m.mapArgument(s, asm.R1)
	queue := a != nil && (a.Spec.Type == ebpf.Queue || a.Spec.Type == ebpf.Stack)
	if !queue {
		m.fail(s.PC, a, 1, rule.Unlisted, "bpf_map_peek_elem of something that is no queue or stack of configuration")
		m.result(s, value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket))
		return true
	}
	m.used(s.Regs[asm.R1].Obj, true, false)
	m.filled(s, asm.R2, expr.Span{Lo: uint64(a.Spec.ValueSize), Hi: uint64(a.Spec.ValueSize)}, allow.LeavesOld, s.Control)
	return true
}
