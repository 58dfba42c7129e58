package machine

import (
	"encoding/binary"

	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// shape is everything by which states are not joined: the instruction, the pointers in registers and memory, and the accesses to
// register arrays on the path so far. States of one shape differ in numbers only.
func (m *Machine) shape(s *state.State) string {
	w := shapeWriter{m: m, s: s, buf: make([]byte, 0, 256)}
	w.put(s.PC)
	w.put(len(s.Frames))
	for i := range s.Frames {
		w.put(s.Frames[i].Back)
		w.put(int(expr.Truth(s.Frames[i].Loop)))
	}
	for _, v := range s.Regs[:10] {
		w.value(v)
	}
	w.outcome()
	for i := range s.Frames {
		w.frame(&s.Frames[i])
	}
	w.put(s.Top)
	for i := range s.Access {
		w.access(&s.Access[i])
	}
	return string(w.buf)
}

// outcome separates states by their verdict (a constant) and, where a program recirculates, by what it has compared and written so far.
func (w *shapeWriter) outcome() {
	if len(w.s.Frames) == 1 && w.m.Prog.Ends(w.s.PC) {
		for r, v := range w.s.Regs[:10] {
			if v.IsNumber() && v.N.Op == expr.Const {
				w.put(r)
				w.put(int(v.N.K))
			}
		}
	}
	if w.m.Prog.Recirculates {
		w.flags()
		w.put(int(w.m.carried(w.s)))
		if pass := w.s.Facts.SpanOf(w.m.now(w.s, w.m.env.Vector.Pass)); pass.Single() {
			w.put(int(pass.Lo))
		}
	}
	w.buf = append(w.buf, 0xff)
}

// flags are the constants 0 and 1 in a program's registers, so that states with a request for a second pass are not joined with states without.
func (w *shapeWriter) flags() {
	for r, v := range w.s.Regs[:10] {
		if v.IsNumber() && (v.N.Is(0) || v.N.Is(1)) {
			w.put(r)
			w.put(int(v.N.K))
		}
	}
}

type shapeWriter struct {
	m     *Machine
	s     *state.State
	buf   []byte
	nulls []uint32 // numbered in the order in which they are met
}

func (w *shapeWriter) put(n int) { w.buf = binary.AppendVarint(w.buf, int64(n)) }

func (w *shapeWriter) frame(f *state.Frame) {
	if f.Saved != nil {
		for _, v := range f.Saved {
			w.value(v)
		}
	}
	for _, c := range f.Stack {
		if c.V.IsPointer() && c.V.Form != value.FormLost || c.V.Base != value.Nothing {
			w.put(c.Off)
			w.value(c.V)
		}
	}
	w.put(1) // no offset of a stack is positive: the end of this frame's cells
}

func (w *shapeWriter) value(v value.Value) {
	w.buf = append(w.buf, byte(v.Form), byte(v.Base))
	if !v.IsPointer() {
		return
	}
	w.put(int(v.Obj))
	if v.Form == value.FormElement && w.m.env.Arrays[v.Obj].Last >= w.s.Top {
		w.put(int(v.Lookup))
	}
	w.put(w.nullNumber(v.Null))
}

func (w *shapeWriter) nullNumber(null uint32) int {
	if null == 0 {
		return 0
	}
	for i, known := range w.nulls {
		if known == null {
			return i + 1
		}
	}
	w.nulls = append(w.nulls, null)
	return len(w.nulls)
}

func (w *shapeWriter) access(a *state.Access) {
	w.put(int(a.Array))
	w.buf = append(w.buf, a.Lookups, a.Lookup, a.Written, byte(expr.Truth(a.Touched)))
}
