package maps

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// zerosWords is how many zeros are had without memory: no register array that is read has more words in a bank.
const zerosWords = 1 << 20

// zeros is what every array at rest is read as: 200 instances would keep a hundred megabytes of zeros each for itself. Nobody may write there, and nobody
// can: the pages are readable only, and are the kernel's one page of zeros.
var zeros = sync.OnceValue(func() []uint64 {
	b, err := unix.Mmap(-1, 0, 8*zerosWords, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), zerosWords)
})

// zero words for somebody who only reads them.
func zeroWords(n int) []uint64 {
	if all := zeros(); n <= len(all) {
		return all[:n:n]
	}
	return make([]uint64, n)
}

// sized is memory for n words, of which nothing is known: that of dst, if it is large enough and may be written.
func sized(dst []uint64, n int) []uint64 {
	if cap(dst) < n || n > 0 && unsafe.SliceData(dst) == unsafe.SliceData(zeros()) {
		return make([]uint64, n)
	}
	return dst[:n]
}
