package pisa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// role of a map: an entry of the list of kinds. A map of another type, name or size is refused.
type mapRole struct {
	types   []ebpf.MapType
	names   []string // nil: any that is not shared
	entries uint32   // at most; 0: as many as fit the switch
	bytes   uint32   // of an element, at most; 0: as many as fit the switch
	frozen  bool     // the kernel refuses writes of programs
	looked  bool     // programs may look elements up
	why     string   // what keeps it from being state, and what it costs on a switch
}

const (
	chainSlots   = 16 // CHAIN_SLOTS of chain.h
	counterWords = 64
)

var (
	arrays = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray}
	perCPU = []ebpf.MapType{ebpf.PerCPUArray}
	tables = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray, ebpf.Hash, ebpf.PerCPUHash, ebpf.LPMTrie, ebpf.ArrayOfMaps, ebpf.HashOfMaps,
		ebpf.Queue, ebpf.Stack}
)

var mapRoles = map[Kind]mapRole{
	Register: {types: arrays, looked: true, why: "rules 1 to 4; one stateful unit and the SRAM of its bits, in its stage"},
	Tally:    {types: perCPU, looked: true, why: "a register that the data plane never reads back; costs the same"},
	Counters: {types: perCPU, entries: 2, bytes: 8 * counterWords, looked: true,
		why: "an element a bank, so few words that no sketch fits in, added to and never read back; an indirect counter of one SRAM block"},
	Budget: {types: perCPU, names: []string{"recirc_budget"}, entries: chainSlots, looked: true,
		why: "the program's own element decides whether there is a second pass, and nothing else; a meter"},
	Random: {types: perCPU, entries: 1, bytes: 8, looked: true,
		why: "one number a CPU that moves on by an invertible linear step from itself or the kernel's; a random number generator"},
	Scratch: {types: perCPU, entries: 1, looked: true, why: "what this packet has written on this path; header fields and metadata"},
	Table:   {types: tables, looked: true, why: "written by userspace; a match-action table, read as often as its twin has tables"},
	Slots: {types: []ebpf.MapType{ebpf.ProgramArray}, names: []string{"chain_xdp", "chain_tc"},
		why: "the chain moves forward; on a switch the programs lie side by side"},
	Recirc: {types: []ebpf.MapType{ebpf.ProgramArray}, names: []string{"recirc_xdp", "recirc_tc"}, why: "the second pass, within rule 5"},
	Ring:   {types: []ebpf.MapType{ebpf.RingBuf, ebpf.PerfEventArray}, why: "digests to userspace"},
	Constant: {types: []ebpf.MapType{ebpf.Array}, entries: 1, frozen: true, looked: true,
		why: "constants that the loader has set before the proof; immediates of the twin"},
	Untagged: {types: append([]ebpf.MapType{ebpf.ProgramArray}, tables...), looked: true,
		why: "configuration; as a table; programs that nobody may call"},
}

// sharedMaps are the maps that all collections of an instance have in common, and what they must be in each: one
// collection's table is not another's register.
var sharedMaps = map[string]Kind{
	vectorName: Scratch, controlName: Table, "recirc_budget": Budget, "hash_crc_tables": Table,
	"chain_xdp": Slots, "chain_tc": Slots, "recirc_xdp": Recirc, "recirc_tc": Recirc,
}

// mapFlags are what may be said of a map to the kernel: none of them changes what programs may do but readOnlyProgram.
const mapFlags = readOnlyProgram | unix.BPF_F_NO_PREALLOC | unix.BPF_F_MMAPABLE | unix.BPF_F_INNER_MAP | unix.BPF_F_NUMA_NODE

// readOnlyProgram says that the kernel refuses writes of programs.
const readOnlyProgram = unix.BPF_F_RDONLY_PROG

// oversized says in which way a map could keep more than its role allows; "" when it cannot.
func (a *array) oversized() string {
	role, spec := mapRoles[a.kind], a.spec
	switch {
	case !slices.Contains(role.types, spec.Type):
		return fmt.Sprintf("a map of type %s cannot be a %s: it is one of %s", spec.Type, a.kind, typeNames(role.types))
	case role.entries > 0 && spec.MaxEntries > role.entries:
		return fmt.Sprintf("a %s has at most %d elements, not %d", a.kind, role.entries, spec.MaxEntries)
	case role.bytes > 0 && spec.ValueSize > role.bytes:
		return fmt.Sprintf("an element of %s has at most %d bytes, not %d", a.kind, role.bytes, spec.ValueSize)
	}
	return ""
}

// unlisted says in which way a map is not declared as its role has to be; "" when it is.
func (a *array) unlisted() string {
	role, spec := mapRoles[a.kind], a.spec
	shared, isShared := sharedMaps[a.name]
	switch {
	case isShared && shared != a.kind:
		return fmt.Sprintf("a map of this name is shared by all programs and a %s, not a %s", shared, a.kind)
	case role.names != nil && !slices.Contains(role.names, a.name), a.shared && !isShared:
		return fmt.Sprintf("no %s has this name", a.kind)
	case role.frozen && spec.Flags&readOnlyProgram == 0:
		return fmt.Sprintf("a %s is read-only to programs", a.kind)
	}
	return unlistedForm(spec)
}

// unlistedForm is about what maps of all kinds have.
func unlistedForm(spec *ebpf.MapSpec) string {
	switch {
	case spec.Flags&^mapFlags != 0:
		return fmt.Sprintf("flags %#x are not on the list", spec.Flags&^mapFlags)
	case spec.Pinning != ebpf.PinNone:
		return "it is pinned by name: two maps of that name would be one"
	case spec.MapExtra != 0:
		return fmt.Sprintf("map_extra %#x is not on the list", spec.MapExtra)
	case isMapOfMaps(spec.Type) && (spec.InnerMap == nil || spec.InnerMap.Flags&readOnlyProgram == 0):
		return "an inner map that programs may write could be a register: declare it with BPF_F_RDONLY_PROG"
	case isMapOfMaps(spec.Type) && !slices.Contains(tables, spec.InnerMap.Type):
		return fmt.Sprintf("an inner map of type %s is no table", spec.InnerMap.Type)
	}
	return ""
}

func typeNames(types []ebpf.MapType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
