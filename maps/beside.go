package maps

import (
	"encoding/binary"
	"strings"

	"github.com/cilium/ebpf"
)

// tagArrays names register arrays that stand side by side in one map: an element of the map has a word of each.
const tagArrays = "pisa:arrays="

// Arrays are the names of the register arrays in a map: its own name, if it is one.
func Arrays(name string, ms *ebpf.MapSpec) []string {
	for _, tag := range ms.Tags {
		if names, ok := strings.CutPrefix(tag, tagArrays); ok {
			return strings.Split(names, ",")
		}
	}
	return []string{name}
}

// word is where an array is that stands beside others.
type word struct {
	of    *Array // all of them; nil: it stands alone
	place int
}

// apart are the arrays of a map that stand side by side.
func (a *Array) apart(ms *ebpf.MapSpec) map[string]*Array {
	list := map[string]*Array{}
	for i, name := range Arrays(a.Name, ms) {
		if name != a.Name {
			list[name] = &Array{Name: name, Kind: a.Kind, Entries: a.Entries, Banks: a.Banks, ElemSize: 8, m: a.m, tags: a.tags, among: word{a, i}}
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

// read adds elements from key first on to dst.
func (w word) read(first int, dst []uint64) error {
	all, n := make([]uint64, w.of.Words()), w.of.wordsPerElement()
	if err := w.of.read(first, all); err != nil {
		return err
	}
	for e := range dst {
		dst[e] += all[e*n+w.place]
	}
	return nil
}

// put writes elements and leaves the arrays beside as they are.
func (w word) put(keys []uint32, words []uint64) error {
	w.of.written = true
	b := make([]byte, w.of.ElemSize)
	for i, key := range keys {
		if err := w.of.m.Lookup(key, b); err != nil {
			return err
		}
		binary.NativeEndian.PutUint64(b[8*w.place:], words[i])
		if err := w.of.m.Update(key, b, ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}
