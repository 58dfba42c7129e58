package machine

import (
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
)

// listed refuses programs of other types, before anything is interpreted.
func (m *Machine) listed(spec *ebpf.ProgramSpec) bool {
	if spec.Type == ebpf.Tracing {
		if spec.AttachType == ebpf.AttachTraceRawTp && len(m.hook.Fields) > 0 {
			return true
		}
		m.fail(0, nil, 1, rule.Unlisted, "programs of type Tracing (%s, %q) are at no trace point of the list: what it shows is not known to be a packet's own", spec.AttachType, spec.AttachTo)
		return false
	}
	if _, ok := allow.Hooks[spec.Type]; ok {
		return true
	}
	m.fail(0, nil, 1, rule.Unlisted, "programs of type %s (%s) are not on the list: what their context shows is not known to be a packet's own", spec.Type,
		spec.AttachType)
	return false
}

// checkVerdict is the end of a program.
func (m *Machine) checkVerdict(s *state.State) {
	t := s.Regs[0].T.With(s.Control)
	m.refuseSecret(s, t.From, "decides the verdict")
	m.refuseAnswer(s, t.From, declared.Set{}, "the verdict")
	code := s.Facts.SpanOf(m.nodes.Truncate(m.asNumber(s.Regs[0]), 32))
	if code.Hi-code.Lo >= 8 {
		m.fail(s.PC, nil, 1, rule.Unlisted, "the verdict is one of many numbers: return constants")
		return
	}
	for k := code.Lo; k <= code.Hi; k++ {
		if !slices.ContainsFunc(m.hook.Verdicts, func(v allow.Verdict) bool { return uint64(v.Code) == k }) {
			m.refuseVerdict(s, uint32(k))
			return
		}
	}
}

func (m *Machine) refuseVerdict(s *state.State, code uint32) {
	if name, ok := allow.RefusedVerdicts[m.Prog.Hook][code]; ok {
		m.refuse(s, allow.GoesRound, "the verdict may be %s", name)
		return
	}
	m.fail(s.PC, nil, 1, rule.Unlisted, "the verdict may be %d, which is not one of %s", int32(code), m.hook.VerdictNames())
}
