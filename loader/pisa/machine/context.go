package machine

import (
	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// loadContext reads a word of the context.
func (m *Machine) loadContext(s *state.State, ptr value.Value, size int) value.Value {
	out := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), s.Outside.With(value.FromPacket).With(m.trace.Of(trace.Context)))
	off, ok := m.contextOffset(ptr)
	f, listed := m.hook.FieldAt(off, size)
	if !ok || !listed {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%d bytes of the context at offset %d are read: they are no field of the list (%s)", size, off, allow.FieldNames(m.hook.Fields))
		return out
	}
	if f.Shows != value.Nothing {
		out.N, out.Base = m.nodes.Leaf(expr.Anything), f.Shows
	}
	return out
}

// writeContext allows the fields by which a program passes data of this packet to later programs: they belong to the packet.
func (m *Machine) writeContext(s *state.State, ptr value.Value, size int) {
	off, ok := m.contextOffset(ptr)
	if f, listed := m.hook.WrittenAt(off, size); !ok || !listed {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%d bytes of the context at offset %d are written: they are no field of the list", size, off)
	} else if f.Shows != value.Nothing {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%s of the context is written", f.Name)
	}
}

// loadKernel reads an argument of a trace point: fields of the list, named as in the loader's relocations.
func (m *Machine) loadKernel(s *state.State, ptr value.Value, in *code.Insn, size int) value.Value {
	out := value.Number(m.nodes.Leaf(expr.Below(uint(size)*8)), s.Outside.With(value.FromPacket).With(m.trace.Of(trace.Kernel)))
	f, listed := allow.KernelFieldOf(ptr.Base, in.Field)
	if !listed {
		m.fail(s.PC, nil, 1, rule.Unlisted, "memory of the kernel is read (%q): it is no field of the list", in.Field)
		return out
	}
	if f.Leads != value.Nothing {
		out.N, out.Base = m.nodes.Leaf(expr.Anything), f.Leads
	}
	return out
}

// copyKernel checks source and length of bpf_probe_read_kernel.
func (m *Machine) copyKernel(s *state.State, from value.Value, length expr.Span) {
	if most := allow.KernelBytes(from.Base); uint64(most) < length.Hi {
		m.fail(s.PC, nil, 1, rule.Unlisted, "%d bytes of the kernel's memory are copied from where %d may be", length.Hi, most)
	}
}

// contextOffset is the distance in bytes of a pointer from the start of the context.
func (m *Machine) contextOffset(ptr value.Value) (int, bool) {
	switch n := ptr.N; {
	case n == m.context:
		return 0, true
	case n.Op == expr.Add && n.A == m.context && n.B.Op == expr.Const:
		return int(int64(n.B.K)), true
	}
	return -1, false
}
