package twins

import (
	"encoding/binary"
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
	of                          *ebpf.Memory
	stride, at, width, elements int // of an element, and of the array's word in it, bytes
}

// mappable has the kernel make arrays that can be mapped. What a CPU has of its own cannot be, and what several objects share has to be declared alike.
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
	of, err := a.Map().Memory()
	if err != nil {
		return nil, fmt.Errorf("map array %s: %w", a.Name, err)
	}
	h.memory[a.Name] = &memory{of: of, stride: (int(ms.ValueSize) + 7) &^ 7, at: i * places[i].Width, width: places[i].Width, elements: a.Entries * a.Banks}
	return h.memory[a.Name], nil
}

// words of all elements; buffer is reused.
func (m *memory) words(buffer []byte) (all []uint64, _ []byte, err error) {
	buffer = slices.Grow(buffer[:0], m.elements*m.stride)[:m.elements*m.stride]
	if _, err := m.of.ReadAt(buffer, 0); err != nil {
		return nil, buffer, err
	}
	all = make([]uint64, m.elements)
	for i := range all {
		all[i] = m.word(buffer[i*m.stride+m.at:])
	}
	return all, buffer, nil
}

func (m *memory) word(b []byte) uint64 {
	if m.width == 4 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

// element is one word.
func (m *memory) element(i int) (uint64, error) {
	var b [8]byte
	_, err := m.of.ReadAt(b[:m.width], int64(i*m.stride+m.at))
	return m.word(b[:]), err
}

// put words into elements.
func (m *memory) put(keys []uint32, words []uint64) error {
	var b [8]byte
	for i, key := range keys {
		if m.width == 4 {
			binary.NativeEndian.PutUint32(b[:], uint32(words[i]))
		} else {
			binary.NativeEndian.PutUint64(b[:], words[i])
		}
		if _, err := m.of.WriteAt(b[:m.width], int64(int(key)*m.stride+m.at)); err != nil {
			return err
		}
	}
	return nil
}
