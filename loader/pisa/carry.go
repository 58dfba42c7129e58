package pisa

// The vector's carry is what a first pass leaves to the second one. What the second pass reads of it, every way that leads there
// must have written: bit n of a mask stands for byte n of carry.

// carryRead is what an instruction of the second pass reads of carry.
type carryRead struct {
	pc    int
	bytes uint32
}

func (v *vector) carryMask(off, size int) (mask uint32) {
	for i := range v.carry.size {
		if at := v.carry.off + i; at >= off && at < off+size {
			mask |= 1 << i
		}
	}
	return mask
}

// carried is what of carry this path has written.
func (m *machine) carried(s *state) (mask uint32) {
	v := &m.env.vector
	if v.array < 0 {
		return 0
	}
	mem := s.scratch[m.scratchNumber(v.array)]
	from, to := mem.around(v.carry.off, v.carry.size)
	for _, c := range mem[from:to] {
		if c.sure {
			mask |= v.carryMask(c.off, c.size)
		}
	}
	return mask
}

// asksPass notes what the second pass will find when it is asked for here.
func (m *machine) asksPass(s *state) {
	if !m.passes {
		m.leaves = ^uint32(0)
	}
	m.passes = true
	m.leaves &= m.carried(s)
}

// deferPass: in a replay that holds second passes back (recirc.h) the driver calls the program, not a tail call.
func (m *machine) deferPass(s *state) {
	if m.env.deferred && m.prog.recirculates {
		m.asksPass(s)
	}
}

// checkCarry compares what second passes read with what first passes have left.
func (m *machine) checkCarry() {
	for _, w := range m.wants {
		if w.bytes&^m.leaves == 0 {
			continue
		}
		m.fail(w.pc, m.env.arrays[m.env.vector.array], 1, FlowState,
			"carry is read in a second pass, and not every first pass that asks for one has written it: it holds an earlier packet's")
	}
}
