package structure

import (
	"maps"
	"math/bits"
	"slices"
)

// set of sources, by the numbers of names.
type set [4]uint64

// names numbers sources.
type names map[string]int

func (n names) of(name string) (s set) {
	i, ok := n[name]
	if !ok {
		i = len(n)
		n[name] = i
	}
	if i >= 64*len(s) {
		panic("structure: more sources than a set has room for")
	}
	s[i/64] = 1 << (i % 64)
	return s
}

func (n names) sorted(s set) []string {
	out := make([]string, 0, s.size())
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if i := n[name]; s[i/64]>>(i%64)&1 != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (s set) or(o set) set {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

func (s set) without(o set) set {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

func (s set) size() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
