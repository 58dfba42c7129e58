package sketch

import (
	"fmt"
	"testing"
)

// The key of the one flow in a bucket is read from the signs of its cells, bits that are lost included, and nothing else is.
func TestBucketKey(t *testing.T) {
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc %v", crc), func(t *testing.T) { checkBucketKey(t, Hashes{CRC: crc}) })
	}
}

func checkBucketKey(t *testing.T, h Hashes) {
	t.Helper()
	const addresses = uint64(0x0a010203c0000201)
	rest := uint64(443)<<48 | 5000<<32 | 6<<24
	words := [2]uint64{addresses, rest | h.check(addresses, rest)<<8}
	cells := func(lost ...int) []uint64 {
		list := make([]uint64, 128)
		for bit := range list {
			list[bit] = ^uint64(4) // negative in its low half
			if words[bit/64]>>(63-bit%64)&1 == 1 {
				list[bit] = 5
			}
		}
		for _, bit := range lost {
			list[bit] = 0
		}
		return list
	}
	for _, lost := range [][]int{{}, {4}, {0, 6, 127 - 30}, {7, 31, 65}} {
		a, r, ok := h.BucketKey(cells(lost...))
		if !ok || a != addresses || r != rest {
			t.Errorf("without the bits %v: %#x %#x %v", lost, a, r, ok)
		}
	}
	wrong := cells()
	wrong[3] = 5
	if _, _, ok := h.BucketKey(wrong); ok {
		t.Error("a key that fails its check is taken")
	}
	all := make([]uint64, 128)
	if _, _, ok := h.BucketKey(all); ok {
		t.Error("an empty bucket has a key")
	}
}
