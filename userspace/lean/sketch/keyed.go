package sketch

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// KeyedSum merges Misra-Gries counters: where one entry has two owners, the larger count stays, reduced by the smaller.
func KeyedSum(a, b []uint64) snapshot.Words {
	sum := make(snapshot.Words, len(a))
	for n := range sum {
		x, y := a[n], b[n]
		if uint32(x) < uint32(y) {
			x, y = y, x
		}
		count := uint64(uint32(x))
		if x>>32 == y>>32 {
			count = min(count+uint64(uint32(y)), math.MaxUint32)
		} else {
			count -= uint64(uint32(y))
		}
		sum[n] = x>>32<<32 | count
	}
	return sum
}
