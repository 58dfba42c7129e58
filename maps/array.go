package maps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// Array is a loaded array map: a register array, a tally, counters or a table.
type Array struct {
	Name        string
	Kind        string // TagRegister, TagTally, TagCounters, TagTable, or ""
	Entries     int    // of one bank
	Banks       int    // 1 or 2
	ElemSize    int    // bytes of an element as declared
	PerCPU      bool
	m           *ebpf.Map
	first       int   // index in the map of the first element of this instance's part
	part        bool  // several instances have parts in the map
	spread      int   // per CPU in a plain map: the distance of an element's copies; 0: the map has them itself
	ring        *Ring // nil: not requested yet
	keys        []uint32
	unsupported bool // the kernel has no batch operations for this map
	tags        []string
	idle        int  // the bank without packets, plus one; 0: not known
	written     bool // userspace writes to it, or may, through Map
	empty       bool // without banks: it held only zeros when it was last read, and no packet has arrived since

	words []uint64 // buffer of the set's readings
	among word
}

func newArray(ms *ebpf.MapSpec, m *ebpf.Map) *Array {
	a := &Array{Name: ms.Name, Banks: banks(ms), ElemSize: int(ms.ValueSize), m: m, tags: ms.Tags}
	a.PerCPU = m.Type() == ebpf.PerCPUArray
	a.Entries = int(m.MaxEntries()) / a.Banks
	for _, kind := range []string{TagRegister, TagTally, TagCounters, TagTable} {
		if slices.Contains(ms.Tags, kind) {
			a.Kind = kind
		}
	}
	return a
}

// Map is the kernel's map. Callers may write to it, so its content is no longer assumed to be known. It panics where instances share the map:
// SetElement and Element restrict access to the instance's part.
func (a *Array) Map() *ebpf.Map {
	if a.part {
		panic("maps: the words of several instances are in map " + a.Name)
	}
	a.written = true
	return a.m
}

// Words is the number of uint64 that Read needs for one bank: an element of at most 8 bytes is one word.
func (a *Array) Words() int { return a.Entries * a.wordsPerElement() }

func (a *Array) wordsPerElement() int { return (a.ElemSize + 7) / 8 }

// Read returns a bank as words, CPUs added up. dst is reused when it is large enough.
func (a *Array) Read(bank int, dst []uint64) ([]uint64, error) {
	dst = a.zeros(dst)
	if a.isZero(bank) {
		return dst, nil
	}
	if err := a.read(bank, dst); err != nil {
		return nil, fmt.Errorf("read array %s: %w", a.Name, err)
	}
	a.seen(dst)
	return dst, nil
}

// zeros are the words of a bank, for adding to; dst is reused.
func (a *Array) zeros(dst []uint64) []uint64 {
	dst = slices.Grow(dst[:0], a.Words())[:a.Words()]
	clear(dst)
	return dst
}

// AtRest reports whether a bank is known to hold zeros: no packet has arrived since it was opened. Callers then release the buffer of its
// readings: those of 200 idle instances would take a hundred megabytes.
func (a *Array) AtRest(bank int) bool { return a.isZero(bank) }

// isZero reports whether a bank, or an array without banks, is known to hold zeros.
func (a *Array) isZero(bank int) bool {
	if a.idle == 0 || a.written || a.among.of != nil && a.among.of.written || a.Kind != TagRegister && a.Kind != TagTally && a.Kind != TagCounters {
		return false
	}
	if a.Banks == 2 {
		return a.idle == bank+1
	}
	return a.empty
}

// seen records whether an array without banks held only zeros.
func (a *Array) seen(copies ...[]uint64) {
	a.empty = a.Banks == 1
	for _, words := range copies {
		a.empty = a.empty && !slices.ContainsFunc(words, func(v uint64) bool { return v != 0 })
	}
}

// ReadReset reads a closed bank and sets nonzero elements to zero. No program may write to it meanwhile: flip first.
func (a *Array) ReadReset(bank int, dst []uint64) ([]uint64, error) {
	if a.isZero(bank) {
		return a.zeros(dst), nil
	}
	dst = a.zeros(dst)
	if a.inMemory(bank, func(_ int, of view) { of.take(func(i int, v uint64) { dst[i] += v }) }) {
		a.seen(dst)
		return dst, nil
	}
	dst, err := a.Read(bank, dst)
	if err != nil {
		return dst, err
	}
	a.keys = a.keys[:0]
	w := a.wordsPerElement()
	for e := range a.Entries {
		if slices.ContainsFunc(dst[e*w:(e+1)*w], func(v uint64) bool { return v != 0 }) {
			a.keys = append(a.keys, uint32(bank*a.Entries+e))
		}
	}
	return dst, a.zero(a.keys)
}

// Reset sets a bank to zero.
func (a *Array) Reset(bank int) error {
	if a.inMemory(bank, func(_ int, of view) { of.take(func(int, uint64) {}) }) {
		return nil
	}
	a.keys = a.keys[:0]
	for e := range a.Entries {
		a.keys = append(a.keys, uint32(bank*a.Entries+e))
	}
	return a.zero(a.keys)
}

// Write sets a bank of an array that is not per CPU from words (a table, initial values).
func (a *Array) Write(bank int, words []uint64) error {
	if a.PerCPU {
		return fmt.Errorf("write array %s: it is per CPU", a.Name)
	}
	if len(words) != a.Words() {
		return fmt.Errorf("write array %s: %d words given, it has %d", a.Name, len(words), a.Words())
	}
	a.written = true
	for from := 0; from < a.Entries; from += batchEntries {
		if err := a.writeSome(bank*a.Entries+from, words[from*a.wordsPerElement():]); err != nil {
			return fmt.Errorf("write array %s: %w", a.Name, err)
		}
	}
	return nil
}

// writeSome writes as many elements as fit into a batch, the first of which is words.
func (a *Array) writeSome(first int, words []uint64) error {
	w := a.wordsPerElement()
	n := min(batchEntries, len(words)/w)
	a.keys = a.keys[:0]
	for e := range n {
		a.keys = append(a.keys, uint32(first+e))
	}
	return a.Put(a.keys, words[:n*w])
}

// Put writes elements of an array that is not per CPU.
func (a *Array) Put(keys []uint32, words []uint64) error {
	a.written = true
	if err := a.writeBatch(keys, words); !errors.Is(err, ebpf.ErrNotSupported) {
		return err
	}
	b, w := make([]byte, a.ElemSize), a.wordsPerElement()
	for e, key := range keys {
		for i := range b {
			b[i] = byte(words[e*w+i/8] >> (8 * (i % 8)))
		}
		if err := a.m.Update(a.key(key), b, ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}

// key is an element's index in the map.
func (a *Array) key(element uint32) uint32 { return uint32(a.first) + element }

// Element reads one element of an array that is not per CPU.
func (a *Array) Element(key uint32, into any) error {
	if err := a.m.Lookup(a.key(key), into); err != nil {
		return fmt.Errorf("read array %s: %w", a.Name, err)
	}
	return nil
}

// SetElement writes one element of an array that is not per CPU.
func (a *Array) SetElement(key uint32, value any) error {
	a.written = true
	if err := a.m.Update(a.key(key), value, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("write array %s: %w", a.Name, err)
	}
	return nil
}
