package pisa

import (
	"github.com/cilium/ebpf/asm"
)

// kernelFunctions is the list of functions of the kernel (kfuncs), with why nothing of them outlives the packet.
var kernelFunctions = map[string]string{
	"bpf_iter_num_new":     "the head of a loop over numbers; the iterator lies on the stack",
	"bpf_iter_num_next":    "the next round of such a loop",
	"bpf_iter_num_destroy": "the end of such a loop",
}

const iteratorBytes = 8

// kernelFunction interprets a call of a function of the kernel.
func (m *machine) kernelFunction(s *state, in *insn) {
	name := in.Reference()
	if _, ok := kernelFunctions[name]; !ok {
		m.refuse(s, refusal{}, "kernel function %q is not on the list", name)
		m.result(s, m.refused())
		return
	}
	it := s.regs[asm.R1]
	if lo, hi := s.reach(it); it.form != formStack || lo != hi {
		m.fail(s.pc, nil, 2, Unfollowed, "an iterator that does not lie on the stack")
		m.result(s, value{form: formLost})
		return
	}
	switch name {
	case "bpf_iter_num_new":
		m.newIterator(s, it)
	case "bpf_iter_num_next":
		m.nextRound(s, it)
	default:
		m.result(s, number(m.nodes.leaf(anything), taint{}))
	}
}

// newIterator puts an iterator on the stack that depends on both ends of its range.
func (m *machine) newIterator(s *state, it value) {
	t := s.regs[asm.R2].t.with(s.regs[asm.R3].t).with(s.control)
	m.refuseSecret(s, t.from, "decides how often a loop runs")
	lo, _ := s.reach(it)
	f := &s.frames[it.obj]
	m.noteCell(s, place{obj: int(it.obj), off: lo, size: iteratorBytes})
	state := number(m.nodes.leaf(anything), t)
	f.stack = f.stack.replace(cell{off: lo, size: iteratorBytes, v: state, sure: true}, m.nodes)
	m.result(s, number(m.nodes.leaf(anything), t))
}

// nextRound gives a pointer to the number of the round, NULL behind the last one.
func (m *machine) nextRound(s *state, it value) {
	lo, _ := s.reach(it)
	t := m.cellTaint(s.frames[it.obj].stack, lo, iteratorBytes).with(s.control)
	m.result(s, m.maybe(value{form: formRound, n: m.nodes.number(0), t: t}))
}
