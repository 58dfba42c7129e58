package value

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/loader/pisa/expr"
)

var seed = flag.Uint64("pisa.seed", 1, "seed of the random cases")

// TestMemoryAgainstBytes writes known numbers to random places and reads them back, next to a plain array of
// bytes. What the cells claim to know must be what is there.
func TestMemoryAgainstBytes(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 11))
	for range 300 {
		ns := expr.NewNodes()
		var mem Memory
		var bytes [32]byte
		var written [32]bool
		for range 40 {
			size := 1 << r.IntN(4)
			off := r.IntN(33 - size)
			if r.IntN(8) == 0 {
				mem = mem.Blur(off, size, Taint{}, ns)
				for i := off; i < off+size; i++ {
					bytes[i] = 0xff // no longer known: such a read must not be a constant
				}
				continue
			}
			v := r.Uint64() & 0xfefefefefefefefe // no byte is 0xff
			for i := range size {
				bytes[off+i], written[off+i] = byte(v>>(8*i)), true
			}
			mem = mem.Replace(Cell{Off: off, Size: size, V: Number(ns.Truncate(ns.Number(v), uint(size)*8), Taint{}), Sure: true}, ns)
			checkMemory(t, mem, ns, bytes, written)
		}
	}
}

func checkMemory(t *testing.T, mem Memory, ns *expr.Nodes, bytes [32]byte, written [32]bool) {
	t.Helper()
	last := -1 << 30
	for _, c := range mem {
		if c.Off < last || c.Size <= 0 {
			t.Fatalf("cells overlap: %v", mem)
		}
		last = c.end()
	}
	for size := 1; size <= 8; size *= 2 {
		for off := 0; off+size <= 32; off++ {
			v, known, sure := mem.Read(off, size, ns)
			all := true
			var want uint64
			for i := range size {
				all = all && written[off+i]
				want |= uint64(bytes[off+i]) << (8 * i)
			}
			if known && v.N.Op == expr.Const && v.N.K != want {
				t.Fatalf("[%d, %d) is %#x, want %#x", off, off+size, v.N.K, want)
			}
			if sure != all || all && !known {
				t.Fatalf("[%d, %d): known %t, sure %t, all written %t", off, off+size, known, sure, all)
			}
		}
	}
}

// TestPointersInMemory: a pointer is read back whole or not at all.
func TestPointersInMemory(t *testing.T) {
	ns := expr.NewNodes()
	ptr := Value{Form: FormElement, Obj: 3, N: ns.Number(0)}
	mem := Memory(nil).Replace(Cell{Off: -16, Size: 8, V: ptr, Sure: true}, ns)
	if v, _, _ := mem.Read(-16, 8, ns); v.Form != FormElement || v.Obj != 3 {
		t.Errorf("read back %+v", v)
	}
	for _, place := range []struct{ off, size int }{{-16, 4}, {-12, 4}, {-20, 8}, {-12, 8}} {
		if v, _, _ := mem.Read(place.off, place.size, ns); v.IsPointer() && v.Form != FormLost {
			t.Errorf("part of a pointer at %+v is %+v", place, v)
		}
	}
	mem = mem.Replace(Cell{Off: -12, Size: 4, V: Number(ns.Number(0), Taint{}), Sure: true}, ns)
	if v, _, _ := mem.Read(-16, 8, ns); v.Form != FormLost {
		t.Errorf("an overwritten pointer is %+v", v)
	}
}
