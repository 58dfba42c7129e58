package maps

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNotShared is returned for an array that is not declared with BPF_F_MMAPABLE, or whose elements are not made of 64-bit words.
var ErrNotShared = errors.New("not an array of 64-bit words that is mapped into memory")

// Shared is an array of 64-bit words in this process' memory: reading and writing words that packets read and write costs no system call.
// The banks are consecutive in memory, and so are the words of an element. The mapping ends with it.
type Shared struct{ words []uint64 }

// Shared maps the array.
func (a *Array) Shared() (*Shared, error) {
	fail := func(err error) (*Shared, error) { return nil, fmt.Errorf("map array %s: %w", a.Name, err) }
	if a.PerCPU || a.ElemSize%8 != 0 || a.m.Flags()&unix.BPF_F_MMAPABLE == 0 {
		return fail(ErrNotShared)
	}
	n, page := a.Words()*a.Banks, os.Getpagesize()
	mapped, err := unix.Mmap(a.m.FD(), 0, (8*n+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	a.written = true
	s := &Shared{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mapped))), n)}
	runtime.AddCleanup(s, func(b []byte) { _ = unix.Munmap(b) }, mapped)
	return s, nil
}

// Len is the number of words.
func (s *Shared) Len() int { return len(s.words) }

// Load reads a word.
func (s *Shared) Load(i int) uint64 {
	v := atomic.LoadUint64(&s.words[i])
	runtime.KeepAlive(s)
	return v
}

// Store writes a word: a packet sees the old one or the new one.
func (s *Shared) Store(i int, v uint64) {
	atomic.StoreUint64(&s.words[i], v)
	runtime.KeepAlive(s)
}
