package pisa

import (
	"github.com/cilium/ebpf/btf"
)

// budgetWords is the layout of recirc.h's struct: what a packet may do with each word.
type budgetWords struct {
	left   word
	counts []word // added to
	known  bool
}

// readBudget finds the words of the budget in its BTF.
func readBudget(t btf.Type) (b budgetWords) {
	s, ok := btf.As[*btf.Struct](t)
	if !ok {
		return b
	}
	for _, member := range s.Members {
		w := word{int(member.Offset.Bytes()), 8}
		switch member.Name {
		case "left":
			b.left, b.known = w, true
		case "granted", "refused":
			b.counts = append(b.counts, w)
		}
	}
	return b
}

// storeBudget: passes are taken from what the budget itself says, and what was granted and refused is counted.
func (m *machine) storeBudget(s *state, a *array, ptr value, size int, v value) {
	lo, hi := s.reach(ptr)
	m.refuseAnswer(s, v.t.from, m.env.budgets, "a word of the budget")
	b := &m.env.budget
	counts := false
	for _, w := range b.counts {
		counts = counts || lo == hi && w.covers(lo, size)
	}
	switch {
	case counts && v.sum == sum{ptr.obj + 1, ptr.n}:
	case counts:
		m.fail(s.pc, a, 1, FlowState, "a count of the budget is set to something that is not its old value plus a number")
	case lo != hi || !b.known || !b.left.covers(lo, size):
		m.fail(s.pc, a, 1, FlowState, "a word of the budget is written that only userspace sets")
	case v.t.from&packet != 0 || v.t.from&^s.control.from&^a.bit != 0:
		m.fail(s.pc, a, 1, FlowState, "a word of the budget is set to something that does not come from the budget")
	}
}

// ownBudget: the element is that of the program's own slot, phv->next - 1 in either half of the slots.
func (m *machine) ownBudget(s *state, a *array, key *node) {
	v := &m.env.vector
	if key != nil && v.array >= 0 && v.next >= 0 && key.op == opAnd && key.b.is(chainSlots-1) {
		if base, k := key.a.shift(); base == m.vectorWord(v.next) && (k+1)&0xff == 0 {
			return
		}
	}
	m.fail(s.pc, a, 1, FlowState, "the element of the budget is not that of the program's own slot, (phv->next - 1) & %d", chainSlots-1)
}
