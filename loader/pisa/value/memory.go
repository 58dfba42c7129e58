package value

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/expr"
)

// Cell is what is known of some bytes of a memory that belongs to one packet: a stack frame (offsets are
// negative) or scratch memory.
type Cell struct {
	Off, Size int
	V         Value
	Sure      bool // written on every path that leads here
}

func (c Cell) end() int { return c.Off + c.Size }

// Memory is a sorted list of cells that do not overlap. A slice is never changed once it is in a state.
type Memory []Cell

// Around are the indices of the cells that overlap [off, off+size).
func (m Memory) Around(off, size int) (from, to int) {
	from, _ = slices.BinarySearchFunc(m, off, func(c Cell, off int) int {
		if c.end() <= off {
			return -1
		}
		return 1
	})
	for to = from; to < len(m) && m[to].Off < off+size; to++ {
	}
	return from, to
}

// Replace replaces the bytes of c; parts of overlapping cells outside of c stay.
func (m Memory) Replace(c Cell, ns *expr.Nodes) Memory {
	from, to := m.Around(c.Off, c.Size)
	out := make(Memory, 0, len(m)+2)
	out = append(out, m[:from]...)
	if from < to && m[from].Off < c.Off {
		out = append(out, m[from].part(m[from].Off, c.Off-m[from].Off, ns))
	}
	out = append(out, c)
	if from < to && m[to-1].end() > c.end() {
		out = append(out, m[to-1].part(c.end(), m[to-1].end()-c.end(), ns))
	}
	return append(out, m[to:]...)
}

// part is a piece of a cell. Of a pointer no piece is usable.
func (c Cell) part(off, size int, ns *expr.Nodes) Cell {
	out := Cell{Off: off, Size: size, Sure: c.Sure, V: Value{Form: FormLost, T: c.V.T}}
	switch {
	case off == c.Off && size == c.Size:
		return c
	case c.V.Form == FormNone:
		out.V.Form = FormNone
	case !c.V.IsNumber():
	case c.Size <= 8:
		n := ns.Binary(expr.Shr, c.V.N, ns.Number(uint64(off-c.Off)*8))
		out.V = Number(ns.Truncate(n, uint(size)*8), c.V.T)
	default:
		out.V = Number(ns.Leaf(expr.Below(uint(size)*8)), c.V.T)
	}
	return out
}

// Read returns the content of [off, off+size) by the cells. known is false when none of it was written.
func (m Memory) Read(off, size int, ns *expr.Nodes) (v Value, known, sure bool) {
	from, to := m.Around(off, size)
	if from == to {
		return Value{}, false, false
	}
	if c := m[from]; c.Off <= off && off+size <= c.end() {
		c = c.part(off, size, ns)
		return c.V, true, c.Sure
	}
	v = Number(ns.Leaf(expr.Below(uint(size)*8)), Taint{})
	covered := 0
	sure = true
	for _, c := range m[from:to] {
		v.T = v.T.With(c.V.T)
		sure = sure && c.Sure
		covered += min(c.end(), off+size) - max(c.Off, off)
		if c.V.IsPointer() && size == 8 {
			v.Form = FormLost
		}
	}
	return v, true, sure && covered == size
}

// Sure reports whether all of [off, off+size) was written on every path that leads here.
func (m Memory) Sure(off, size int) bool {
	from, to := m.Around(off, size)
	at := off
	for _, c := range m[from:to] {
		if c.Off > at || !c.Sure {
			return false
		}
		at = c.end()
	}
	return at >= off+size
}

// Gaps are the ranges of [off, off+size) that no cell covers.
func (m Memory) Gaps(off, size int) (out []Cell) {
	from, to := m.Around(off, size)
	at := off
	for _, c := range m[from:to] {
		if c.Off > at {
			out = append(out, Cell{Off: at, Size: c.Off - at})
		}
		at = c.end()
	}
	if at < off+size {
		out = append(out, Cell{Off: at, Size: off + size - at})
	}
	return out
}

// Blur records that any of the bytes in [off, off+size) may have been overwritten with something that
// depends on t.
func (m Memory) Blur(off, size int, t Taint, ns *expr.Nodes) Memory {
	out := slices.Clone(m)
	from, to := out.Around(off, size)
	for i := from; i < to; i++ {
		c := &out[i]
		if c.V.Form != FormNone {
			c.V = unknown(c.V, c.Size, t, ns)
		}
	}
	for _, gap := range m.Gaps(off, size) {
		gap.V = Number(ns.Leaf(expr.Below(uint(gap.Size)*8)), t)
		out = out.Replace(gap, ns)
	}
	return out
}

func unknown(v Value, size int, t Taint, ns *expr.Nodes) Value {
	t = v.T.With(t)
	if v.IsPointer() {
		return Value{Form: FormLost, T: t}
	}
	return Number(ns.Leaf(expr.Below(uint(size)*8)), t)
}
