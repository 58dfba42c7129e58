package sketch

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/xdpmon/xdpmon/loader"
)

// Keys from bits: bpf/lean/bits.h.
const (
	Bucket   = 128 // cells of a bucket
	KeyBits  = 120 // ... that are used
	CheckBit = 104 // first bit of the check
	// unknownBits is the most key bits whose cell is 0 (sign unknown) that are tried with both values: the 16-bit check accepts a
	// wrong key once in 65,536.
	unknownBits = 6
)

// Hashes are those of the data plane (bpf/include/hash.h, bpf/lean/frame.h), for IPv4.
type Hashes struct {
	Keys [2 * loader.HashLane]uint64
	Pair bool
	CRC  bool // a switch's
}

const (
	leanSalt   = 0x6c65616e
	hashGolden = 0x9e3779b97f4a7c15
	placeRows  = 0x632be59bd9b4e019
)

func hashMix(x uint64) uint64 {
	for range 2 {
		x ^= x >> 32
		x *= 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}

// endpoint of IPv4; the vector's addresses are in network order.
func endpoint(addr uint32, port uint16, proto uint8) uint64 {
	return uint64(bits.ReverseBytes32(addr))<<32 | 4<<24 | uint64(proto)<<16 | uint64(port)
}

// flow is hash_pair(): the upper halves of two sums of products of words and multipliers.
func (h Hashes) flow(src, dst uint64) uint64 {
	var sums [2]uint64
	for lane := range sums {
		k := h.Keys[lane*loader.HashLane+6:]
		sums[lane] = k[0] + (k[1]+(src>>32^leanSalt))*(k[2]+uint64(uint32(src))) + (k[3]+dst>>32)*(k[4]+uint64(uint32(dst)))
	}
	return hashMix(sums[0]>>32<<32 | sums[1]>>32)
}

// Place is the sketch position of the flow that the decoded bits name: addresses; ports and protocol.
func (h Hashes) Place(addresses, rest uint64) Place {
	if h.CRC {
		return switchPlace(addresses, rest)
	}
	proto := uint8(rest >> 24)
	if h.Pair {
		proto = 0
	}
	key := h.flow(endpoint(uint32(addresses>>32), uint16(rest>>48), proto), endpoint(uint32(addresses), uint16(rest>>32), proto))
	return Place{hashMix(key + placeRows), hashMix(key + hashGolden)}
}

// switchPlace is lean_place_crc(): four rows over both addresses, the ports, and 8 bytes of zeros.
func switchPlace(addresses, rest uint64) Place {
	var b [44]byte
	for side, address := range []uint32{uint32(addresses >> 32), uint32(addresses)} {
		binary.BigEndian.PutUint32(b[16*side+8:], 0xffff)
		binary.BigEndian.PutUint32(b[16*side+12:], address)
	}
	binary.BigEndian.PutUint32(b[32:], uint32(rest>>32))
	var rows [4]uint64
	for row, table := range loader.HashRows {
		rows[row] = uint64(crc32.Checksum(b[:], table))
	}
	return Place{rows[0] | rows[1]<<32, rows[2] | rows[3]<<32}
}

// BucketKey takes each bit from the sign of its cell, tries both values where the cell is 0, and verifies the result with the
// check bits.
func (h Hashes) BucketKey(cells []uint64) (addresses, rest uint64, ok bool) {
	var unknown []int
	var words [2]uint64
	for bit, c := range cells {
		switch v := int32(uint32(c)); {
		case v > 0:
			words[bit/64] |= 1 << (63 - bit%64)
		case v == 0:
			unknown = append(unknown, bit)
		}
	}
	if len(unknown) > unknownBits {
		return 0, 0, false
	}
	for try := range 1 << len(unknown) {
		for n, bit := range unknown {
			mask := uint64(1) << (63 - bit%64)
			words[bit/64] &^= mask
			if try>>n&1 == 1 {
				words[bit/64] |= mask
			}
		}
		if rest := words[1] &^ 0xffffff; h.check(words[0], rest) == words[1]>>8&0xffff {
			return words[0], rest, true
		}
	}
	return 0, 0, false
}

// check is bits_check().
func (h Hashes) check(addresses, rest uint64) uint64 {
	if h.CRC {
		return switchPlace(addresses, rest).Rest>>48 ^ rest>>24&0xff
	}
	return hashMix(addresses^hashMix(rest)) >> 48
}
