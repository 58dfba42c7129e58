package pisa

import "encoding/binary"

// shape is everything about a state that keeps it apart from others: where it is, which pointers it holds
// and which accesses to register arrays lie behind it. States of one shape differ in numbers only.
func (m *machine) shape(s *state) string {
	w := shapeWriter{m: m, s: s, buf: make([]byte, 0, 256)}
	w.put(s.pc)
	w.put(len(s.frames))
	for i := range s.frames {
		w.put(s.frames[i].back)
		w.put(int(truth(s.frames[i].loop)))
	}
	for _, v := range s.regs[:10] {
		w.value(v)
	}
	w.outcome()
	for i := range s.frames {
		w.frame(&s.frames[i])
	}
	w.put(s.top)
	for i := range s.access {
		w.access(&s.access[i])
	}
	return string(w.buf)
}

// outcome tells verdicts apart, which are constants, and what a program that recirculates has found out and written by then.
func (w *shapeWriter) outcome() {
	if len(w.s.frames) == 1 && w.m.prog.ends(w.s.pc) {
		for r, v := range w.s.regs[:10] {
			if v.isNumber() && v.n.op == opConst {
				w.put(r)
				w.put(int(v.n.k))
			}
		}
	}
	if w.m.prog.recirculates {
		w.flags()
		w.put(int(w.m.carried(w.s)))
		if pass := w.s.facts.spanOf(w.m.now(w.s, w.m.env.vector.pass)); pass.single() {
			w.put(int(pass.lo))
		}
	}
	w.buf = append(w.buf, 0xff)
}

// flags are what a program remembers in registers, so that what goes with a wish for a second pass is not mixed up with what goes
// without.
func (w *shapeWriter) flags() {
	for r, v := range w.s.regs[:10] {
		if v.isNumber() && (v.n.is(0) || v.n.is(1)) {
			w.put(r)
			w.put(int(v.n.k))
		}
	}
}

type shapeWriter struct {
	m     *machine
	s     *state
	buf   []byte
	nulls []uint32 // numbered in the order in which they are met
}

func (w *shapeWriter) put(n int) { w.buf = binary.AppendVarint(w.buf, int64(n)) }

func (w *shapeWriter) frame(f *frame) {
	if f.saved != nil {
		for _, v := range f.saved {
			w.value(v)
		}
	}
	for _, c := range f.stack {
		if c.v.isPointer() && c.v.form != formLost || c.v.base != nothing {
			w.put(c.off)
			w.value(c.v)
		}
	}
	w.put(1) // no offset of a stack is positive: the end of this frame's cells
}

func (w *shapeWriter) value(v value) {
	w.buf = append(w.buf, byte(v.form)|byte(v.base)<<4)
	if !v.isPointer() {
		return
	}
	w.put(int(v.obj))
	if v.form == formElement && w.m.env.arrays[v.obj].stage >= w.s.top {
		w.put(int(v.lookup))
	}
	w.put(w.nullNumber(v.null))
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

func (w *shapeWriter) access(a *access) {
	w.put(int(a.array))
	w.buf = append(w.buf, a.lookups, a.lookup, a.written, byte(truth(a.touched)))
}
