package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
)

// The vector's carry is what a first pass leaves to the second one. What the second pass reads of it, every way that leads there
// must have written: bit n of a mask stands for byte n of carry.

// carryRead is what an instruction of the second pass reads of carry.
type carryRead struct {
	pc    int
	bytes uint32
}

// carried is what of carry this path has written.
func (m *Machine) carried(s *state.State) (mask uint32) {
	v := &m.env.Vector
	if v.Array < 0 {
		return 0
	}
	mem := s.Scratch[m.scratchNumber(v.Array)]
	from, to := mem.Around(v.Carry.Off, v.Carry.Size)
	for _, c := range mem[from:to] {
		if c.Sure {
			mask |= v.CarryMask(c.Off, c.Size)
		}
	}
	return mask
}

// asksPass notes what the second pass will find when it is asked for here.
func (m *Machine) asksPass(s *state.State) {
	if !m.passes {
		m.leaves = ^uint32(0)
	}
	m.passes = true
	m.leaves &= m.carried(s)
}

// deferPass: in a replay that holds second passes back (recirc.h) the driver calls the program, not a tail call.
func (m *Machine) deferPass(s *state.State) {
	if m.env.Deferred && m.Prog.Recirculates {
		m.asksPass(s)
	}
}

// checkCarry compares what second passes read with what first passes have left.
func (m *Machine) checkCarry() {
	for _, w := range m.wants {
		if w.bytes&^m.leaves == 0 {
			continue
		}
		m.fail(w.pc, m.env.Arrays[m.env.Vector.Array], 1, rule.FlowState,
			"carry is read in a second pass, and not every first pass that asks for one has written it: it holds an earlier packet's")
	}
}
