package maps

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// view is a range of elements of one copy of an array in this process' memory: reading it takes no time for elements, only for words. It is mapped for one reading
// and unmapped after it, because its pages, which the kernel has allocated anyway, count as this process' resident memory meanwhile.
type view struct {
	memory []byte
	words  []uint64
	half   bool // elements of 4 bytes, each of which the kernel stores in 8
}

// mappable reports whether the elements can be mapped: those of a plain map with the flag for it, which maps of earlier versions do not have. All are read in
// words of 8 bytes, as the kernel stores them.
func (a *Array) mappable() bool {
	return a.among.of == nil && a.plain() && a.m.Flags()&unix.BPF_F_MMAPABLE != 0 && (a.ElemSize%8 == 0 || a.ElemSize == 4)
}

// inMemory passes on the copies of a bank, by CPU; false where they cannot be mapped, and are to be read by system calls. None is passed on before all are mapped.
func (a *Array) inMemory(bank int, f func(cpu int, of view)) bool {
	if !a.mappable() {
		return false
	}
	copies := make([]view, a.copies())
	defer func() {
		for _, v := range copies {
			v.unmap()
		}
	}()
	var err error
	for cpu := range copies {
		if copies[cpu], err = a.mapElements(cpu*a.spread + a.first + bank*a.Entries); err != nil { // too little memory, or too many mappings
			return false
		}
	}
	for cpu, v := range copies {
		f(cpu, v)
	}
	return true
}

// mapElements maps as many elements of the map as a bank has, from the one of a key on.
func (a *Array) mapElements(key int) (view, error) {
	w, page := a.wordsPerElement(), os.Getpagesize()
	from := 8 * w * key
	before := from % page
	length := before + 8*a.Words()
	memory, err := unix.Mmap(a.m.FD(), int64(from-before), (length+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return view{}, err
	}
	return view{memory, unsafe.Slice((*uint64)(unsafe.Pointer(&memory[before])), a.Words()), a.ElemSize == 4}, nil
}

func (v view) unmap() {
	if v.memory != nil {
		_ = unix.Munmap(v.memory) // it was mapped
	}
}

// each passes on the words that are not zero. Programs may write them meanwhile: a word is read whole.
func (v view) each(f func(i int, word uint64)) {
	for i := range v.words {
		if word := v.load(i); word != 0 {
			f(i, word)
		}
	}
}

// take passes on the words that are not zero, and sets them to zero.
func (v view) take(f func(i int, word uint64)) {
	v.each(func(i int, _ uint64) { f(i, v.clear(i)) })
}

func (v view) load(i int) uint64 {
	if v.half {
		return uint64(atomic.LoadUint32(v.low(i)))
	}
	return atomic.LoadUint64(&v.words[i])
}

// clear sets a word to zero and returns what it was.
func (v view) clear(i int) uint64 {
	if v.half {
		return uint64(atomic.SwapUint32(v.low(i), 0))
	}
	return atomic.SwapUint64(&v.words[i], 0)
}

// low is an element of 4 bytes.
func (v view) low(i int) *uint32 { return (*uint32)(unsafe.Pointer(&v.words[i])) }
