package machine

import (
	"strings"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// refuse records that something is not on a list; known is the reason, where one is listed.
func (m *Machine) refuse(s *state.State, known allow.Refusal, format string, args ...any) {
	if known.Rule == 0 {
		known = allow.Refusal{Rule: 1, Code: rule.Unlisted, Why: "it is not known to be without state"}
	}
	m.fail(s.PC, nil, known.Rule, known.Code, format+": "+strings.ReplaceAll(known.Why, "%", "%%"), args...)
}

// refused is the result of a refused call: a value of which later accesses report nothing more.
func (m *Machine) refused() value.Value {
	out := value.Number(m.nodes.Leaf(expr.Anything), value.FromPacket)
	out.Base = value.InPacket
	return out
}
