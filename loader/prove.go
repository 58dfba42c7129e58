package loader

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa"
)

// proven caches the proofs of this process: an agent loads the same programs with the same constants for many interfaces. An entry is
// 32 bytes and a lock; there is one for each kind of interface and each choice of parameters.
var proven = struct {
	sync.Mutex
	of map[[sha256.Size]byte]*proof
}{of: map[[sha256.Size]byte]*proof{}}

// proof of one set of programs. Its lock is held while the proof runs, so that instances that start together wait for one proof instead
// of repeating it.
type proof struct {
	sync.Mutex
	made bool
}

func proofOf(key [sha256.Size]byte) *proof {
	proven.Lock()
	defer proven.Unlock()
	p := proven.of[key]
	if p == nil {
		p = new(proof)
		proven.of[key] = p
	}
	return p
}

// prove refuses a program that breaks the memory rules of a PISA switch; constants and sizes are those it will run with.
func prove(name string, spec *ebpf.CollectionSpec, unproven bool) error {
	if unproven {
		return nil
	}
	p := proofOf(identity(spec))
	p.Lock()
	defer p.Unlock()
	if p.made {
		return nil
	}
	if _, err := pisa.Prove(spec); err != nil {
		return fmt.Errorf("prove memory rules of %s: %w", name, err)
	}
	p.made = true
	return nil
}

// identity is a digest of everything that a proof depends on: the instructions, the maps they name, and the constants.
func identity(spec *ebpf.CollectionSpec) [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		p := spec.Programs[name]
		fmt.Fprintf(h, "program %s %v %s %d\n", name, p.Type, p.SectionName, p.Flags)
		write(h, p.Instructions)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		fmt.Fprintf(h, "map %s %v %d %d %d %d %q\n", name, m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags, m.Tags)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		fmt.Fprintf(h, "constant %s %x\n", name, spec.Variables[name].Value)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// write hashes instructions with their symbols and references, field by field: hashing their text takes ten times as long.
func write(h hash.Hash, all asm.Instructions) {
	b := make([]byte, 0, 4096)
	for i := range all {
		ins := &all[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(ins.OpCode))
		b = binary.LittleEndian.AppendUint64(b, uint64(ins.Dst)|uint64(ins.Src)<<8|uint64(uint16(ins.Offset))<<16)
		b = binary.LittleEndian.AppendUint64(b, uint64(ins.Constant))
		for _, name := range []string{ins.Symbol(), ins.Reference()} {
			b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
			b = append(b, name...)
		}
		if len(b) >= cap(b)/2 || i == len(all)-1 {
			h.Write(b)
			b = b[:0]
		}
	}
}
