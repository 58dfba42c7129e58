package maps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestReadEveryShape: elements of every size, with one copy or one for each core, are read as they were written, from each bank separately, with
// banks of several batches, and from one part of a map; ReadReset leaves zeros only in the bank that it reads.
func TestReadEveryShape(t *testing.T) {
	testutil.NeedRoot(t)
	for _, kind := range []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray} {
		for _, size := range []uint32{4, 8, 12, 16, 24, 40, 512} {
			t.Run(fmt.Sprintf("%v of %d bytes", kind, size), func(t *testing.T) { readShape(t, kind, size) })
			t.Run(fmt.Sprintf("parts of %v of %d bytes", kind, size), func(t *testing.T) { readParts(t, kind, kind, size, 0) })
		}
	}
	for _, size := range []uint32{4, 8, 12, 16, 24, 40, 512} {
		t.Run(fmt.Sprintf("parts of a spread array of %d bytes", size), func(t *testing.T) { readParts(t, ebpf.PerCPUArray, ebpf.Array, size, 0) })
		for _, kind := range []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray} {
			t.Run(fmt.Sprintf("parts of %v of %d bytes that can be mapped", kind, size), func(t *testing.T) {
				readParts(t, kind, ebpf.Array, size, unix.BPF_F_MMAPABLE)
			})
		}
	}
}

// shaped is an array and the words that were written to it.
type shaped struct {
	a      *Array
	copies int
	want   [2][]uint64 // by bank
}

func readShape(t *testing.T, kind ebpf.MapType, size uint32) {
	const entries = batchEntries + 1000 // of each bank: two batches
	spec := shapeOf(kind, size, entries)
	m := newMap(t, spec)
	set := NewSet(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"shaped": spec}}, map[string]*ebpf.Map{"shaped": m})
	exercise(t, arrayOf(t, set, "shaped"), m, entries, size)
}

func shapeOf(kind ebpf.MapType, size, entries uint32) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "shaped", Type: kind, KeySize: 4, ValueSize: size, MaxEntries: 2 * entries, Tags: []string{TagRegister, TagBanked}}
}

// readParts has three instances in one map, works on the second one, and finds the others unchanged; Clear leaves zeros in its own part only. held is
// the type of the map that holds their arrays.
func readParts(t *testing.T, kind, held ebpf.MapType, size, flags uint32) {
	const entries, parts = 300, 3
	spec := shapeOf(kind, size, entries)
	wide := spec.Copy()
	wide.MaxEntries, wide.Flags = parts*wide.MaxEntries, flags
	if wide.Type = held; held != kind {
		wide.MaxEntries *= uint32(PossibleCPUs())
	}
	m := newMap(t, wide)
	var of [parts]*shaped
	var sets [parts]*Set
	r := rand.New(rand.NewPCG(uint64(size), 17))
	for n := range of {
		sets[n] = NewPart(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"shaped": spec}}, map[string]*ebpf.Map{"shaped": m}, n,
			func(*ebpf.MapSpec) bool { return false })
		if n == 1 {
			continue
		}
		of[n] = newShaped(arrayOf(t, sets[n], "shaped"))
		for _, e := range []int{0, entries - 1} {
			of[n].write(t, r, m, 0, e)
			of[n].write(t, r, m, 1, e)
		}
	}
	if can := arrayOf(t, sets[1], "shaped").mappable(); can != (flags != 0 && size != 12) {
		t.Fatalf("mapped: %t", can)
	}
	middle := exercise(t, arrayOf(t, sets[1], "shaped"), m, entries, size)
	check := func() {
		t.Helper()
		for _, s := range []*shaped{of[0], of[2], middle} {
			s.check(t, 0)
			s.check(t, 1)
		}
	}
	check()
	if !middle.a.PerCPU && size <= 8 {
		if err := middle.a.Put([]uint32{7}, []uint64{9}); err != nil {
			t.Fatal(err)
		}
		middle.want[0][7] = 9
		check()
	}
	if err := sets[1].Clear(); err != nil {
		t.Fatal(err)
	}
	clear(middle.want[0])
	clear(middle.want[1])
	check()
}

func newShaped(a *Array) *shaped {
	s := &shaped{a: a, copies: a.copies()}
	for bank := range s.want {
		s.want[bank] = make([]uint64, a.Words())
	}
	return s
}

// exercise writes elements at the edges and elsewhere, reads them, and empties one bank.
func exercise(t *testing.T, a *Array, m *ebpf.Map, entries int, size uint32) *shaped {
	t.Helper()
	s := newShaped(a)
	if a.Entries != entries || a.Words() != entries*int((size+7)/8) {
		t.Fatalf("%d entries, %d words", a.Entries, a.Words())
	}
	r := rand.New(rand.NewPCG(uint64(size), 16))
	for _, e := range []int{0, 1, min(batchEntries, entries) - 1, min(batchEntries, entries-1), entries - 1, r.IntN(entries), r.IntN(entries)} {
		for bank := range s.want {
			s.write(t, r, m, bank, e)
		}
	}
	s.check(t, 0)
	s.check(t, 1)
	t.Logf("in batches: %t", !a.unsupported)
	if _, err := a.ReadReset(1, nil); err != nil {
		t.Fatal(err)
	}
	clear(s.want[1])
	s.check(t, 0)
	s.check(t, 1)
	return s
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
	key := s.a.key(uint32(bank*s.a.Entries + e))
	if m.Type() == ebpf.PerCPUArray {
		if err := m.Update(key, values, ebpf.UpdateAny); err != nil {
			t.Fatal(err)
		}
		return
	}
	for cpu, value := range values { // one, or those of a spread array
		if err := m.Update(key+uint32(cpu*s.a.Banks*s.a.Entries), value, ebpf.UpdateAny); err != nil {
			t.Fatal(err)
		}
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

// TestWordsOfARow: interleaved per-CPU arrays are read and written one at a time, and together as rows; words that are cut off are missing in the map
// and in its names.
func TestWordsOfARow(t *testing.T) {
	testutil.NeedRoot(t)
	element := &btf.Struct{Name: "row_t", Size: 32, Members: []btf.Member{{Name: "of", Type: &btf.Array{Index: word32, Type: word64, Nelems: 4}}}}
	spec := &ebpf.MapSpec{Name: "row", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 32, MaxEntries: 6, Key: word32, Value: element,
		Tags: []string{TagRegister, TagBanked, "pisa:arrays=row_c@6,row_k0@1,row_k1@2,row_k2@3"}}
	collection := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"row": spec}}
	if err := SetWords(collection, "row", 3); err != nil || spec.ValueSize != 24 {
		t.Fatalf("cut to %d bytes: %v", spec.ValueSize, err)
	}
	if places := Places("row", spec); len(places) != 3 || places[2] != (Place{"row_k1", 2, 8}) || MapOf(collection, "row_k1") != spec || MapOf(collection, "row_k2") != nil {
		t.Errorf("arrays %v", places)
	}
	if err := SetWords(collection, "row", 4); !errors.Is(err, ErrWords) {
		t.Errorf("a word that was cut off can be added again: %v", err)
	}
	t.Run("of each CPU", func(t *testing.T) { useWords(t, NewSet(collection, map[string]*ebpf.Map{"row": newMap(t, spec)})) })
	spread := spec.Copy()
	spread.Type, spread.MaxEntries = ebpf.Array, 2*spec.MaxEntries*uint32(PossibleCPUs())
	t.Run("spread", func(t *testing.T) {
		useWords(t, NewPart(collection, map[string]*ebpf.Map{"row": newMap(t, spread)}, 1, func(*ebpf.MapSpec) bool { return false }))
	})
}

func useWords(t *testing.T, set *Set) {
	t.Helper()
	count, key, rows := arrayOf(t, set, "row_c"), arrayOf(t, set, "row_k1"), arrayOf(t, set, "row")
	last := PossibleCPUs() - 1
	if err := errors.Join(count.PutCPU(0, 1, 0, 5), count.PutCPU(last, 1, 0, 6), key.PutCPU(last, 1, 0, 7), key.PutCPU(last, 4, 0, 8)); err != nil {
		t.Fatal(err)
	}
	if v, err := key.AtCPU(last, 1); err != nil || v != 7 {
		t.Errorf("word %d, %v", v, err)
	}
	if copies, err := count.ReadPerCPU(0); err != nil || copies[last][1] != 6 || copies[last][0] != 0 {
		t.Errorf("column %v, %v", copies, err)
	}
	copies, err := rows.ReadResetPerCPU(0)
	if err != nil || !slices.Equal(copies[last], []uint64{0, 0, 0, 6, 0, 7, 0, 0, 0}) || last > 0 && copies[0][3] != 5 {
		t.Errorf("rows %v, %v", copies, err)
	}
	if words, err := count.Read(0, nil); err != nil || words[1] != 0 {
		t.Errorf("%v are left, %v", words, err)
	}
	if words, err := key.ReadReset(1, nil); err != nil || words[1] != 8 {
		t.Errorf("the other bank has %v, %v", words, err)
	}
	if words, err := key.Read(1, nil); err != nil || words[1] != 0 {
		t.Errorf("%v are left of one word, %v", words, err)
	}
}

var word32, word64 = &btf.Int{Name: "__u32", Size: 4}, &btf.Int{Name: "__u64", Size: 8}

func arrayOf(t *testing.T, set *Set, name string) *Array {
	t.Helper()
	a, err := set.Array(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
