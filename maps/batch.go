package maps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
)

// batchEntries limits the elements, and so the buffers, of one system call.
const batchEntries = 8192

// batch is the memory of a batch operation. Arrays share it: with buffers of their own, a hundred arrays would take two megabytes an
// instance, of which there may be 200.
type batch struct {
	keys   []uint32
	u64    []uint64
	u32    []uint32
	cursor [2]uint32
}

var batchMemory = sync.Pool{New: func() any { return new(batch) }}

// read adds the elements of a bank to dst.
func (a *Array) read(bank int, dst []uint64) error {
	if a.among.of != nil {
		return a.among.read(bank, dst)
	}
	if a.inMemory(bank, func(_ int, of view) { of.each(func(i int, v uint64) { dst[i] += v }) }) {
		return nil
	}
	first := bank * a.Entries
	typed := a.ElemSize%8 == 0 && (a.PerCPU || a.ElemSize == 8) || a.ElemSize == 4 && a.plain()
	if typed && !a.unsupported {
		err := a.readBatches(first, dst)
		if !errors.Is(err, ebpf.ErrNotSupported) {
			return err
		}
	}
	w := a.wordsPerElement()
	for e := range a.Entries {
		if err := a.readOne(uint32(first+e), dst[e*w:(e+1)*w]); err != nil {
			return err
		}
	}
	return nil
}

// readBatches adds a bank's elements on to dst.
func (a *Array) readBatches(first int, dst []uint64) error {
	return a.batches(first, func(s *batch, at, n, _ int) { a.addBatch(s, n, dst[at*a.wordsPerElement():]) })
}

// batches reads the elements of a bank, as many as fit at a time, and passes them on with their keys; of a spread array also with their CPU.
func (a *Array) batches(first int, take func(s *batch, at, n, cpu int)) error {
	if a.unsupported {
		return ebpf.ErrNotSupported
	}
	s := batchMemory.Get().(*batch)
	defer batchMemory.Put(s)
	for cpu := range a.copies() / a.copiesTogether() {
		for at := 0; at < a.Entries; {
			n, err := a.nextBatch(s, cpu*a.spread+a.first+first+at, min(batchEntries, a.Entries-at))
			if err != nil {
				a.unsupported = errors.Is(err, ebpf.ErrNotSupported)
				return err
			}
			take(s, at, n, cpu)
			at += n
		}
	}
	return nil
}

// nextBatch reads at most n elements from a key on.
func (a *Array) nextBatch(s *batch, key, n int) (int, error) {
	s.keys = slices.Grow(s.keys[:0], n)[:n]
	if a.ElemSize == 4 && a.plain() {
		s.u32 = slices.Grow(s.u32[:0], n)[:n]
		return lookupBatch(a.m, key, &s.cursor, s.keys, unsafe.Pointer(unsafe.SliceData(s.u32)))
	}
	words := n * a.copiesTogether() * a.wordsPerElement()
	s.u64 = slices.Grow(s.u64[:0], words)[:words]
	return lookupBatch(a.m, key, &s.cursor, s.keys, unsafe.Pointer(unsafe.SliceData(s.u64)))
}

func (a *Array) copies() int {
	if a.PerCPU {
		return PossibleCPUs()
	}
	return 1
}

// plain reports whether an element of the map is one copy.
func (a *Array) plain() bool { return !a.PerCPU || a.spread > 0 }

// copiesTogether is how many copies an element of the map has.
func (a *Array) copiesTogether() int {
	if a.plain() {
		return 1
	}
	return PossibleCPUs()
}

// addBatch adds the n elements of a batch.
func (a *Array) addBatch(s *batch, n int, dst []uint64) {
	if a.ElemSize == 4 && a.plain() {
		for i, v := range s.u32[:n] {
			dst[i] += uint64(v)
		}
		return
	}
	w, copies := a.wordsPerElement(), a.copiesTogether()
	for i := range n {
		for j, v := range s.u64[i*w*copies : (i+1)*w*copies] {
			dst[i*w+j%w] += v
		}
	}
}

func (a *Array) readOne(key uint32, dst []uint64) error {
	copies, err := a.element(key)
	if err != nil {
		return err
	}
	for _, b := range copies {
		addBytes(dst, b)
	}
	return nil
}

// addBytes adds an element's words; a last word of fewer than 8 bytes is filled up with zeros.
func addBytes(dst []uint64, b []byte) {
	for i := range dst {
		var word [8]byte
		copy(word[:], b[8*i:])
		dst[i] += binary.NativeEndian.Uint64(word[:])
	}
}

// zero sets elements to zero, on all CPUs.
func (a *Array) zero(keys []uint32) error {
	for len(keys) > 0 {
		n := min(batchEntries, len(keys))
		if err := a.zeroBatch(keys[:n]); err != nil {
			return fmt.Errorf("reset array %s: %w", a.Name, err)
		}
		keys = keys[n:]
	}
	return nil
}

func (a *Array) zeroBatch(keys []uint32) error {
	err := a.writeBatch(keys, make([]uint64, len(keys)))
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = a.zeroRows(keys)
	}
	if !errors.Is(err, ebpf.ErrNotSupported) {
		return err
	}
	var value any = make([]byte, a.ElemSize)
	if !a.plain() {
		value = make([][]byte, 0) // missing CPUs are zero
	}
	for _, key := range a.placed(keys) {
		if err := a.m.Update(key, value, ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}

// zeroRows sets elements of several words a CPU to zero in one system call, where the kernel can.
func (a *Array) zeroRows(keys []uint32) error {
	if a.unsupported || !a.PerCPU || a.ElemSize%8 != 0 {
		return ebpf.ErrNotSupported
	}
	n := len(keys) * PossibleCPUs()
	rows := reflect.MakeSlice(reflect.SliceOf(reflect.ArrayOf(a.wordsPerElement(), reflect.TypeFor[uint64]())), n, n)
	_, err := a.m.BatchUpdate(a.placed(keys), rows.Interface(), nil)
	return err
}

// writeBatch writes elements of one word in one system call, the same on all CPUs, where the kernel can (per CPU: Linux 5.13).
func (a *Array) writeBatch(keys []uint32, words []uint64) error {
	if a.among.of != nil {
		return a.among.put(keys, words)
	}
	if a.unsupported || a.ElemSize != 8 && (a.ElemSize != 4 || !a.plain()) {
		return ebpf.ErrNotSupported
	}
	if a.spread > 0 {
		words = slices.Repeat(words, PossibleCPUs())
	}
	var values any = words
	switch {
	case a.ElemSize == 4:
		short := make([]uint32, len(words))
		for i, v := range words {
			short[i] = uint32(v)
		}
		values = short
	case !a.plain():
		copies := make([]uint64, 0, len(words)*PossibleCPUs())
		for _, v := range words {
			for range PossibleCPUs() {
				copies = append(copies, v)
			}
		}
		values = copies
	}
	_, err := a.m.BatchUpdate(a.placed(keys), values, nil)
	return err
}

// placed are the indices of elements in the map; in a spread array those of all CPUs, one CPU after the other.
func (a *Array) placed(keys []uint32) []uint32 {
	if a.first == 0 && a.spread == 0 {
		return keys
	}
	list := make([]uint32, 0, len(keys)*a.copies()/a.copiesTogether())
	for cpu := range a.copies() / a.copiesTogether() {
		for _, k := range keys {
			list = append(list, a.key(k)+uint32(cpu*a.spread))
		}
	}
	return list
}
