package packet

import "testing"

// TestBegin: a changed byte among the first 32 changes the hash, one after them does not, and a truncated payload has none.
func TestBegin(t *testing.T) {
	long := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	whole := begin(long, uint32(len(long)))
	for i := range long {
		changed := append([]byte(nil), long...)
		changed[i] ^= 1
		if got := begin(changed, uint32(len(long))); (got == whole) != (i >= 32) {
			t.Errorf("byte %d changed: %#x, was %#x", i, got, whole)
		}
	}
	if got := begin(long[:8], 8); got == 0 || got == begin(long[1:9], 8) {
		t.Errorf("of eight bytes %#x", got)
	}
	for _, cut := range []struct {
		bytes  int
		length uint32
	}{{7, 7}, {0, 0}, {31, 32}, {7, 8}} {
		if got := begin(long[:cut.bytes], cut.length); got != 0 {
			t.Errorf("of %d bytes of %d: %#x", cut.bytes, cut.length, got)
		}
	}
}
