package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// What a value was calculated from decides where it may go. Three kinds of sources are not state that the rules know:
//
//	secrets  tallies and counters, which only userspace reads back; and memory that this packet has not written (stale)
//	answers  of a ring (was it full?) and of the budget (is there a pass left?), which packets share
//
// A secret may be stored only in its own element and in reports. An answer may decide what is counted and, for the budget, whether there
// is a second pass.

// refuseSecret refuses that a secret influences the data plane; how names the influence.
func (m *Machine) refuseSecret(s *state.State, leak declared.Set, how string) {
	if leak.Meets(declared.Stale) {
		m.fail(s.PC, nil, 1, rule.FlowState, "memory that this packet has not written on this path %s: it holds what an earlier packet left there", how)
	}
	for _, a := range m.env.Arrays {
		if a.Bit.And(leak).Meets(m.env.Secrets) {
			m.fail(s.PC, a, 1, rule.FlowState, "what was read from it %s: only userspace reads %s back", how, a.Kind)
		}
	}
}

// keepSecret: a value that only userspace may read back must not be stored where the data plane reads it.
func (m *Machine) keepSecret(s *state.State, t value.Taint, obj int32, form value.Form) {
	leak := t.From.And(m.env.Secrets)
	if form == value.FormMemory || form == value.FormElement {
		leak = leak.Without(m.env.Arrays[obj].Bit)
	}
	m.refuseSecret(s, leak, "is stored elsewhere")
}

// refuseAnswer refuses that something depends on the result of a ring or of the budget.
func (m *Machine) refuseAnswer(s *state.State, from, allowed declared.Set, what string) {
	leak := from.And(m.env.Answers).Without(allowed)
	if leak.Empty() {
		return
	}
	for _, a := range m.env.Arrays {
		switch {
		case !a.Bit.Meets(leak):
		case a.Kind == declared.Ring:
			m.fail(s.PC, a, 1, rule.FlowState, "%s depends on whether it had room for a report: that may only be counted", what)
		default:
			m.fail(s.PC, a, 1, rule.FlowState, "%s depends on the passes left in it: they decide the second pass alone", what)
		}
	}
}
