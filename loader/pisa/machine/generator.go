package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// A generator's state advances by an invertible linear map of its bits, as in xorshift and shift registers. Its only information is the
// position in a cycle that does not depend on packets, so no sum and no set of flows can be stored in it. The stored expression consists
// of exclusive-ors and constant shifts of one number: the images of single bits determine it.

// storeRandom refuses any change of a generator's state that is not a step.
func (m *Machine) storeRandom(s *state.State, a *declared.Array, ptr value.Value, size int, v value.Value) {
	m.refuseAnswer(s, v.T.From, declared.Set{}, "a step of "+a.Name)
	strange := v.T.From.Without(s.Control.From.Or(a.Bit).Or(declared.Chance))
	switch {
	case !strange.Empty():
		m.fail(s.PC, a, 1, rule.FlowState, "the state of a generator is set to something that is not made from generators alone")
	case size != int(a.Spec.ValueSize) || !v.IsNumber() || !expr.IsStep(v.N, 8*size):
		m.fail(s.PC, a, 1, rule.FlowState, "a generator does not move on by an invertible linear step (xorshift) of its whole state")
	case !v.T.From.Meets(declared.Chance):
		m.fail(s.PC, a, 1, rule.FlowState, "a generator is never renewed from bpf_get_prandom_u32: its state would count its steps")
	}
}
