package machine

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// simValue is a number, a pointer to a byte of a memory, a map or a function of a simulated program.
type simValue struct {
	n      uint64 // the number, or the offset in mem
	mem    *simMemory
	table  *simMap
	code   string
	lookup int // of an element: which lookup of the packet gave it
}

func (v simValue) isPointer() bool { return v.mem != nil || v.table != nil || v.code != "" }

// simMemory is a range of bytes; pointers that were stored in it keep what they point to.
type simMemory struct {
	what     string
	data     []byte
	pointers map[int]simValue
	from, to int     // what may be accessed
	owner    *simMap // of an element
	index    int
}

func newMemory(what string, size int, fill *rand.Rand) *simMemory {
	m := &simMemory{what: what, data: make([]byte, size), pointers: make(map[int]simValue), to: size}
	m.spoil(fill)
	return m
}

// spoil fills memory with data of earlier packets.
func (m *simMemory) spoil(r *rand.Rand) {
	if r == nil {
		return
	}
	for i := range m.data {
		m.data[i] = byte(r.Uint32N(4))
	}
}

// invalid ends a program that the kernel's verifier would refuse.
type invalid string

func (m *simMemory) check(off, size int) {
	if off < m.from || off+size > m.to {
		panic(invalid("access outside of " + m.what))
	}
}

func (m *simMemory) load(off, size int) simValue {
	m.check(off, size)
	for at, v := range m.pointers {
		if at < off+size && off < at+8 {
			if at != off || size != 8 {
				panic(invalid("part of a pointer"))
			}
			return v
		}
	}
	var raw [8]byte
	copy(raw[:], m.data[off:off+size])
	return simValue{n: binary.LittleEndian.Uint64(raw[:])}
}

func (m *simMemory) store(off, size int, v simValue) {
	m.check(off, size)
	for at := range m.pointers {
		if at < off+size && off < at+8 {
			delete(m.pointers, at)
		}
	}
	if v.isPointer() {
		if size != 8 || m.what != "stack" {
			panic(invalid("a pointer leaks"))
		}
		m.pointers[off] = v
		return
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], v.n)
	copy(m.data[off:off+size], raw[:size])
}

// bytes are those of [off, off+size), which a helper reads.
func (m *simMemory) bytes(off, size int) []byte {
	m.check(off, size)
	for at := range m.pointers {
		if at < off+size && off < at+8 {
			panic(invalid("a helper reads a pointer"))
		}
	}
	return m.data[off : off+size]
}

func (m *simMemory) fill(off int, with []byte) {
	m.check(off, len(with))
	for i, b := range with {
		m.store(off+i, 1, simValue{n: uint64(b)})
	}
}

// simMap is a map of a simulated program.
type simMap struct {
	name     string
	kind     declared.Kind
	spec     *ebpf.MapSpec
	stages   []int // of the arrays in it
	apart    bool  // words of an element are of arrays of their own
	elements []*simMemory
}

func (m *simMap) staged() bool { return m.kind == declared.Register || m.kind == declared.Tally }

func newSimMap(name string, a *declared.Array) *simMap {
	m := &simMap{name: name, kind: a.Kind, spec: a.Spec, stages: slices.Repeat([]int{a.Stage}, a.Beside), apart: a.Beside > 1}
	for _, tag := range a.Spec.Tags {
		names, _ := strings.CutPrefix(tag, "pisa:arrays=")
		for i, name := range strings.Split(names, ",") {
			if _, stage, apart := strings.Cut(name, "@"); apart {
				m.stages[i] = int(stage[0] - '0')
			}
		}
	}
	if a.Spec.Type == ebpf.RingBuf || a.Spec.Type == ebpf.PerfEventArray || a.Spec.Type == ebpf.ProgramArray {
		return m
	}
	for i := range min(a.Spec.MaxEntries, 16) {
		e := newMemory(name, int(a.Spec.ValueSize), nil)
		e.owner, e.index = m, int(i)
		m.elements = append(m.elements, e)
	}
	return m
}

// at is the element of a key; nil when there is none.
func (m *simMap) at(key []byte) *simMemory {
	i := uint64(binary.LittleEndian.Uint32(key))
	if m.spec.Type == ebpf.Hash || m.spec.Type == ebpf.LPMTrie {
		i = uint64(key[len(key)-1]) & 3 // some keys are there, others are not
	}
	if i >= uint64(len(m.elements)) {
		return nil
	}
	return m.elements[i]
}
