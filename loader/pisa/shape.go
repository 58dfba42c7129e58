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
	for i := range s.frames {
		w.frame(&s.frames[i])
	}
	w.put(s.top)
	for i := range s.access {
		w.access(&s.access[i])
	}
	return string(w.buf)
}

type shapeWriter struct {
	m     *machine
	s     *state
	buf   []byte
	nulls []uint32 // numbered in the order in which they are met
}

func (w *shapeWriter) put(n int) { w.buf = binary.AppendVarint(w.buf, int64(n)) }

func (w *shapeWriter) frame(f *frame) {
	for _, v := range f.saved {
		w.value(v)
	}
	for _, c := range f.stack {
		if c.v.isPointer() && c.v.form != formLost {
			w.put(c.off)
			w.value(c.v)
		}
	}
	w.put(1) // no offset of a stack is positive: the end of this frame's cells
}

func (w *shapeWriter) value(v value) {
	w.buf = append(w.buf, byte(v.form))
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
