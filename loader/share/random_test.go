package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// arrays that random programs use: one element, a power of two and not, all sizes of element, one for all cores and one a core, spread and not.
var arrays = map[string]*ebpf.MapSpec{
	"single": {Type: ebpf.Array, ValueSize: 8, MaxEntries: 1},
	"odd":    {Type: ebpf.Array, ValueSize: 8, MaxEntries: 7},
	"even":   {Type: ebpf.PerCPUArray, ValueSize: 16, MaxEntries: 16, Tags: []string{tagTally}},
	"uneven": {Type: ebpf.PerCPUArray, ValueSize: 8, MaxEntries: 21, Tags: []string{tagRegister}},
	"few":    {Type: ebpf.PerCPUArray, ValueSize: 16, MaxEntries: 3, Tags: []string{tagTally}},
	"other":  {Type: ebpf.PerCPUArray, ValueSize: 8, MaxEntries: 17},
	"words":  {Type: ebpf.Array, ValueSize: 4, MaxEntries: 64},
	"vector": {Type: ebpf.PerCPUArray, ValueSize: 32, MaxEntries: 1, Tags: []string{tagScratch}},
}

const (
	ringName  = "ring"
	ringBytes = 4096 * 16
	instances = 5
)

func mapSpecs() map[string]*ebpf.MapSpec {
	all := map[string]*ebpf.MapSpec{ringName: {Name: ringName, Type: ebpf.RingBuf, MaxEntries: ringBytes}}
	for name, ms := range arrays {
		all[name] = ms.Copy()
		all[name].Name, all[name].KeySize = name, 4
	}
	return all
}

// author writes a random function. Its words on the stack are all written at the beginning and all read at the end, so that an overwritten one is found.
type author struct {
	*rand.Rand
	depth int16 // bytes of its stack, negative: words, then a key, then a stored pointer
	subs  []string
	label int
	own   string
}

var names = []string{"single", "odd", "even", "uneven", "few", "other", "words", "vector"} // the vector, which all share, is last

func (a *author) value() asm.Register { return asm.R6 + asm.Register(a.IntN(3)) }

// word is a place on the stack that holds a number; the two lowest ones hold a key and a pointer.
func (a *author) word() int16 { return -8 * int16(1+a.IntN(int(-a.depth/8)-2)) }

func (a *author) key() int16     { return a.depth + 8 }
func (a *author) pointer() int16 { return a.depth }

// fresh is an unused label.
func (a *author) fresh() string {
	a.label++
	return fmt.Sprintf("%s_%d", a.own, a.label)
}

// mix takes a register into another.
func mix(into, from asm.Register) asm.Instructions {
	return asm.Instructions{asm.Mul.Imm(into, 31), asm.Add.Reg(into, from)}
}

func at(off int16, reg asm.Register) asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(reg, asm.R10), asm.Add.Imm(reg, int32(off))}
}

// lookup of an element, sometimes of one that is not there, and a change of it.
func (a *author) lookup() asm.Instructions {
	name := names[a.IntN(len(names))]
	ms, out, none := arrays[name], a.fresh(), a.fresh()
	list := asm.Instructions{asm.Mov.Reg(asm.R1, a.value()), asm.RSh.Imm(asm.R1, int32(a.IntN(20)))}
	switch {
	case name == "vector":
		list = asm.Instructions{asm.Mov.Imm(asm.R1, 0)}
	case a.IntN(4) == 0:
		list = asm.Instructions{asm.Mov.Imm(asm.R1, int32(a.IntN(int(ms.MaxEntries+2))))}
	default:
		list = append(list, asm.Mod.Imm(asm.R1, int32(ms.MaxEntries+2)))
	}
	list = append(list, asm.StoreMem(asm.R10, a.key(), asm.R1, asm.Word))
	switch a.IntN(3) {
	case 0: // the pointer to the key is stored and loaded again
		list = slices.Concat(list, at(a.key(), asm.R3), asm.Instructions{asm.StoreMem(asm.R10, a.pointer(), asm.R3, asm.DWord), asm.Mov.Imm(asm.R3, 7),
			asm.LoadMem(asm.R2, asm.R10, a.pointer(), asm.DWord), asm.LoadMapPtr(asm.R1, 0).WithReference(name)})
	case 1:
		list = slices.Concat(list, asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference(name)}, at(a.key(), asm.R2))
	default:
		list = append(slices.Concat(list, at(a.key(), asm.R2)), asm.LoadMapPtr(asm.R1, 0).WithReference(name))
	}
	v := a.value()
	list = append(list, asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, none))
	size := asm.DWord
	if ms.ValueSize == 4 {
		size = asm.Word
	}
	off := int16(a.IntN(int(ms.ValueSize+7)/8)) * 8
	switch a.IntN(3) {
	case 0:
		list = append(list, asm.Mov.Reg(asm.R2, a.value()), asm.StoreXAdd(asm.R0, asm.R2, size))
	default:
		list = append(list, asm.LoadMem(asm.R2, asm.R0, off, size), asm.Mov.Reg(asm.R3, asm.R2), asm.Mul.Imm(asm.R3, 5), asm.Add.Reg(asm.R3, a.value()),
			asm.StoreMem(asm.R0, off, asm.R3, size))
	}
	list = slices.Concat(list, mix(v, asm.R2), asm.Instructions{asm.Ja.Label(out), asm.Add.Imm(v, 77).WithSymbol(none)})
	return append(list, asm.Mov.Reg(asm.R0, asm.R0).WithSymbol(out))
}

// call of a function with a place on the stack and a number.
func (a *author) call(name string) asm.Instructions {
	return slices.Concat(at(a.word(), asm.R1), asm.Instructions{asm.Mov.Reg(asm.R2, a.value()), asm.Call.Label(name)}, mix(a.value(), asm.R0))
}

// block is one step, or some steps that a comparison may jump over.
func (a *author) block(level int) asm.Instructions {
	v := a.value()
	switch n := a.IntN(9); {
	case n < 3:
		list := a.lookup()
		return append(list[:len(list)-1], asm.Mov.Imm(asm.R0, 0).WithSymbol(list[len(list)-1].Symbol()))
	case n == 3:
		return append(mix(v, a.value()), asm.Xor.Imm(v, int32(a.Uint32())))
	case n == 4:
		w := a.word()
		return slices.Concat(asm.Instructions{asm.LoadMem(asm.R1, asm.R10, w, asm.DWord)}, mix(asm.R1, v), asm.Instructions{asm.StoreMem(asm.R10, w, asm.R1, asm.DWord)})
	case n == 5: // a word at a place that is not known before
		return slices.Concat(asm.Instructions{asm.Mov.Reg(asm.R1, v), asm.And.Imm(asm.R1, 3), asm.LSh.Imm32(asm.R1, 3)}, at(-32, asm.R2),
			asm.Instructions{asm.Add.Reg(asm.R2, asm.R1), asm.LoadMem(asm.R1, asm.R2, 0, asm.DWord)}, mix(v, asm.R1))
	case n == 6:
		return slices.Concat(asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference(ringName)}, at(a.word(), asm.R2),
			asm.Instructions{asm.Mov.Imm(asm.R3, 8), asm.Mov.Imm(asm.R4, 1 /* no wakeup */), asm.FnRingbufOutput.Call()}, mix(v, asm.R0))
	case n == 7 && len(a.subs) > 0:
		return a.call(a.subs[a.IntN(len(a.subs))])
	case level > 0:
		over := a.fresh()
		list := asm.Instructions{asm.JGT.Imm(v, int32(a.Uint32()>>1), over)}
		for range 1 + a.IntN(4) {
			list = append(list, a.block(level-1)...)
		}
		return append(list, asm.Mov.Imm(asm.R0, 1).WithSymbol(over))
	}
	return asm.Instructions{asm.Add.Reg(v, a.value())}
}

// body is a function after its first values are in R6 to R8.
func (a *author) body() (list asm.Instructions) {
	for w := int16(-8); w > a.key(); w -= 8 {
		list = append(list, asm.StoreMem(asm.R10, w, a.value(), asm.DWord))
	}
	for range 4 + a.IntN(8) {
		list = append(list, a.block(3)...)
	}
	for _, name := range a.subs { // functions without a caller are refused
		list = append(list, a.call(name)...)
	}
	list = append(list, asm.Mov.Reg(asm.R0, asm.R6))
	list = slices.Concat(list, mix(asm.R0, asm.R7), mix(asm.R0, asm.R8))
	for w := int16(-8); w > a.key(); w -= 8 {
		list = slices.Concat(list, asm.Instructions{asm.LoadMem(asm.R1, asm.R10, w, asm.DWord)}, mix(asm.R0, asm.R1))
	}
	return slices.Concat(list, asm.Instructions{asm.Mov.Reg(asm.R1, asm.R0), asm.RSh.Imm(asm.R1, 32), asm.Xor.Reg(asm.R0, asm.R1), asm.Return()})
}

// random is a program of up to three functions: the first one calls the others, and hands them a place on its stack.
func random(r *rand.Rand) asm.Instructions {
	a := &author{Rand: r, own: "main", depth: -8 * int16(7+r.IntN(20))}
	var others asm.Instructions
	for n := range r.IntN(3) {
		b := &author{Rand: r, own: fmt.Sprintf("sub%d", n), depth: -8 * int16(7+r.IntN(8))}
		list := slices.Concat(asm.Instructions{asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord).WithSymbol(b.own), asm.Mov.Reg(asm.R7, asm.R2), asm.Mov.Reg(asm.R8, asm.R2),
			asm.Mul.Imm(asm.R8, 13), asm.StoreMem(asm.R1, 0, asm.R8, asm.DWord)}, b.body())
		others, a.subs = append(others, list...), append(a.subs, b.own)
	}
	begin := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word).WithSymbol("main"), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, 24), asm.JLE.Reg(asm.R4, asm.R3, "long"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		asm.LoadMem(asm.R6, asm.R2, 0, asm.DWord).WithSymbol("long"), asm.LoadMem(asm.R7, asm.R2, 8, asm.DWord), asm.LoadMem(asm.R8, asm.R2, 16, asm.DWord),
	}
	return settled(slices.Concat(begin, a.body(), others))
}

// settled writes distances in the place of the labels of jumps, as they are in a compiled object.
func settled(list asm.Instructions) asm.Instructions {
	place, raw := map[string]int{}, 0
	for i := range list {
		if s := list[i].Symbol(); s != "" {
			place[s] = raw
		}
		raw += int(list[i].Width())
	}
	raw = 0
	for i := range list {
		raw += int(list[i].Width())
		if jumps(&list[i]) {
			list[i].Offset = int16(place[list[i].Reference()] - raw)
			list[i] = list[i].WithReference("")
		}
		if s := list[i].Symbol(); s != "" && s != "main" && s[:3] != "sub" || s != "" && slices.Contains([]byte(s), '_') {
			list[i] = list[i].WithSymbol("")
		}
	}
	return list
}

// memory is maps in the kernel: of an instance alone, or of several.
type memory struct {
	maps  map[string]*ebpf.Map
	rings []*ebpf.Map // by instance
}

func newMap(t *testing.T, ms *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(ms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func newMemory(t *testing.T, shared bool) *memory {
	t.Helper()
	m, spec := &memory{maps: map[string]*ebpf.Map{}}, &ebpf.CollectionSpec{Maps: mapSpecs()}
	if shared {
		if err := Collection(spec, instances, NumberSpec()); err != nil {
			t.Fatal(err)
		}
	}
	for name, ms := range spec.Maps {
		m.maps[name] = newMap(t, ms)
	}
	if !shared {
		m.rings = append(m.rings, m.maps[ringName])
		return m
	}
	for n := range instances {
		m.rings = append(m.rings, newMap(t, mapSpecs()[ringName]))
		if err := m.maps[ringName].Put(uint32(n), m.rings[n]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// load puts a program into the kernel, as it is or for many instances.
func (m *memory) load(t *testing.T, list asm.Instructions) *ebpf.Program {
	t.Helper()
	spec := &ebpf.CollectionSpec{Maps: mapSpecs(), Programs: map[string]*ebpf.ProgramSpec{"main": {Name: "main", Type: ebpf.XDP, License: "GPL", Instructions: slices.Clone(list)}}}
	if len(m.rings) > 1 {
		if err := Collection(spec, instances, NumberSpec()); err != nil {
			t.Fatalf("%v\n%v", err, list)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: m.maps})
	if err != nil {
		t.Fatalf("load: %+v\n%v", err, list)
	}
	defer coll.Close()
	p := coll.DetachProgram("main")
	t.Cleanup(func() { p.Close() })
	return p
}

// part fills the elements of an instance with words drawn from a seed, or returns what they are now: all cores' copies.
func (m *memory) part(t *testing.T, number int, seed uint64, fill bool) (all []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, name := range names {
		ms, first := arrays[name], number*int(arrays[name].MaxEntries)
		if name == "vector" {
			first = 0
		}
		for e := range int(ms.MaxEntries) {
			key := uint32(first + e)
			copies := make([][]byte, 1)
			if ms.Type == ebpf.PerCPUArray {
				copies = make([][]byte, ebpf.MustPossibleCPU())
			}
			for c := range copies {
				copies[c] = make([]byte, ms.ValueSize)
				for i := range copies[c] {
					copies[c][i] = byte(r.Uint32())
				}
			}
			var err error
			switch {
			case m.maps[name].Type() != ms.Type:
				err = m.spread(name, key, copies, fill)
			case fill && ms.Type == ebpf.PerCPUArray:
				err = m.maps[name].Put(key, copies)
			case fill:
				err = m.maps[name].Put(key, copies[0])
			case ms.Type == ebpf.PerCPUArray:
				err = m.maps[name].Lookup(key, &copies)
			default:
				err = m.maps[name].Lookup(key, &copies[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, slices.Concat(copies...)...)
		}
	}
	return all
}

// spread writes or reads the copies of an element, each of which is an element of its own.
func (m *memory) spread(name string, key uint32, copies [][]byte, fill bool) (err error) {
	for c := range copies {
		n := arrays[name].MaxEntries
		at := Place(key/n, uint32(len(copies)), uint32(c))*n + key%n
		if fill {
			err = errors.Join(err, m.maps[name].Put(at, copies[c]))
		} else {
			err = errors.Join(err, m.maps[name].Lookup(at, &copies[c]))
		}
	}
	return err
}

// onCore has the thread run on one of the cores, by turns.
func onCore(t *testing.T, n int) {
	t.Helper()
	var one unix.CPUSet
	one.Set(n % ebpf.MustPossibleCPU())
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Logf("core %d: %v", n, err) // it may be offline or not allowed
	}
}

// written is how many bytes rings have taken.
func written(t *testing.T, rings []*ebpf.Map) (all []uint64) {
	t.Helper()
	for _, ring := range rings {
		page, err := unix.Mmap(ring.FD(), int64(unix.Getpagesize()), unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, binary.NativeEndian.Uint64(page))
		_ = unix.Munmap(page)
	}
	return all
}

// as has what runs next belong to an instance.
func (m *memory) as(t *testing.T, number uint32) {
	t.Helper()
	if err := SetNumber(m.maps[Number], number); err != nil {
		t.Fatal(err)
	}
}

// othersOf are the words of all instances but one, without the vector, which all share.
func (m *memory) othersOf(t *testing.T, number int) (all [][]byte) {
	t.Helper()
	for n := range instances {
		if n != number {
			words := m.part(t, n, 0, false)
			all = append(all, words[:len(words)-32*ebpf.MustPossibleCPU()])
		}
	}
	return all
}

// Programs that look up elements that are there and that are not, keep words on the stack, store pointers to it, call functions and report, give the same
// answers and leave the same words in the part of their instance as they do alone, and none in another's.
func TestRandomPrograms(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.OnOneCore(t)
	seed := testutil.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	alone, shared := newMemory(t, false), newMemory(t, true)
	for n := range instances {
		shared.part(t, n, uint64(n), true)
	}
	for n := range 150 {
		onCore(t, n)
		list, number, start := random(r), r.IntN(instances), r.Uint64()
		one, many := alone.load(t, list), shared.load(t, list)
		alone.part(t, 0, start, true)
		shared.part(t, number, start, true)
		shared.as(t, uint32(number))
		before, reported := shared.othersOf(t, number), written(t, shared.rings)
		reported[number] -= written(t, alone.rings)[0]
		for range 3 {
			in := make([]byte, 64)
			for i := range 3 {
				binary.NativeEndian.PutUint64(in[8*i:], r.Uint64()>>r.IntN(64))
			}
			want, err := one.Run(&ebpf.RunOptions{Data: in})
			got, err2 := many.Run(&ebpf.RunOptions{Data: in})
			if err := errors.Join(err, err2); err != nil || got != want {
				t.Fatalf("seed %d, program %d: %#x, shared %#x, %v\n%v", seed, n, want, got, err, list)
			}
		}
		reported[number] += written(t, alone.rings)[0]
		switch {
		case !slices.Equal(alone.part(t, 0, 0, false), shared.part(t, number, 0, false)):
			t.Fatalf("seed %d, program %d: other words are left\n%v", seed, n, list)
		case !slices.EqualFunc(shared.othersOf(t, number), before, slices.Equal[[]byte]):
			t.Fatalf("seed %d, program %d: instance %d has written words of another\n%v", seed, n, number, list)
		case !slices.Equal(written(t, shared.rings), reported):
			t.Fatalf("seed %d, program %d: reports of instance %d: %v, not %v\n%v", seed, n, number, written(t, shared.rings), reported, list)
		}
	}
	if written(t, alone.rings)[0] == 0 {
		t.Error("no program has reported")
	}
}

// Without the number of an instance, and with an unused one, nothing is found and nothing is written.
func TestNobody(t *testing.T) {
	testutil.NeedRoot(t)
	list := asm.Instructions{asm.StoreImm(asm.R10, -4, 0, asm.Word).WithSymbol("main")}
	for _, name := range names[:len(names)-1] {
		out := "out_" + name
		list = slices.Concat(list, at(-4, asm.R2), asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference(name), asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, out), asm.StoreImm(asm.R0, 0, 1, asm.Word), asm.Mov.Imm(asm.R0, 1), asm.Return(), asm.Mov.Imm(asm.R0, 0).WithSymbol(out)})
	}
	list = slices.Concat(list, at(-4, asm.R2), asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference(ringName), asm.Mov.Imm(asm.R3, 4), asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(), asm.Return()})
	shared := newMemory(t, true)
	p := shared.load(t, settled(list))
	for n := range instances {
		shared.part(t, n, uint64(n), true)
	}
	before := shared.othersOf(t, -1)
	for _, number := range []uint32{instances, 1 << 20, 1<<31 - 1, 1<<32 - 1} {
		shared.as(t, number)
		if got, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64)}); err != nil || int32(got) != notFound {
			t.Errorf("number %d: %d, %v", number, int32(got), err)
		}
	}
	if !slices.EqualFunc(shared.othersOf(t, -1), before, slices.Equal[[]byte]) {
		t.Error("words of an instance were written")
	}
}
