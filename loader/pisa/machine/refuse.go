package machine

import (
	"strings"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// refuse says that something is not on a list; known is what is known of it.
func (m *Machine) refuse(s *state.State, known allow.Refusal, format string, args ...any) {
	if known.Rule == 0 {
		known = allow.Refusal{Rule: 1, Code: rule.Unlisted, Why: "what is not known to be without state may keep some"}
	}
	m.fail(s.PC, nil, known.Rule, known.Code, format+": "+strings.ReplaceAll(known.Why, "%", "%%"), args...)
}

// refused is the result of a call that was refused: whatever it points to, no more is said of it.
func (m *Machine) refused() value.Value {
	out := value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket)
	out.Base = value.InPacket
	return out
}
