package declared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// role of a map: an entry of the list of kinds. A map of another type, name or size is refused.
type MapRole struct {
	Types   []ebpf.MapType
	Names   []string // nil: any that is not shared
	Entries uint32   // at most; 0: as many as fit the switch
	Bytes   uint32   // of an element, at most; 0: as many as fit the switch
	frozen  bool     // the kernel refuses writes of programs
	Looked  bool     // programs may look elements up
	Why     string   // why it is not state, and its cost on a switch
}

const (
	ChainSlots   = 16 // CHAIN_SLOTS of chain.h
	counterWords = 64
)

var (
	arrays = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray}
	perCPU = []ebpf.MapType{ebpf.PerCPUArray}
	tables = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray, ebpf.Hash, ebpf.PerCPUHash, ebpf.LPMTrie, ebpf.ArrayOfMaps, ebpf.HashOfMaps,
		ebpf.Queue, ebpf.Stack}
)

// MapRoles is the list of roles by kind.
var MapRoles = map[Kind]MapRole{
	Register: {Types: arrays, Looked: true, Why: "rules 1 to 4; one stateful unit and the SRAM of its bits, in its stage"},
	Tally:    {Types: perCPU, Looked: true, Why: "a register that the data plane never reads back; costs the same"},
	Counters: {Types: perCPU, Entries: 2, Bytes: 8 * counterWords, Looked: true,
		Why: "an element a bank, so few words that no sketch fits in, added to and never read back; an indirect counter of one SRAM block"},
	Budget: {Types: perCPU, Names: []string{"recirc_budget"}, Entries: ChainSlots, Looked: true,
		Why: "the program's own element decides whether there is a second pass, and nothing else; a meter"},
	Random: {Types: perCPU, Entries: 1, Bytes: 8, Looked: true,
		Why: "one number a CPU that moves on by an invertible linear step from itself or the kernel's; a random number generator"},
	Scratch: {Types: perCPU, Entries: 1, Looked: true, Why: "what this packet has written on this path; header fields and metadata"},
	Table:   {Types: tables, Looked: true, Why: "written by userspace; a match-action table, read as often as its twin has tables"},
	Prefix: {Types: []ebpf.MapType{ebpf.Array}, Bytes: 8, Looked: true,
		Why: "written by userspace; the words of a trie, which all together are one lpm table of a switch for each address that is looked up"},
	Slots: {Types: []ebpf.MapType{ebpf.ProgramArray}, Names: []string{"chain_xdp", "chain_tc", "chain_tp"},
		Why: "the chain moves forward; on a switch the programs lie side by side"},
	Recirc: {Types: []ebpf.MapType{ebpf.ProgramArray}, Names: []string{"recirc_xdp", "recirc_tc"}, Why: "the second pass, within rule 5"},
	Ring:   {Types: []ebpf.MapType{ebpf.RingBuf, ebpf.PerfEventArray}, Why: "digests to userspace"},
	Constant: {Types: []ebpf.MapType{ebpf.Array}, Entries: 1, frozen: true, Looked: true,
		Why: "constants that the loader has set before the proof; immediates of the twin"},
	Untagged: {Types: append([]ebpf.MapType{ebpf.ProgramArray}, tables...), Looked: true,
		Why: "configuration; as a table; programs that may not be called"},
}

// SharedMaps are the maps that all collections of an instance share, with their kind, which must be equal in all: one
// collection's table must not be another's register.
var SharedMaps = map[string]Kind{
	VectorName: Scratch, ControlName: Table, "recirc_budget": Budget, "hash_crc_tables": Table,
	"chain_xdp": Slots, "chain_tc": Slots, "chain_tp": Slots, "recirc_xdp": Recirc, "recirc_tc": Recirc,
}

// mapFlags are the allowed flags of a map: of them only readOnlyProgram changes the access of programs.
const mapFlags = ReadOnlyProgram | unix.BPF_F_NO_PREALLOC | unix.BPF_F_MMAPABLE | unix.BPF_F_INNER_MAP | unix.BPF_F_NUMA_NODE

// ReadOnlyProgram: the kernel refuses writes of programs.
const ReadOnlyProgram = unix.BPF_F_RDONLY_PROG

// oversized names the property by which a map could hold more state than its role allows; "" if there is none.
func (a *Array) oversized() string {
	role, spec := MapRoles[a.Kind], a.Spec
	switch {
	case !slices.Contains(role.Types, spec.Type):
		return fmt.Sprintf("a map of type %s cannot be a %s: it is one of %s", spec.Type, a.Kind, TypeNames(role.Types))
	case role.Entries > 0 && spec.MaxEntries > role.Entries:
		return fmt.Sprintf("a %s has at most %d elements, not %d", a.Kind, role.Entries, spec.MaxEntries)
	case role.Bytes > 0 && spec.ValueSize > role.Bytes:
		return fmt.Sprintf("an element of %s has at most %d bytes, not %d", a.Kind, role.Bytes, spec.ValueSize)
	}
	return ""
}

// unlisted names the property of a map's declaration that its role does not allow; "" if there is none.
func (a *Array) unlisted() string {
	role, spec := MapRoles[a.Kind], a.Spec
	shared, isShared := SharedMaps[a.Name]
	switch {
	case isShared && shared != a.Kind:
		return fmt.Sprintf("a map of this name is shared by all programs and a %s, not a %s", shared, a.Kind)
	case role.Names != nil && !slices.Contains(role.Names, a.Name), a.Shared && !isShared:
		return fmt.Sprintf("no %s has this name", a.Kind)
	case role.frozen && spec.Flags&ReadOnlyProgram == 0:
		return fmt.Sprintf("a %s is read-only to programs", a.Kind)
	}
	return unlistedForm(spec)
}

// unlistedForm checks the properties that maps of all kinds have.
func unlistedForm(spec *ebpf.MapSpec) string {
	switch {
	case spec.Flags&^mapFlags != 0:
		return fmt.Sprintf("flags %#x are not on the list", spec.Flags&^mapFlags)
	case spec.Pinning != ebpf.PinNone:
		return "it is pinned by name: two maps of that name would be one"
	case spec.MapExtra != 0:
		return fmt.Sprintf("map_extra %#x is not on the list", spec.MapExtra)
	case IsMapOfMaps(spec.Type) && (spec.InnerMap == nil || spec.InnerMap.Flags&ReadOnlyProgram == 0):
		return "an inner map that programs may write could be a register: declare it with BPF_F_RDONLY_PROG"
	case IsMapOfMaps(spec.Type) && !slices.Contains(tables, spec.InnerMap.Type):
		return fmt.Sprintf("an inner map of type %s is no table", spec.InnerMap.Type)
	}
	return ""
}

// TypeNames lists types for a message.
func TypeNames(types []ebpf.MapType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// IsMapOfMaps reports whether a lookup gives another map.
func IsMapOfMaps(t ebpf.MapType) bool { return t == ebpf.ArrayOfMaps || t == ebpf.HashOfMaps }
