package maps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

const (
	// tagArrays names register arrays that are interleaved in one map: an element of the map has a word of each.
	tagArrays = "pisa:arrays="
	// atStage separates the name of such an array from its stage, where that is not the map's.
	atStage = "@"
)

// ErrWords is returned where a map does not have the words that SetWords cuts off.
var ErrWords = errors.New("its elements do not have that many words")

// Place is a register array of a map.
type Place struct {
	Name  string
	Stage int
	Width int // bytes
}

// Places are the register arrays in a map: the map itself if none are interleaved in it.
func Places(name string, ms *ebpf.MapSpec) (list []Place) {
	stage, _ := Stage(ms)
	names := listed(ms)
	if names == nil {
		return []Place{{name, stage, int(ms.ValueSize)}}
	}
	for _, name := range names {
		one := Place{name, stage, int(ms.ValueSize) / len(names)}
		if own, at, apart := strings.Cut(name, atStage); apart {
			one.Name = own
			one.Stage, _ = strconv.Atoi(at)
		}
		list = append(list, one)
	}
	return list
}

// listed are the arrays in a map's tag; nil without a tag.
func listed(ms *ebpf.MapSpec) []string {
	for _, tag := range ms.Tags {
		if names, ok := strings.CutPrefix(tag, tagArrays); ok {
			return strings.Split(names, ",")
		}
	}
	return nil
}

// MapOf is the map that a register array is in; nil: there is none of that name.
func MapOf(spec *ebpf.CollectionSpec, array string) *ebpf.MapSpec {
	if ms, ok := spec.Maps[array]; ok {
		return ms
	}
	for name, ms := range spec.Maps {
		if slices.ContainsFunc(Places(name, ms), func(p Place) bool { return p.Name == array }) {
			return ms
		}
	}
	return nil
}

// SetWords cuts a map of interleaved arrays to the first n: a program that is configured not to use the others takes no memory
// for them.
func SetWords(spec *ebpf.CollectionSpec, name string, n int) error {
	ms, ok := spec.Maps[name]
	if !ok {
		return fmt.Errorf("cut words of array %s: %w", name, ErrNoMap)
	}
	names, value := listed(ms), cutType(ms.Value, n)
	if n < 1 || n > len(names) || value == nil {
		return fmt.Errorf("cut words of array %s to %d: %w", name, n, ErrWords)
	}
	for i, tag := range ms.Tags {
		if strings.HasPrefix(tag, tagArrays) {
			ms.Tags = slices.Clone(ms.Tags)
			ms.Tags[i] = tagArrays + strings.Join(names[:n], ",")
		}
	}
	ms.Value, ms.ValueSize = value, uint32(8*n)
	return nil
}

// cutType is the type of an element with n words: `struct { __u64 of[n]; }`. The kernel compares it with the value's size.
func cutType(t btf.Type, n int) btf.Type {
	element, ok := btf.Copy(t).(*btf.Struct)
	if !ok || len(element.Members) != 1 {
		return nil
	}
	words, ok := element.Members[0].Type.(*btf.Array)
	if !ok {
		return nil
	}
	words.Nelems, element.Size = uint32(n), uint32(8*n)
	return element
}

// word is the position of an interleaved array.
type word struct {
	of    *Array // the map's elements as an array; nil: not interleaved
	place int
}

// interleaved are the arrays of a map, one for each word of its elements.
func (a *Array) interleaved(ms *ebpf.MapSpec) map[string]*Array {
	list := map[string]*Array{}
	for i, p := range Places(a.Name, ms) {
		if p.Name != a.Name {
			list[p.Name] = &Array{Name: p.Name, Kind: a.Kind, Entries: a.Entries, Banks: a.Banks, ElemSize: 8, PerCPU: a.PerCPU, m: a.m, first: a.first, part: a.part, tags: a.tags, among: word{a, i}}
		}
	}
	return list
}

// At is one element of one word of an array that is not per CPU.
func (a *Array) At(key uint32) (uint64, error) {
	if a.among.of == nil {
		var one [1]uint64
		err := a.readOne(key, one[:])
		return one[0], err
	}
	all := make([]uint64, a.among.of.wordsPerElement())
	err := a.among.of.readOne(key, all)
	return all[a.among.place], err
}

// read adds the elements of a bank to dst.
func (w word) read(bank int, dst []uint64) error {
	all, n := make([]uint64, w.of.Words()), w.of.wordsPerElement()
	if err := w.of.read(bank, all); err != nil {
		return err
	}
	for e := range dst {
		dst[e] += all[e*n+w.place]
	}
	return nil
}

// put writes elements and leaves the other arrays of the map unchanged.
func (w word) put(keys []uint32, words []uint64) error {
	w.of.written = true
	for i, key := range keys {
		copies, err := w.of.element(key)
		if err != nil {
			return err
		}
		for _, b := range copies {
			binary.NativeEndian.PutUint64(b[8*w.place:], words[i])
		}
		if err := w.of.putElement(key, copies); err != nil {
			return err
		}
	}
	return nil
}

// element is the value of a key: a copy for each CPU, or one.
func (a *Array) element(key uint32) (copies [][]byte, err error) {
	if !a.plain() {
		return copies, a.m.Lookup(a.key(key), &copies)
	}
	for _, at := range a.placed([]uint32{key}) {
		b := make([]byte, a.ElemSize)
		if err := a.m.Lookup(at, b); err != nil {
			return nil, err
		}
		copies = append(copies, b)
	}
	return copies, nil
}

// putElement writes the value of a key, as element returns it.
func (a *Array) putElement(key uint32, copies [][]byte) error {
	if !a.plain() {
		return a.m.Update(a.key(key), copies, ebpf.UpdateAny)
	}
	for cpu, at := range a.placed([]uint32{key}) {
		if err := a.m.Update(at, copies[cpu], ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}
