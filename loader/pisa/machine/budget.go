package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// storeBudget: the remaining passes are calculated from the budget's own words alone; the counts of granted and refused passes are only
// added to.
func (m *Machine) storeBudget(s *state.State, a *declared.Array, ptr value.Value, size int, v value.Value) {
	lo, hi := s.Reach(ptr)
	m.refuseAnswer(s, v.T.From, m.env.Budgets, "a word of the budget")
	b := &m.env.Budget
	counts := false
	for _, w := range b.Counts {
		counts = counts || lo == hi && w.Covers(lo, size)
	}
	switch {
	case counts && v.Sum == value.Sum{Obj: ptr.Obj + 1, Off: ptr.N}:
	case counts:
		m.fail(s.PC, a, 1, rule.FlowState, "a count of the budget is set to something that is not its old value plus a number")
	case lo != hi || !b.Known || !b.Left.Covers(lo, size):
		m.fail(s.PC, a, 1, rule.FlowState, "a word of the budget is written that only userspace sets")
	case v.T.From.Meets(declared.Packet) || !v.T.From.Without(s.Control.From).Without(a.Bit).Empty():
		m.fail(s.PC, a, 1, rule.FlowState, "a word of the budget is set to something that is not made from the budget")
	}
}

// ownBudget: the element is that of the program's own slot, phv->next - 1 in either half of the slots.
func (m *Machine) ownBudget(s *state.State, a *declared.Array, key *expr.Node) {
	v := &m.env.Vector
	if key != nil && v.Array >= 0 && v.Next >= 0 && key.Op == expr.And && key.B.Is(declared.ChainSlots-1) {
		if base, k := key.A.Shift(); base == m.vectorWord(v.Next) && (k+1)&0xff == 0 {
			return
		}
	}
	m.fail(s.PC, a, 1, rule.FlowState, "the element of the budget is not that of the program's own slot, (phv->next - 1) & %d", declared.ChainSlots-1)
}
