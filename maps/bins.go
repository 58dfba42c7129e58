package maps

import "math/bits"

// Bins are the log-linear bins of bpf/include/bins.h: 2^Mantissa bins an octave, exact below 2^Mantissa.
type Bins struct {
	Bits     int // of the numbers
	Mantissa int
}

// Len is the number of bins.
func (b Bins) Len() int { return (b.Bits - b.Mantissa + 1) << b.Mantissa }

// Index of a number's bin.
func (b Bins) Index(x uint64) int {
	if x>>b.Mantissa == 0 {
		return int(x)
	}
	e := bits.Len64(x) - 1 - b.Mantissa
	return e<<b.Mantissa + int(x>>e)
}

// Range of a bin: lowest number and first number after it.
func (b Bins) Range(i int) (low, high uint64) {
	if i>>b.Mantissa == 0 {
		return uint64(i), uint64(i) + 1
	}
	e := i>>b.Mantissa - 1
	m := uint64(i&(1<<b.Mantissa-1) | 1<<b.Mantissa)
	return m << e, (m + 1) << e
}
