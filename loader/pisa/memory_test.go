package pisa

import (
	"math/rand/v2"
	"testing"
)

// TestMemoryAgainstBytes writes known numbers to random places and reads them back, next to a plain array of
// bytes. What the cells claim to know must be what is there.
func TestMemoryAgainstBytes(t *testing.T) {
	t.Logf("seed %d", *randomSeed)
	r := rand.New(rand.NewPCG(*randomSeed, 11))
	for range 300 {
		ns := newNodes()
		var mem memory
		var bytes [32]byte
		var written [32]bool
		for range 40 {
			size := 1 << r.IntN(4)
			off := r.IntN(33 - size)
			if r.IntN(8) == 0 {
				mem = mem.blur(off, size, taint{}, ns)
				for i := off; i < off+size; i++ {
					bytes[i] = 0xff // no longer known: such a read must not be a constant
				}
				continue
			}
			v := r.Uint64() & 0xfefefefefefefefe // no byte is 0xff
			for i := range size {
				bytes[off+i], written[off+i] = byte(v>>(8*i)), true
			}
			mem = mem.replace(cell{off: off, size: size, v: number(ns.truncate(ns.number(v), uint(size)*8), taint{}), sure: true}, ns)
			checkMemory(t, mem, ns, bytes, written)
		}
	}
}

func checkMemory(t *testing.T, mem memory, ns *nodes, bytes [32]byte, written [32]bool) {
	t.Helper()
	last := -1 << 30
	for _, c := range mem {
		if c.off < last || c.size <= 0 {
			t.Fatalf("cells overlap: %v", mem)
		}
		last = c.end()
	}
	for size := 1; size <= 8; size *= 2 {
		for off := 0; off+size <= 32; off++ {
			v, known, sure := mem.read(off, size, ns)
			all := true
			var want uint64
			for i := range size {
				all = all && written[off+i]
				want |= uint64(bytes[off+i]) << (8 * i)
			}
			if known && v.n.op == opConst && v.n.k != want {
				t.Fatalf("[%d, %d) is %#x, want %#x", off, off+size, v.n.k, want)
			}
			if sure != all || all && !known {
				t.Fatalf("[%d, %d): known %t, sure %t, all written %t", off, off+size, known, sure, all)
			}
		}
	}
}

// TestPointersInMemory: a pointer is read back whole or not at all.
func TestPointersInMemory(t *testing.T) {
	ns := newNodes()
	ptr := value{form: formElement, obj: 3, n: ns.number(0)}
	mem := memory(nil).replace(cell{off: -16, size: 8, v: ptr, sure: true}, ns)
	if v, _, _ := mem.read(-16, 8, ns); v.form != formElement || v.obj != 3 {
		t.Errorf("read back %+v", v)
	}
	for _, place := range []struct{ off, size int }{{-16, 4}, {-12, 4}, {-20, 8}, {-12, 8}} {
		if v, _, _ := mem.read(place.off, place.size, ns); v.isPointer() && v.form != formLost {
			t.Errorf("part of a pointer at %+v is %+v", place, v)
		}
	}
	mem = mem.replace(cell{off: -12, size: 4, v: number(ns.number(0), taint{}), sure: true}, ns)
	if v, _, _ := mem.read(-16, 8, ns); v.form != formLost {
		t.Errorf("an overwritten pointer is %+v", v)
	}
}
