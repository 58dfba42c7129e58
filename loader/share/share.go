// Package share lets one loaded set of programs serve many instances: the registers of each are one part of common maps, and a program finds
// its packet's part by the instance's number.
//
// It changes compiled instructions after their proof: a lookup of element k in an array of n elements becomes a lookup of element
// number * n + k, and finds nothing where k is n or more, as before. In a large per-CPU array, which becomes a plain one, the CPU is part of that number. So a program touches the elements of its own part that it was proven to touch, and none of
// another part. docs/process.md has the argument and its limits. Where the package does not understand a program it returns ErrNotShared, and the
// instance is loaded with programs of its own.
package share

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrNotShared is wrapped where programs cannot serve several instances.
var ErrNotShared = errors.New("the programs cannot be shared by instances")

// Number is the map that holds the number of the instance whose packet a CPU processes. Proven programs cannot name it: it is added after the proof.
const Number = "instance_number"

// tables that are the same for all instances.
var same = []string{"hash_crc_tables"}

// Tags of maps that all instances share: they hold no state from packet to packet, or only random state.
const (
	tagScratch = "pisa:scratch"
	tagRandom  = "pisa:random"
)

// Tags of an algorithm's arrays.
const (
	tagRegister = "pisa:register"
	tagTally    = "pisa:tally"
)

// Words of Number, of 32 bits each: the instance's number; its place in spread maps (Place); and the CPU, which never changes.
const (
	WordNumber = 4 * iota
	WordPlace
	WordCPU
	numberBytes
)

// Place is the index of a CPU's copy of an instance's part in a spread map.
func Place(number, cpus, cpu uint32) uint32 { return number*cpus + cpu }

// NumberSpec declares Number; tags are those of maps that an instance's objects share.
func NumberSpec(tags ...string) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: Number, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: numberBytes, MaxEntries: 1, Tags: tags}
}

// SetNumber writes an instance's number to Number on all CPUs, with the CPU.
func SetNumber(m *ebpf.Map, number uint32) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("write %s: %w", Number, err)
	}
	values := make([][numberBytes / 4]uint32, cpus)
	for c := range values {
		values[c] = [...]uint32{number, Place(number, uint32(cpus), uint32(c)), uint32(c)}
	}
	if err := m.Put(uint32(0), values); err != nil {
		return fmt.Errorf("write %s: %w", Number, err)
	}
	return nil
}

// Common reports whether a map is the same for all instances. Others have a part for each.
func Common(ms *ebpf.MapSpec) bool {
	return ms.Type == ebpf.ProgramArray || strings.HasPrefix(ms.Name, ".") || ms.Name == Number || slices.Contains(same, ms.Name) ||
		slices.Contains(ms.Tags, tagScratch) || slices.Contains(ms.Tags, tagRandom)
}

// Collection changes a configured object for n instances: its maps have a part for each, and its programs find them. number declares the map Number.
// A ring becomes a map of rings, by number. A large per-CPU array becomes a plain one with a copy for each CPU (spread). The caller writes the initial values of tables into each part. The object must have been
// proven before.
func Collection(spec *ebpf.CollectionSpec, n int, number *ebpf.MapSpec) error {
	if spec.Maps[Number] != nil {
		return fmt.Errorf("%w: the object declares %s itself", ErrNotShared, Number)
	}
	parts, err := widen(spec, n)
	if err != nil {
		return err
	}
	spec.Maps[Number] = number
	for _, p := range spec.Programs {
		if p.Instructions, err = rewrite(p.Instructions, parts); err != nil {
			return fmt.Errorf("share %s: %w", p.Name, err)
		}
	}
	return nil
}

// parts describes the maps of which each instance has a part, for rewriting.
type parts struct {
	entries map[string]uint32 // of one instance, in arrays
	spread  map[string]bool   // of arrays: a part has the elements of one CPU after those of another, in a plain array
	rings   map[string]bool
}

// has reports whether instances have a part of a map.
func (p parts) has(name string) bool { return p.entries[name] > 0 || p.rings[name] }

// spreadFrom is the number of elements, of one instance, from which a per-CPU array is spread. The kernel allocates each element of a per-CPU array by
// itself, which takes a microsecond and more: 86,000 of them an instance are half of the time in which 200 instances start.
const spreadFrom = 16

// widen gives maps a part for each of n instances.
func widen(spec *ebpf.CollectionSpec, n int) (parts, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return parts{}, fmt.Errorf("%w: %w", ErrNotShared, err)
	}
	p := parts{entries: map[string]uint32{}, rings: map[string]bool{}, spread: map[string]bool{}}
	for name, ms := range spec.Maps {
		switch {
		case Common(ms):
		case ms.Type == ebpf.RingBuf:
			p.rings[name] = true
			spec.Maps[name] = ringsOf(ms, n)
		case ms.Type != ebpf.Array && ms.Type != ebpf.PerCPUArray, ms.Flags&unix.BPF_F_MMAPABLE != 0, ms.KeySize != 4, ms.MaxEntries == 0:
			return parts{}, fmt.Errorf("%w: map %s", ErrNotShared, name)
		case uint64(ms.MaxEntries)*uint64(n)*uint64(cpus) > 1<<31:
			return parts{}, fmt.Errorf("%w: map %s is too large", ErrNotShared, name)
		default:
			p.entries[name] = ms.MaxEntries
			if spreads(ms) {
				p.spread[name] = true
				ms.Type = ebpf.Array
				ms.MaxEntries *= uint32(cpus)
			}
			if mapped(ms, p.entries[name]) {
				ms.Flags |= unix.BPF_F_MMAPABLE
			}
			ms.MaxEntries *= uint32(n)
			ms.Contents = nil
		}
	}
	return p, nil
}

// spreads reports whether a map is spread: arrays of algorithms only, which userspace reads through package maps.
func spreads(ms *ebpf.MapSpec) bool {
	return ms.Type == ebpf.PerCPUArray && ms.MaxEntries >= spreadFrom && measures(ms)
}

// mappedFrom is the number of elements, of one instance, from which userspace reads an array through memory. The kernel copies the elements of a batch one by one:
// half of the time that a window of six algorithms took.
const mappedFrom = 256

// mapped reports whether userspace reads a map of parts with that many elements through memory (package maps). Lookups in such a map cost what they cost in others.
func mapped(ms *ebpf.MapSpec, entries uint32) bool {
	return ms.Type == ebpf.Array && entries >= mappedFrom && measures(ms)
}

func measures(ms *ebpf.MapSpec) bool {
	return slices.Contains(ms.Tags, tagRegister) || slices.Contains(ms.Tags, tagTally)
}

// ringsOf is a map of n rings.
func ringsOf(ring *ebpf.MapSpec, n int) *ebpf.MapSpec {
	inner := ring.Copy()
	inner.Name = "xdpmon_ring"
	return &ebpf.MapSpec{Name: ring.Name, Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: uint32(n), InnerMap: inner}
}
