package machine

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// forget drops accesses to arrays to which no pointer and no later instruction refers.
func (m *Machine) forget(s *state.State) {
	if len(s.Access) == 0 {
		return
	}
	wanted := m.mentions[s.PC]
	for d := len(s.Frames) - 1; d > 0; d-- {
		wanted = wanted.Or(m.mentions[s.Frames[d].Back])
	}
	keep := func(v value.Value) {
		switch v.Form {
		case value.FormElement, value.FormMap:
			wanted = wanted.Or(m.env.Arrays[v.Obj].Group)
		case value.FormCode: // a callback, and its next round
			wanted = wanted.Or(m.mentions[v.Obj])
		}
	}
	for _, v := range s.Regs {
		keep(v)
	}
	for d := range s.Frames {
		for _, c := range s.Frames[d].Stack {
			keep(c.V)
		}
		if saved := s.Frames[d].Saved; saved != nil {
			for _, v := range saved {
				keep(v)
			}
		}
	}
	forgotten := func(a state.Access) bool { return !m.env.Arrays[a.Array].Bit.Meets(wanted) }
	if slices.ContainsFunc(s.Access, forgotten) {
		s.Access = slices.DeleteFunc(slices.Clone(s.Access), forgotten)
	}
}
