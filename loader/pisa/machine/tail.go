package machine

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// tailCall proves rule 5 of bpf_tail_call(ctx, r2, r3). The path ends where the call succeeds; the
// instructions after it are the path on which the slot was empty.
func (m *Machine) tailCall(s *state.State) {
	slots := m.mapArgument(s, asm.R2)
	index := s.Regs[asm.R3]
	t := index.T.With(s.Control).From
	m.refuseSecret(s, t.And(m.env.Secrets), "decides a tail call")
	switch {
	case slots == nil:
		m.fail(s.PC, nil, 5, rule.Chain, "a tail call whose program array cannot be followed")
	case slots.Kind == declared.Slots && slots.Name == m.hook.Chain:
		m.refuseAnswer(s, t, declared.Set{}, "a tail call")
		m.checkChain(s, slots, index)
	case slots.Kind == declared.Recirc && slots.Name == m.hook.Recirc:
		m.refuseAnswer(s, t, m.env.Budgets, "a second pass")
		m.checkRecirculation(s, slots, index)
		m.asksPass(s)
	default:
		m.fail(s.PC, slots, 5, rule.Chain, "a tail call of a %s program may use %s or %s alone", m.Prog.Hook, m.hook.Chain, m.hook.Recirc)
	}
	if slots != nil {
		m.used(s.Regs[asm.R2].Obj, true, false)
	}
	m.result(s, value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket))
}

// now is the present value of a byte of the vector.
func (m *Machine) now(s *state.State, off int) *expr.Node {
	v := &m.env.Vector
	known, ok, _ := s.Scratch[m.scratchNumber(v.Array)].Read(off, 1, m.nodes)
	if !ok {
		return m.vectorWord(off)
	}
	return m.asNumber(known)
}

// checkChain: the slot is the one that phv->next named when the program began, and next has been incremented. Only the
// program that begins the chain chooses the slot.
func (m *Machine) checkChain(s *state.State, slots *declared.Array, index value.Value) {
	v := &m.env.Vector
	if v.Array < 0 || v.Next < 0 {
		m.fail(s.PC, slots, 5, rule.Chain, "the collection has no packet header vector with a word \"next\"")
		return
	}
	base, k, nextBase, nextK := m.slots(s, m.asNumber(index), m.now(s, v.Next))
	switch {
	case base != nextBase || (nextK-k)&0xff != 1:
		m.fail(s.PC, slots, 5, rule.Chain, "phv->next was not moved to the slot after the one that is called")
	case !m.entry && (base != m.vectorWord(v.Next) || k&0xff != 0):
		m.fail(s.PC, slots, 5, rule.Chain, "the slot is not the one that phv->next named when the program began")
	case m.entry && !m.begins(s):
		m.fail(s.PC, slots, 1, rule.FlowState, "the chain begins with a word of the vector that this path has not set: it holds an earlier packet's")
	case !m.entry && !m.passOver(s):
		m.fail(s.PC, slots, 5, rule.Recirculation, "the chain continues with a phv->pass that is not 2 after a second pass and 0 without one")
	}
}

// begins reports whether an entry program has set all words that algorithms may write, but for carry.
func (m *Machine) begins(s *state.State) bool {
	v := &m.env.Vector
	mem := s.Scratch[m.scratchNumber(v.Array)]
	return !slices.ContainsFunc(v.Writable, func(w declared.Word) bool { return w != v.Carry && !mem.Sure(w.Off, w.Size) })
}

// passOver reports whether phv->pass is correct for the next program: 0 without a second pass, 2 after it. A packet has one at most.
func (m *Machine) passOver(s *state.State) bool {
	v := &m.env.Vector
	if v.Pass < 0 {
		return true
	}
	found := m.vectorWord(v.Pass)
	now := m.now(s, v.Pass)
	if now == found && !m.Prog.Recirculates || m.env.Deferred {
		return true
	}
	in := s.Facts.SpanOf(now)
	return in.Hi == 0 && s.Facts.SpanOf(found).Hi == 0 || in.Lo >= 2
}

// slots are the index of a tail call and the value of phv->next at the call, both as distances from phv->next at the program's start. A
// constant is replaced by the word that the path has compared with it and found equal: constant slots are direct jumps.
func (m *Machine) slots(s *state.State, index, next *expr.Node) (base *expr.Node, k uint64, nextBase *expr.Node, nextK uint64) {
	base, k = index.Shift()
	nextBase, nextK = next.Shift()
	word := nextBase
	if word == nil {
		word = m.vectorWord(m.env.Vector.Next)
	}
	found := s.Facts.SpanOf(word)
	if base == nil && found.Single() {
		base, k = word, k-found.Lo
	}
	if nextBase == nil && found.Single() {
		nextBase, nextK = word, nextK-found.Lo
	}
	return base, k, nextBase, nextK
}

// checkRecirculation: a second pass of the same program, at most one, and within the budget.
func (m *Machine) checkRecirculation(s *state.State, slots *declared.Array, index value.Value) {
	v := &m.env.Vector
	if v.Array < 0 || v.Pass < 0 || v.Next < 0 {
		m.fail(s.PC, slots, 5, rule.Recirculation, "the collection has no packet header vector with words \"pass\" and \"next\"")
		return
	}
	base, k, _, _ := m.slots(s, m.asNumber(index), m.now(s, v.Next))
	switch {
	case s.Facts.SpanOf(m.vectorWord(v.Pass)).Hi != 0:
		m.fail(s.PC, slots, 5, rule.Recirculation, "a path recirculates without having found phv->pass to be 0")
	case s.Facts.SpanOf(m.now(s, v.Pass)) != (expr.Span{Lo: 1, Hi: 1}):
		m.fail(s.PC, slots, 5, rule.Recirculation, "a path recirculates without having set phv->pass to 1")
	case !m.budgeted(s):
		m.fail(s.PC, slots, 5, rule.Recirculation, "a path recirculates without having asked the budget")
	case base != m.vectorWord(v.Next) || (k+1)&0xff != 0:
		m.fail(s.PC, slots, 5, rule.Recirculation, "the second pass is not one of the program's own slot")
	case m.now(s, v.Next) != m.vectorWord(v.Next):
		m.fail(s.PC, slots, 5, rule.Recirculation, "the second pass would find another phv->next than the first one")
	}
}

// budgeted reports whether a word of the budget decides, on every path, that this instruction is reached.
func (m *Machine) budgeted(s *state.State) bool {
	for _, r := range s.Regions {
		if r.Must && r.T.From.Meets(m.env.Budgets) {
			return true
		}
	}
	return false
}
