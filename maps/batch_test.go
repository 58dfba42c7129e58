package maps

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestReadEveryShape: words of elements of every size, one copy or one a core, come out as they were written, of each bank alone, where a bank takes
// several batches; ReadReset leaves zeros in the bank that it reads and nowhere else.
func TestReadEveryShape(t *testing.T) {
	testutil.NeedRoot(t)
	for _, kind := range []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray} {
		for _, size := range []uint32{4, 8, 12, 16, 24, 40, 512} {
			t.Run(fmt.Sprintf("%v of %d bytes", kind, size), func(t *testing.T) { readShape(t, kind, size) })
		}
	}
}

// shaped is an array and what was written into it.
type shaped struct {
	a      *Array
	copies int
	want   [2][]uint64 // by bank
}

func readShape(t *testing.T, kind ebpf.MapType, size uint32) {
	const entries = 5000 // in each of two banks: 10,000 are two batches
	spec := &ebpf.MapSpec{Name: "shaped", Type: kind, KeySize: 4, ValueSize: size, MaxEntries: 2 * entries, Tags: []string{TagRegister, TagBanked}}
	m := newMap(t, spec)
	set := NewSet(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"shaped": spec}}, map[string]*ebpf.Map{"shaped": m})
	a, err := set.Array("shaped")
	if err != nil {
		t.Fatal(err)
	}
	s := &shaped{a: a, copies: a.copies()}
	for bank := range s.want {
		s.want[bank] = make([]uint64, a.Words())
	}
	if a.Entries != entries || a.Words() != entries*int((size+7)/8) {
		t.Fatalf("%d entries, %d words", a.Entries, a.Words())
	}
	r := rand.New(rand.NewPCG(uint64(size), 16))
	for _, e := range []int{0, 1, batchEntries - entries - 1, batchEntries - entries, entries - 1, r.IntN(entries), r.IntN(entries)} {
		for bank := range s.want {
			s.write(t, r, m, bank, e)
		}
	}
	s.check(t, 0)
	s.check(t, 1)
	t.Logf("in batches: %t", !a.scratch.unsupported && a.scratch.keys != nil)
	if _, err := a.ReadReset(1, nil); err != nil {
		t.Fatal(err)
	}
	clear(s.want[1])
	s.check(t, 0)
	s.check(t, 1)
}

// write an element, another one on each core.
func (s *shaped) write(t *testing.T, r *rand.Rand, m *ebpf.Map, bank, e int) {
	t.Helper()
	w := s.a.wordsPerElement()
	sum := s.want[bank][e*w : (e+1)*w]
	clear(sum)
	values := make([][]byte, s.copies)
	for i := range values {
		b := make([]byte, 8*w)
		for j := range w {
			v := r.Uint64N(1 << 30)
			binary.NativeEndian.PutUint64(b[8*j:], v)
			sum[j] += v
		}
		values[i] = b[:s.a.ElemSize]
	}
	var value any = values
	if !s.a.PerCPU {
		value = values[0]
	}
	if err := m.Update(uint32(bank*s.a.Entries+e), value, ebpf.UpdateAny); err != nil {
		t.Fatal(err)
	}
}

func (s *shaped) check(t *testing.T, bank int) {
	t.Helper()
	got, err := s.a.Read(bank, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != s.want[bank][i] {
			t.Fatalf("bank %d: word %d is %d, want %d", bank, i, v, s.want[bank][i])
		}
	}
}
