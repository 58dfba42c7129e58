package pisa

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// tailCall proves rule 5 of bpf_tail_call(ctx, r2, r3). The path ends where the call succeeds; what comes behind
// it is the path on which the slot was empty.
func (m *machine) tailCall(s *state) {
	slots := m.mapArgument(s, asm.R2)
	index := s.regs[asm.R3]
	t := index.t.with(s.control).from
	m.refuseSecret(s, t&m.env.secrets, "decides a tail call")
	switch {
	case slots == nil:
		m.fail(s.pc, nil, 5, Chain, "a tail call whose program array cannot be followed")
	case slots.kind == Slots && slots.name == m.hook.chain:
		m.refuseAnswer(s, t, 0, "a tail call")
		m.checkChain(s, slots, index)
	case slots.kind == Recirc && slots.name == m.hook.recirc:
		m.refuseAnswer(s, t, m.env.budgets, "a second pass")
		m.checkRecirculation(s, slots, index)
		m.asksPass(s)
	default:
		m.fail(s.pc, slots, 5, Chain, "a tail call of a %s program goes into %s or %s alone", m.prog.hook, m.hook.chain, m.hook.recirc)
	}
	if slots != nil {
		m.used(s.regs[asm.R2].obj, true, false)
	}
	m.result(s, number(m.nodes.leaf(anything), fromPacket))
}

// now is what a byte of the vector holds at this instruction.
func (m *machine) now(s *state, off int) *node {
	v := &m.env.vector
	known, ok, _ := s.scratch[m.scratchNumber(v.array)].read(off, 1, m.nodes)
	if !ok {
		return m.vectorWord(off)
	}
	return m.asNumber(known)
}

// checkChain: the slot is the one that phv->next named when the program began, and next has moved on. Only the
// program that begins the chain chooses where.
func (m *machine) checkChain(s *state, slots *array, index value) {
	v := &m.env.vector
	if v.array < 0 || v.next < 0 {
		m.fail(s.pc, slots, 5, Chain, "the collection has no packet header vector with a word \"next\"")
		return
	}
	base, k, nextBase, nextK := m.slots(s, m.asNumber(index), m.now(s, v.next))
	switch {
	case base != nextBase || (nextK-k)&0xff != 1:
		m.fail(s.pc, slots, 5, Chain, "phv->next was not moved to the slot behind the one that is called")
	case !m.entry && (base != m.vectorWord(v.next) || k&0xff != 0):
		m.fail(s.pc, slots, 5, Chain, "the slot is not the one that phv->next named when the program began")
	case m.entry && !m.begins(s):
		m.fail(s.pc, slots, 1, FlowState, "the chain begins with a word of the vector that this path has not set: it holds an earlier packet's")
	case !m.entry && !m.passOver(s):
		m.fail(s.pc, slots, 5, Recirculation, "the chain goes on with a phv->pass that is not 2 behind a second pass and 0 without one")
	}
}

// begins says whether an entry program has set all words that algorithms may write, but for carry.
func (m *machine) begins(s *state) bool {
	v := &m.env.vector
	mem := s.scratch[m.scratchNumber(v.array)]
	return !slices.ContainsFunc(v.writable, func(w word) bool { return w != v.carry && !mem.sure(w.off, w.size) })
}

// passOver: an algorithm that phv->pass tells to be in its second pass is in it, and a packet has one at most.
func (m *machine) passOver(s *state) bool {
	v := &m.env.vector
	if v.pass < 0 {
		return true
	}
	found := m.vectorWord(v.pass)
	now := m.now(s, v.pass)
	if now == found && !m.prog.recirculates || m.env.deferred {
		return true
	}
	in := s.facts.spanOf(now)
	return in.hi == 0 && s.facts.spanOf(found).hi == 0 || in.lo >= 2
}

// slots are the index of a tail call and what phv->next holds by then, as distances from what phv->next held. A constant
// stands for the word that the path has found to be equal to it: constant slots are direct jumps.
func (m *machine) slots(s *state, index, next *node) (base *node, k uint64, nextBase *node, nextK uint64) {
	base, k = index.shift()
	nextBase, nextK = next.shift()
	word := nextBase
	if word == nil {
		word = m.vectorWord(m.env.vector.next)
	}
	found := s.facts.spanOf(word)
	if base == nil && found.single() {
		base, k = word, k-found.lo
	}
	if nextBase == nil && found.single() {
		nextBase, nextK = word, nextK-found.lo
	}
	return base, k, nextBase, nextK
}

// checkRecirculation: a second pass of the same program, at most one, and within the budget.
func (m *machine) checkRecirculation(s *state, slots *array, index value) {
	v := &m.env.vector
	if v.array < 0 || v.pass < 0 || v.next < 0 {
		m.fail(s.pc, slots, 5, Recirculation, "the collection has no packet header vector with words \"pass\" and \"next\"")
		return
	}
	base, k := m.asNumber(index).shift()
	switch {
	case s.facts.spanOf(m.vectorWord(v.pass)).hi != 0:
		m.fail(s.pc, slots, 5, Recirculation, "a path recirculates without having found phv->pass to be 0")
	case s.facts.spanOf(m.now(s, v.pass)) != (span{1, 1}):
		m.fail(s.pc, slots, 5, Recirculation, "a path recirculates without having set phv->pass to 1")
	case !m.budgeted(s):
		m.fail(s.pc, slots, 5, Recirculation, "a path recirculates without having asked the budget")
	case base != m.vectorWord(v.next) || (k+1)&0xff != 0:
		m.fail(s.pc, slots, 5, Recirculation, "the second pass is not one of the program's own slot")
	case m.now(s, v.next) != m.vectorWord(v.next):
		m.fail(s.pc, slots, 5, Recirculation, "the second pass would find another phv->next than the first one")
	}
}

// budgeted says whether being here depends on a word of the budget, on every path that leads here.
func (m *machine) budgeted(s *state) bool {
	for _, r := range s.regions {
		if r.must && r.t.from&m.env.budgets != 0 {
			return true
		}
	}
	return false
}
