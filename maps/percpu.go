package maps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// ReadPerCPU returns a bank of a per-CPU array of 64-bit words, each CPU's copy by itself: [cpu][entry], and of elements of several words
// [cpu][entry * words + word]. Records of several words must not be added up.
func (a *Array) ReadPerCPU(bank int) ([][]uint64, error) {
	if !a.PerCPU || a.ElemSize%8 != 0 {
		return nil, fmt.Errorf("read array %s: it does not hold words a CPU", a.Name)
	}
	if a.among.of != nil {
		rows, err := a.among.of.ReadPerCPU(bank)
		return a.among.columns(rows), err
	}
	copies := a.zeroCopies()
	if a.isZero(bank) {
		return copies, nil
	}
	if err := a.readCopies(bank, copies); err != nil {
		return nil, fmt.Errorf("read array %s: %w", a.Name, err)
	}
	a.seen(copies...)
	return copies, nil
}

func (a *Array) zeroCopies() [][]uint64 {
	copies := make([][]uint64, PossibleCPUs())
	for c := range copies {
		copies[c] = make([]uint64, a.Words())
	}
	return copies
}

// columns are the words of one array in rows of several, by CPU.
func (w word) columns(rows [][]uint64) (columns [][]uint64) {
	n := w.of.wordsPerElement()
	for _, words := range rows {
		column := make([]uint64, 0, len(words)/n)
		for at := w.place; at < len(words); at += n {
			column = append(column, words[at])
		}
		columns = append(columns, column)
	}
	return columns
}

// ReadResetPerCPU reads a closed bank and sets the words of all CPUs that are not zero back to zero: flip first.
func (a *Array) ReadResetPerCPU(bank int) ([][]uint64, error) {
	if a.PerCPU && a.ElemSize%8 == 0 && a.mappable() && !a.isZero(bank) {
		copies := a.zeroCopies()
		if a.inMemory(bank, func(cpu int, of view) { of.take(func(i int, v uint64) { copies[cpu][i] = v }) }) {
			a.seen(copies...)
			return copies, nil
		}
	}
	copies, err := a.ReadPerCPU(bank)
	if err != nil || a.isZero(bank) {
		return copies, err
	}
	a.keys = a.keys[:0]
	w := a.wordsPerElement()
	for e := range a.Entries {
		used := func(words []uint64) bool {
			return slices.ContainsFunc(words[e*w:(e+1)*w], func(v uint64) bool { return v != 0 })
		}
		if slices.ContainsFunc(copies, used) {
			a.keys = append(a.keys, uint32(bank*a.Entries+e))
		}
	}
	return copies, a.zero(a.keys)
}

// PutCPU writes a word of an element of one core's copy; of an interleaved array, its own word. Other words and cores are unchanged.
func (a *Array) PutCPU(cpu int, key uint32, word int, v uint64) error {
	of, place := a.holder(word)
	of.written = true
	copies, err := of.element(key)
	if err != nil {
		return fmt.Errorf("read array %s: %w", a.Name, err)
	}
	for c := range copies {
		copies[c] = copies[c][:of.ElemSize] // the kernel's are multiples of 8 bytes
	}
	setBytes(copies[cpu][8*place:], v)
	if err := of.putElement(key, copies); err != nil {
		return fmt.Errorf("write array %s: %w", a.Name, err)
	}
	return nil
}

// AtCPU is the first word of an element of one core's copy; of an interleaved array, its own word.
func (a *Array) AtCPU(cpu int, key uint32) (uint64, error) {
	of, word := a.holder(0)
	copies, err := of.element(key)
	if err != nil {
		return 0, fmt.Errorf("read array %s: %w", a.Name, err)
	}
	var v [1]uint64
	addBytes(v[:], copies[cpu][8*word:])
	return v[0], nil
}

// Alone reports whether its map holds no other array.
func (a *Array) Alone() bool { return a.among.of == nil }

// holder is the array whose elements hold a word, and the word's index in them.
func (a *Array) holder(word int) (*Array, int) {
	if a.among.of == nil {
		return a, word
	}
	return a.among.of, a.among.place
}

// setBytes writes a word into an element, which may have fewer bytes than a word.
func setBytes(element []byte, v uint64) {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], v)
	copy(element, word[:])
}

func (a *Array) readCopies(bank int, copies [][]uint64) error {
	if a.inMemory(bank, func(cpu int, of view) { of.each(func(i int, v uint64) { copies[cpu][i] = v }) }) {
		return nil
	}
	first := bank * a.Entries
	err := a.batches(first, func(s *batch, at, n, cpu int) { a.splitBatch(s, at, n, cpu, copies) })
	if !errors.Is(err, ebpf.ErrNotSupported) {
		return err
	}
	w := a.wordsPerElement()
	for e := range a.Entries {
		elements, err := a.element(uint32(first + e))
		if err != nil {
			return err
		}
		for c := range copies {
			addBytes(copies[c][e*w:(e+1)*w], elements[c])
		}
	}
	return nil
}

// splitBatch distributes the n elements of a batch to their CPUs; at is the first element, and cpu the CPU of a spread array's batch.
func (a *Array) splitBatch(s *batch, at, n, cpu int, copies [][]uint64) {
	w := a.wordsPerElement()
	if a.spread > 0 {
		copy(copies[cpu][at*w:(at+n)*w], s.u64)
		return
	}
	for i := range n {
		for c := range copies {
			copy(copies[c][(at+i)*w:(at+i+1)*w], s.u64[(i*len(copies)+c)*w:])
		}
	}
}
