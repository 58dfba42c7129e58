// Package share lets one loaded set of programs serve many instances: the registers of all stand side by side in one map, and a program finds its
// packet's part of them by the instance's number in the packet header vector.
//
// It changes compiled instructions, after they were proven as they are: a lookup of element k in an array of n elements becomes one of element
// number * n + k, and stays one that finds nothing where k is n or more. So a program touches of its own part what it was proven to touch, and
// nothing of another's. What it cannot do that for is refused, and is loaded for each instance by itself.
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

// Vector is the map of the packet header vector, whose element holds the instance's number behind what programs know of it.
const Vector = "phv_scratch"

// vectorRoom is what the number takes behind the vector: the kernel rounds elements up to 8 bytes.
const vectorRoom = 8

// tables that are the same for all instances.
var same = []string{"hash_crc_tables"}

// Tags of maps of which there is one for all: they hold nothing from packet to packet, or what is random.
const (
	tagScratch = "pisa:scratch"
	tagRandom  = "pisa:random"
)

// NumberOffset is where the instance's number is in an element of Vector.
func NumberOffset(spec *ebpf.CollectionSpec) int16 {
	return int16(spec.Maps[Vector].ValueSize) - vectorRoom
}

// Common says whether a map is the same for all instances. Others have a part for each.
func Common(ms *ebpf.MapSpec) bool {
	return ms.Type == ebpf.ProgramArray || strings.HasPrefix(ms.Name, ".") || slices.Contains(same, ms.Name) ||
		slices.Contains(ms.Tags, tagScratch) || slices.Contains(ms.Tags, tagRandom)
}

// Collection changes a configured object for n instances: its maps have a part for each, and its programs find them.
// A ring becomes a map of rings, by number. What tables begin with is left to the caller, who writes it into each part. The object must have been proven before.
func Collection(spec *ebpf.CollectionSpec, n int) error {
	parts, err := widen(spec, n)
	if err != nil {
		return err
	}
	for _, p := range spec.Programs {
		if p.Instructions, err = rewrite(p.Instructions, parts); err != nil {
			return fmt.Errorf("share %s: %w", p.Name, err)
		}
	}
	return nil
}

// parts is what rewriting needs to know of the maps.
type parts struct {
	entries map[string]uint32 // of one instance, in arrays
	rings   map[string]bool
	number  int16 // NumberOffset
}

// widen gives maps a part for each of n instances.
func widen(spec *ebpf.CollectionSpec, n int) (parts, error) {
	p := parts{entries: map[string]uint32{}, rings: map[string]bool{}}
	for name, ms := range spec.Maps {
		switch {
		case name == Vector:
			p.number = int16(ms.ValueSize)
			ms.ValueSize += vectorRoom
			ms.Key, ms.Value = nil, nil
		case Common(ms):
		case ms.Type == ebpf.RingBuf:
			p.rings[name] = true
			spec.Maps[name] = ringsOf(ms, n)
		case ms.Type != ebpf.Array && ms.Type != ebpf.PerCPUArray || ms.Flags&unix.BPF_F_MMAPABLE != 0:
			return parts{}, fmt.Errorf("%w: map %s", ErrNotShared, name)
		default:
			p.entries[name] = ms.MaxEntries
			if uint64(ms.MaxEntries)*uint64(n) > 1<<31 {
				return parts{}, fmt.Errorf("%w: map %s is too large", ErrNotShared, name)
			}
			ms.MaxEntries *= uint32(n)
			ms.Contents = nil
		}
	}
	return p, nil
}

// ringsOf is a map of n rings.
func ringsOf(ring *ebpf.MapSpec, n int) *ebpf.MapSpec {
	inner := ring.Copy()
	inner.Name = "xdpmon_ring"
	return &ebpf.MapSpec{Name: ring.Name, Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: uint32(n), InnerMap: inner}
}
