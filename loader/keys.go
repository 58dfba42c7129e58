package loader

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
)

// HashLane is the number of multipliers of one lane of bpf/include/hash.h.
const HashLane = 11

// HashKeys expands a seed to the multipliers of bpf/include/hash.h, by ChaCha8 (whose output Go promises not to change): hosts
// that share a seed have the same hashes.
func HashKeys(seed uint64) (keys [2 * HashLane]uint64) {
	var long [32]byte
	copy(long[:], "xdpmon: multipliers of ")
	binary.LittleEndian.PutUint64(long[24:], seed)
	random := rand.NewChaCha8(long)
	for n := range keys {
		keys[n] = random.Uint64()
	}
	return keys
}

// HashRows are the CRCs of HashPolynomials.
var HashRows = func() (rows [4]*crc32.Table) {
	for row, polynomial := range HashPolynomials {
		rows[row] = crc32.MakeTable(bits.Reverse32(polynomial))
	}
	return rows
}()
