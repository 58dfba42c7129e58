package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// loadContext reads a word of the context.
func (m *Machine) loadContext(s *state.State, ptr value.Value, size int) value.Value {
	out := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), s.Outside.With(value.FromPacket))
	off, ok := m.contextOffset(ptr)
	f, listed := m.hook.FieldAt(off, size)
	if !ok || !listed {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%d bytes of the context at offset %d are read: they are no field of the list", size, off)
		return out
	}
	if f.Packet {
		out.N, out.Base = m.nodes.Leaf(expr.Anything), value.InPacket
	}
	return out
}

// contextOffset is how far behind the start of the context a pointer is.
func (m *Machine) contextOffset(ptr value.Value) (int, bool) {
	switch n := ptr.N; {
	case n == m.context:
		return 0, true
	case n.Op == expr.Add && n.A == m.context && n.B.Op == expr.Const:
		return int(int64(n.B.K)), true
	}
	return -1, false
}
