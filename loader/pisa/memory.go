package pisa

import "slices"

const stackSize = 512

// cell is what is known of some bytes of a memory that belongs to one packet: a stack frame (offsets are
// negative) or scratch memory.
type cell struct {
	off, size int
	v         value
	sure      bool // written on every path that leads here
}

func (c cell) end() int { return c.off + c.size }

// memory is a sorted list of cells that do not overlap. A slice is never changed once it is in a state.
type memory []cell

// around are the indices of the cells that overlap [off, off+size).
func (m memory) around(off, size int) (from, to int) {
	from, _ = slices.BinarySearchFunc(m, off, func(c cell, off int) int {
		if c.end() <= off {
			return -1
		}
		return 1
	})
	for to = from; to < len(m) && m[to].off < off+size; to++ {
	}
	return from, to
}

// replace puts c in the place of whatever it overlaps; what sticks out on either side is kept.
func (m memory) replace(c cell, ns *nodes) memory {
	from, to := m.around(c.off, c.size)
	out := make(memory, 0, len(m)+2)
	out = append(out, m[:from]...)
	if from < to && m[from].off < c.off {
		out = append(out, m[from].part(m[from].off, c.off-m[from].off, ns))
	}
	out = append(out, c)
	if from < to && m[to-1].end() > c.end() {
		out = append(out, m[to-1].part(c.end(), m[to-1].end()-c.end(), ns))
	}
	return append(out, m[to:]...)
}

// part is a piece of a cell. Of a pointer no piece is usable.
func (c cell) part(off, size int, ns *nodes) cell {
	out := cell{off: off, size: size, sure: c.sure, v: value{form: formLost, t: c.v.t}}
	switch {
	case off == c.off && size == c.size:
		return c
	case c.v.form == formNone:
		out.v.form = formNone
	case !c.v.isNumber():
	case c.size <= 8:
		n := ns.binary(opShr, c.v.n, ns.number(uint64(off-c.off)*8))
		out.v = number(ns.truncate(n, uint(size)*8), c.v.t)
	default:
		out.v = number(ns.leaf(below(uint(size)*8)), c.v.t)
	}
	return out
}

// read is what the cells say of [off, off+size). known is false when none of it was written.
func (m memory) read(off, size int, ns *nodes) (v value, known, sure bool) {
	from, to := m.around(off, size)
	if from == to {
		return value{}, false, false
	}
	if c := m[from]; c.off <= off && off+size <= c.end() {
		c = c.part(off, size, ns)
		return c.v, true, c.sure
	}
	v = number(ns.leaf(below(uint(size)*8)), taint{})
	covered := 0
	sure = true
	for _, c := range m[from:to] {
		v.t = v.t.with(c.v.t)
		sure = sure && c.sure
		covered += min(c.end(), off+size) - max(c.off, off)
		if c.v.isPointer() && size == 8 {
			v.form = formLost
		}
	}
	return v, true, sure && covered == size
}

// sure says whether all of [off, off+size) was written on every path that leads here.
func (m memory) sure(off, size int) bool {
	from, to := m.around(off, size)
	at := off
	for _, c := range m[from:to] {
		if c.off > at || !c.sure {
			return false
		}
		at = c.end()
	}
	return at >= off+size
}

// gaps are the ranges of [off, off+size) that no cell covers.
func (m memory) gaps(off, size int) (out []cell) {
	from, to := m.around(off, size)
	at := off
	for _, c := range m[from:to] {
		if c.off > at {
			out = append(out, cell{off: at, size: c.off - at})
		}
		at = c.end()
	}
	if at < off+size {
		out = append(out, cell{off: at, size: off + size - at})
	}
	return out
}

// blur says that any of the bytes in [off, off+size) may have been overwritten with something that
// depends on t.
func (m memory) blur(off, size int, t taint, ns *nodes) memory {
	out := slices.Clone(m)
	from, to := out.around(off, size)
	for i := from; i < to; i++ {
		c := &out[i]
		if c.v.form != formNone {
			c.v = unknown(c.v, c.size, t, ns)
		}
	}
	for _, gap := range m.gaps(off, size) {
		gap.v = number(ns.leaf(below(uint(gap.size)*8)), t)
		out = out.replace(gap, ns)
	}
	return out
}

func unknown(v value, size int, t taint, ns *nodes) value {
	t = v.t.with(t)
	if v.isPointer() {
		return value{form: formLost, t: t}
	}
	return number(ns.leaf(below(uint(size)*8)), t)
}
