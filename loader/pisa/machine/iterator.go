package machine

import (
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// kernelFunction interprets a call of a function of the kernel.
func (m *Machine) kernelFunction(s *state.State, in *code.Insn) {
	name := in.Reference()
	if _, ok := allow.KernelFunctions[name]; !ok {
		m.refuse(s, allow.Refusal{}, "kernel function %q is not on the list", name)
		m.result(s, m.refused())
		return
	}
	it := s.Regs[asm.R1]
	if lo, hi := s.Reach(it); it.Form != value.FormStack || lo != hi {
		m.fail(s.PC, nil, 2, rule.Unfollowed, "an iterator that does not lie on the stack")
		m.result(s, value.Value{Form: value.FormLost})
		return
	}
	switch name {
	case "bpf_iter_num_new":
		m.newIterator(s, it)
	case "bpf_iter_num_next":
		m.nextRound(s, it)
	default:
		m.result(s, value.Number(m.nodes.Leaf(expr.Anything), value.Taint{}))
	}
}

// newIterator puts an iterator on the stack that depends on both ends of its range.
func (m *Machine) newIterator(s *state.State, it value.Value) {
	t := s.Regs[asm.R2].T.With(s.Regs[asm.R3].T).With(s.Control)
	m.refuseSecret(s, t.From, "decides how often a loop runs")
	lo, _ := s.Reach(it)
	f := &s.Frames[it.Obj]
	m.flows.NoteCell(s, state.Place{Obj: int(it.Obj), Off: lo, Size: iteratorBytes})
	state := value.Number(m.nodes.Leaf(expr.Anything), t)
	f.Stack = f.Stack.Replace(value.Cell{Off: lo, Size: iteratorBytes, V: state, Sure: true}, m.nodes)
	m.result(s, value.Number(m.nodes.Leaf(expr.Anything), t))
}

// nextRound returns a pointer to the number of the round, NULL after the last one.
func (m *Machine) nextRound(s *state.State, it value.Value) {
	lo, _ := s.Reach(it)
	t := m.cellTaint(s.Frames[it.Obj].Stack, lo, iteratorBytes).With(s.Control)
	m.result(s, m.maybe(value.Value{Form: value.FormRound, N: m.nodes.Number(0), T: t}))
}

const iteratorBytes = 8
