package twins

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/maps"
)

// memory is where the words of one of the bytecode's arrays are, mapped: a test reads whole arrays after some packets, and the kernel copies a batch
// element by element.
type memory struct {
	of                          []byte
	stride, at, width, elements int // of an element, and of the array's word in it, bytes
}

// mappable has the kernel make arrays that can be mapped. Per-CPU arrays cannot be, and those that several objects share have to be declared alike.
func mappable(spec *ebpf.CollectionSpec) {
	for name, ms := range spec.Maps {
		if ms.Type == ebpf.Array && ms.Flags&declared.ReadOnlyProgram == 0 && !strings.HasPrefix(name, ".") && !slices.Contains(ms.Tags, maps.TagShared) {
			ms.Flags |= unix.BPF_F_MMAPABLE
		}
	}
}

// memoryOf an array; nil: it is read by system calls.
func (h *host) memoryOf(a *maps.Array) (*memory, error) {
	if m, known := h.memory[a.Name]; known {
		return m, nil
	}
	h.memory[a.Name] = nil
	ms := maps.MapOf(h.spec, a.Name)
	if ms == nil || ms.Flags&unix.BPF_F_MMAPABLE == 0 {
		return nil, nil
	}
	places := maps.Places(ms.Name, ms)
	i := slices.IndexFunc(places, func(p maps.Place) bool { return p.Name == a.Name })
	if i < 0 || places[i].Width != 4 && places[i].Width != 8 {
		return nil, nil
	}
	m := &memory{stride: (int(ms.ValueSize) + 7) &^ 7, at: i * places[i].Width, width: places[i].Width, elements: a.Entries * a.Banks}
	page := unix.Getpagesize()
	var err error
	if m.of, err = unix.Mmap(a.Map().FD(), 0, (m.elements*m.stride+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map array %s: %w", a.Name, err)
	}
	h.memory[a.Name] = m
	return m, nil
}

// unmap all arrays.
func (h *host) unmap() (err error) {
	for _, m := range h.memory {
		if m != nil {
			err = errors.Join(err, unix.Munmap(m.of))
		}
	}
	clear(h.memory)
	return err
}

// words of all elements.
func (m *memory) words() []uint64 {
	all := make([]uint64, m.elements)
	for i := range all {
		all[i] = m.element(i)
	}
	return all
}

// element is one word.
func (m *memory) element(i int) uint64 {
	b := m.of[i*m.stride+m.at:]
	if m.width == 4 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

// put words into elements.
func (m *memory) put(keys []uint32, words []uint64) {
	for i, key := range keys {
		b := m.of[int(key)*m.stride+m.at:]
		if m.width == 4 {
			binary.NativeEndian.PutUint32(b, uint32(words[i]))
		} else {
			binary.NativeEndian.PutUint64(b, words[i])
		}
	}
}
