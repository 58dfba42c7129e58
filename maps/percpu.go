package maps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// ReadPerCPU returns a bank of a per-CPU array of 64-bit words, each CPU's copy by itself: [cpu][entry]. Records of
// several words must not be added up.
func (a *Array) ReadPerCPU(bank int) ([][]uint64, error) {
	if !a.PerCPU || a.ElemSize != 8 {
		return nil, fmt.Errorf("read array %s: it does not hold a word a CPU", a.Name)
	}
	copies := make([][]uint64, PossibleCPUs())
	for c := range copies {
		copies[c] = make([]uint64, a.Entries)
	}
	if a.isQuiet(bank) {
		return copies, nil
	}
	if err := a.readCopies(bank*a.Entries, copies); err != nil {
		return nil, fmt.Errorf("read array %s: %w", a.Name, err)
	}
	a.seen(copies...)
	return copies, nil
}

// ReadResetPerCPU reads a closed bank and sets the words of all CPUs that are not zero back to zero: flip first.
func (a *Array) ReadResetPerCPU(bank int) ([][]uint64, error) {
	copies, err := a.ReadPerCPU(bank)
	if err != nil {
		return nil, err
	}
	a.keys = a.keys[:0]
	for e := range a.Entries {
		if slices.ContainsFunc(copies, func(words []uint64) bool { return words[e] != 0 }) {
			a.keys = append(a.keys, uint32(bank*a.Entries+e))
		}
	}
	return copies, a.zero(a.keys)
}

func (a *Array) readCopies(first int, copies [][]uint64) error {
	var cursor ebpf.MapBatchCursor
	for !a.scratch.unsupported {
		n, err := a.nextBatch(&cursor)
		if errors.Is(err, ebpf.ErrNotSupported) {
			a.scratch.unsupported = true
			break
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		a.splitBatch(n, first, copies)
		if err != nil {
			return nil
		}
	}
	var words []uint64
	for e := range a.Entries {
		if err := a.m.Lookup(uint32(first+e), &words); err != nil {
			return err
		}
		for c := range copies {
			copies[c][e] = words[c]
		}
	}
	return nil
}

// splitBatch hands the n elements of the scratch buffer to the CPUs that they belong to.
func (a *Array) splitBatch(n, first int, copies [][]uint64) {
	for i, key := range a.scratch.keys[:n] {
		if e := int(key) - first; e >= 0 && e < a.Entries {
			for c := range copies {
				copies[c][e] = a.scratch.u64[i*len(copies)+c]
			}
		}
	}
}
