package pisa

import "slices"

// mentions are the registers and tallies that instructions refer to from here to the end of their function, those of called
// functions among them: mentions[i] for instruction i.
type mentions []set

// newMentions goes backward through all functions until nothing is added: functions call each other, and loops go back.
func newMentions(p *program, arrays []*array) mentions {
	own := make(mentions, len(p.insns))
	for i := range p.insns {
		if at := p.insns[i].array; at >= 0 && arrays[at].staged() {
			own[i] = arrays[at].bit
		}
	}
	out := slices.Clone(own)
	for changed := true; changed; {
		changed = false
		for i := len(p.insns) - 1; i >= 0; i-- {
			now := out[i]
			if in := &p.insns[i]; in.IsFunctionReference() {
				now |= out[in.target] // a function that is called, or whose address is taken
			}
			next, _ := p.successors(i)
			for _, to := range next {
				now |= out[to]
			}
			changed = changed || now != out[i]
			out[i] = now
		}
	}
	return out
}

// forget drops accesses to arrays that nothing behind refers to any more: no pointer, and no instruction.
func (m *machine) forget(s *state) {
	if len(s.access) == 0 {
		return
	}
	wanted := m.mentions[s.pc]
	for d := len(s.frames) - 1; d > 0; d-- {
		wanted |= m.mentions[s.frames[d].back]
	}
	keep := func(v value) {
		switch v.form {
		case formElement, formMap:
			wanted |= m.env.arrays[v.obj].bit
		case formCode: // a callback, and its next round
			wanted |= m.mentions[v.obj]
		}
	}
	for _, v := range s.regs {
		keep(v)
	}
	for d := range s.frames {
		for _, c := range s.frames[d].stack {
			keep(c.v)
		}
		if saved := s.frames[d].saved; saved != nil {
			for _, v := range saved {
				keep(v)
			}
		}
	}
	gone := func(a access) bool { return m.env.arrays[a.array].bit&wanted == 0 }
	if slices.ContainsFunc(s.access, gone) {
		s.access = slices.DeleteFunc(slices.Clone(s.access), gone)
	}
}
