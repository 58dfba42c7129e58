package maps

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
)

// Tags that bpf/include/register.h puts on maps.
const (
	TagRegister = "pisa:register"
	TagTally    = "pisa:tally"
	TagCounters = "pisa:counters"
	TagTable    = "pisa:table"
	TagBanked   = "pisa:banked"
	TagShared   = "xdpmon:shared" // one map for all objects of an instance
	tagStage    = "pisa:stage="
	tagRandom   = "pisa:random"  // a generator's state
	tagScratch  = "pisa:scratch" // the packet's vector
)

// ErrNoMap is returned for a name that the object does not declare.
var ErrNoMap = errors.New("no such map")

// Set holds the loaded maps of one algorithm.
type Set struct {
	arrays      map[string]*Array // by map
	interleaved map[string]*Array // interleaved arrays of maps
}

// NewSet pairs loaded maps with their specs.
func NewSet(spec *ebpf.CollectionSpec, loaded map[string]*ebpf.Map) *Set {
	return newSet(spec, loaded, func(*ebpf.MapSpec, *Array) {})
}

// NewPart is the set of one of several instances that have parts of the same maps; spec has the size of a part, and common names the maps
// without parts. A per-CPU array may be in a plain map: a part is then all elements of one CPU after those of another.
func NewPart(spec *ebpf.CollectionSpec, loaded map[string]*ebpf.Map, number int, common func(*ebpf.MapSpec) bool) *Set {
	return newSet(spec, loaded, func(ms *ebpf.MapSpec, a *Array) {
		if common(ms) || ms.Type == ebpf.RingBuf {
			return
		}
		a.Entries = int(ms.MaxEntries) / a.Banks
		a.first, a.part = number*int(ms.MaxEntries), true
		if ms.Type == ebpf.PerCPUArray && !a.PerCPU {
			a.PerCPU, a.spread = true, int(ms.MaxEntries)
			a.first *= PossibleCPUs()
		}
	})
}

func newSet(spec *ebpf.CollectionSpec, loaded map[string]*ebpf.Map, place func(*ebpf.MapSpec, *Array)) *Set {
	s := &Set{arrays: map[string]*Array{}, interleaved: map[string]*Array{}}
	for name, m := range loaded {
		if ms, ok := spec.Maps[name]; ok {
			s.arrays[name] = newArray(ms, m)
			place(ms, s.arrays[name])
			maps.Copy(s.interleaved, s.arrays[name].interleaved(ms))
		}
	}
	return s
}

// Array finds an array by the name it has in the C source.
func (s *Set) Array(name string) (*Array, error) {
	a, ok := s.arrays[name]
	if !ok {
		a, ok = s.interleaved[name]
	}
	if !ok {
		return nil, fmt.Errorf("find array %s: %w", name, ErrNoMap)
	}
	return a, nil
}

// ReadReset reads an array of a closed bank by its name and sets it back to zero. The words are overwritten by the next call.
func (s *Set) ReadReset(name string, bank int) ([]uint64, error) {
	a, err := s.Array(name)
	if err != nil {
		return nil, err
	}
	a.words, err = a.ReadReset(bank, a.words)
	return a.words, err
}

// all arrays: those of maps, and interleaved ones.
func (s *Set) all() iter.Seq[*Array] {
	return func(yield func(*Array) bool) {
		for _, of := range []map[string]*Array{s.arrays, s.interleaved} {
			for _, a := range of {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// MarkIdle records that no packet has arrived since a closed bank was opened: its register arrays still hold the zeros that the last reading
// left, and arrays without banks are unchanged. Until EndIdle, reading elements that are known to be zero takes no system call.
func (s *Set) MarkIdle(bank int) {
	for a := range s.all() {
		a.idle = bank + 1
	}
}

// MarkEmpty records that the part of an instance that has had no packet yet holds only zeros.
func (s *Set) MarkEmpty() {
	for a := range s.all() {
		a.empty = a.part && a.Banks == 1
	}
}

// AtRest reports whether all registers, tallies and counters are known to hold zeros in a bank, between MarkIdle and EndIdle.
func (s *Set) AtRest(bank int) bool {
	for _, a := range s.arrays {
		if (a.Kind == TagRegister || a.Kind == TagTally || a.Kind == TagCounters) && !a.isZero(bank) {
			return false
		}
	}
	return true
}

// EndIdle ends MarkIdle: packets arrive in the bank again.
func (s *Set) EndIdle() {
	for a := range s.all() {
		a.idle, a.words = 0, nil // most instances are idle most of the time, so the buffer of readings is released
	}
}

// MarkDirty records that packets have arrived: the content of arrays is unknown until they are read again.
func (s *Set) MarkDirty() {
	for a := range s.all() {
		a.empty = false
	}
}

// Forget sets everything that packets write to zero, in both banks: not every bank is reset at the end of a window. Userspace writes
// its own initial values again.
func (s *Set) Forget() error {
	for _, a := range s.arrays {
		state := []string{TagRegister, TagTally, TagCounters, tagRandom, tagScratch}
		if !slices.ContainsFunc(state, func(tag string) bool { return slices.Contains(a.tags, tag) }) {
			continue
		}
		for bank := range a.Banks {
			if err := a.forget(bank); err != nil {
				return err
			}
		}
	}
	return nil
}

// Clear sets a part of maps to zero, including tables: an earlier instance used it.
func (s *Set) Clear() error {
	for _, a := range s.arrays {
		if !a.part {
			continue
		}
		for bank := range a.Banks {
			if err := a.Reset(bank); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget a bank. Most words that each CPU has are zero already, and reading them takes a fifth of the time of writing them.
func (a *Array) forget(bank int) (err error) {
	if !a.PerCPU || a.ElemSize%8 != 0 {
		return a.Reset(bank)
	}
	a.words, err = a.ReadReset(bank, a.words)
	return err
}

// Names lists the arrays, sorted.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.arrays))
	for name := range s.arrays {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Memory adds up what the register arrays and tallies occupy: as declared (both banks, all CPUs), and as the
// kernel allocates it (elements rounded up to 8 bytes).
func (s *Set) Memory() (declared, kernel int64) {
	for _, a := range s.arrays {
		if a.Kind != TagRegister && a.Kind != TagTally {
			continue
		}
		copies := int64(a.Entries) * int64(a.Banks)
		if a.PerCPU {
			copies *= int64(PossibleCPUs())
		}
		declared += copies * int64(a.ElemSize)
		kernel += copies * int64((a.ElemSize+7)/8*8)
	}
	return declared, kernel
}

// SetEntries gives a register array, tally or table n entries (a bank): the map's size and the constant
// NAME_entries that the program computes with.
func SetEntries(spec *ebpf.CollectionSpec, name string, n uint32) error {
	ms, ok := spec.Maps[name]
	if !ok {
		return fmt.Errorf("size array %s: %w", name, ErrNoMap)
	}
	if n == 0 {
		return fmt.Errorf("size array %s: 0 entries", name)
	}
	ms.MaxEntries = n * uint32(banks(ms))
	v, ok := spec.Variables[name+"_entries"]
	if !ok {
		return nil
	}
	if err := v.Set(n); err != nil {
		return fmt.Errorf("size array %s: %w", name, err)
	}
	return nil
}

// SetConstants sets constants by their generated names; each value has the constant's size.
func SetConstants(spec *ebpf.CollectionSpec, values map[constant.Name]any) error {
	for name, v := range values {
		if err := SetConstant(spec, name.String(), v); err != nil {
			return err
		}
	}
	return nil
}

// SetConstant sets a `const volatile` variable of the object; v has the variable's size.
func SetConstant(spec *ebpf.CollectionSpec, name string, v any) error {
	variable, ok := spec.Variables[name]
	if !ok {
		return fmt.Errorf("set constant %s: not declared by the object", name)
	}
	if err := variable.Set(v); err != nil {
		return fmt.Errorf("set constant %s: %w", name, err)
	}
	return nil
}

// Stage returns the pipeline stage of a register array or tally.
func Stage(ms *ebpf.MapSpec) (int, bool) {
	for _, tag := range ms.Tags {
		if text, ok := strings.CutPrefix(tag, tagStage); ok {
			n, err := strconv.Atoi(text)
			return n, err == nil
		}
	}
	return 0, false
}

// SetStage moves a register array to another pipeline stage: for programs whose parameters set the number of arrays.
func SetStage(spec *ebpf.CollectionSpec, name string, stage int) error {
	ms, ok := spec.Maps[name]
	if !ok {
		return fmt.Errorf("move array %s: %w", name, ErrNoMap)
	}
	for n, tag := range ms.Tags {
		if strings.HasPrefix(tag, tagStage) {
			ms.Tags = slices.Clone(ms.Tags)
			ms.Tags[n] = tagStage + strconv.Itoa(stage)
			return nil
		}
	}
	return fmt.Errorf("move array %s: it has no stage", name)
}

func banks(ms *ebpf.MapSpec) int {
	if slices.Contains(ms.Tags, TagBanked) {
		return 2
	}
	return 1
}

// PossibleCPUs is the number of copies a per-CPU map has.
func PossibleCPUs() int {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return runtime.NumCPU()
	}
	return n
}

// SpecMemory is the number of bytes that the kernel will allocate for the values of an object's maps, except shared ones.
func SpecMemory(spec *ebpf.CollectionSpec) (bytes int64) {
	for _, ms := range spec.Maps {
		switch {
		case slices.Contains(ms.Tags, TagShared), strings.HasPrefix(ms.Name, "."):
			continue
		case ms.Type == ebpf.RingBuf:
			bytes += int64(ms.MaxEntries)
			continue
		}
		one := int64(ms.MaxEntries) * int64((ms.ValueSize+7)/8*8)
		if ms.Type == ebpf.PerCPUArray {
			one *= int64(PossibleCPUs())
		}
		bytes += one
	}
	return bytes
}
