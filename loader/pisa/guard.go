package pisa

// What a value was calculated from decides where it may go. Three kinds of sources are not state that the rules know:
//
//	secrets  tallies and counters, which userspace alone reads back; and what nobody has written in this packet (stale)
//	answers  of a ring (was there room?) and of the budget (is there a pass left?), which packets share
//
// A secret goes nowhere but back into its own element and into reports; an answer decides what is counted and, of the budget,
// whether there is a second pass.

// refuseSecret refuses that something decides how the data plane goes on.
func (m *machine) refuseSecret(s *state, leak set, how string) {
	if leak&stale != 0 {
		m.fail(s.pc, nil, 1, FlowState, "memory that this packet has not written on this path %s: it holds what an earlier packet left there", how)
	}
	for _, a := range m.env.arrays {
		if a.bit&leak&m.env.secrets != 0 {
			m.fail(s.pc, a, 1, FlowState, "what was read from it %s: only userspace reads %s back", how, a.kind)
		}
	}
}

// keepSecret: what userspace alone may read back must not decide anything in the data plane.
func (m *machine) keepSecret(s *state, t taint, obj int32, form form) {
	leak := t.from & m.env.secrets
	if form == formMemory || form == formElement {
		leak &^= m.env.arrays[obj].bit
	}
	m.refuseSecret(s, leak, "is stored elsewhere")
}

// refuseAnswer refuses that something depends on what a ring or the budget has answered.
func (m *machine) refuseAnswer(s *state, from, allowed set, what string) {
	leak := from & m.env.answers &^ allowed
	if leak == 0 {
		return
	}
	for _, a := range m.env.arrays {
		switch {
		case a.bit&leak == 0:
		case a.kind == Ring:
			m.fail(s.pc, a, 1, FlowState, "%s depends on whether it had room for a report: that may only be counted", what)
		default:
			m.fail(s.pc, a, 1, FlowState, "%s depends on the passes left in it: they decide the second pass alone", what)
		}
	}
}
