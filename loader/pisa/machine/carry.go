package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
)

// The vector's carry holds what a first pass hands to the second one. Every path to the second pass must have written the bytes that the
// second pass reads. Bit n of a mask stands for byte n of carry.

// carryRead is the part of carry that an instruction of the second pass reads.
type carryRead struct {
	pc    int
	bytes uint32
}

// carried returns which bytes of carry this path has written.
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

// asksPass notes which bytes of carry are written when this instruction requests the second pass.
func (m *Machine) asksPass(s *state.State) {
	if !m.passes {
		m.leaves = ^uint32(0)
	}
	m.passes = true
	m.leaves &= m.carried(s)
}

// deferPass: in a replay that delays second passes (recirc.h) the driver calls the program again; there is no tail call.
func (m *Machine) deferPass(s *state.State) {
	if m.env.Deferred && m.Prog.Recirculates {
		m.asksPass(s)
	}
}

// checkCarry compares the bytes that second passes read with those that all first passes have written.
func (m *Machine) checkCarry() {
	for _, w := range m.wants {
		if w.bytes&^m.leaves == 0 {
			continue
		}
		m.fail(w.pc, m.env.Arrays[m.env.Vector.Array], 1, rule.FlowState,
			"carry is read in a second pass, and not every first pass that asks for one has written it: it holds an earlier packet's")
	}
}
