// Package hashes is the fast family of bpf/include/hash.h in a few lines of Go, for references and for tests of its bound.
package hashes

import (
	"encoding/binary"
	"net/netip"

	"github.com/xdpmon/xdpmon/loader"
)

// Seeded are the hashes of a seed.
type Seeded struct {
	keys [2 * loader.HashLane]uint64
}

// New expands a seed.
func New(seed uint64) *Seeded { return &Seeded{loader.HashKeys(seed)} }

// Mix is hash_mix.
func Mix(x uint64) uint64 {
	for range 2 {
		x ^= x >> 32
		x *= 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}

// multilinear starts with the multiplier at first; words are in pairs, and the last one may be alone.
func (s *Seeded) multilinear(first int, words ...uint32) uint64 {
	var halves [2]uint64
	for lane := range halves {
		keys := s.keys[lane*loader.HashLane+first:]
		sum := keys[0]
		for n := 0; n+1 < len(words); n += 2 {
			sum += (keys[1+n] + uint64(words[n])) * (keys[2+n] + uint64(words[n+1]))
		}
		if len(words)%2 == 1 {
			sum += keys[len(words)] * uint64(words[len(words)-1])
		}
		halves[lane] = sum >> 32
	}
	return halves[0]<<32 | halves[1]
}

// Key is key_hash, of the words in use.
func (s *Seeded) Key(words ...uint64) uint64 {
	var halves []uint32
	for _, w := range words {
		halves = append(halves, uint32(w>>32), uint32(w))
	}
	return Mix(s.multilinear(0, halves...))
}

// words of an address in memory, IPv4 after its prefix.
func words(addr netip.Addr) (a [4]uint32) {
	b := addr.As16()
	for n := range a {
		a[n] = binary.LittleEndian.Uint32(b[4*n:])
	}
	return a
}

// Endpoint is hash_endpoint.
func (s *Seeded) Endpoint(addr netip.Addr, port uint16, proto uint8) uint64 {
	a, tail := words(addr), uint32(proto)<<16|uint32(port)
	if addr.Is4() {
		return uint64(a[3])<<32 | 4<<24 | uint64(tail)
	}
	return s.multilinear(0, a[3], 6<<24|tail, a[0], a[1], a[2])
}

// Carried is what a packet carries through a queue of its host: carry_flow.
func (s *Seeded) Carried(src, dst netip.AddrPort, proto uint8) uint64 {
	const salt = 0x71756575
	a, b := words(src.Addr()), words(dst.Addr())
	pairs := [][2]uint32{{a[0], a[1]}, {a[2], a[3]}, {b[0], b[1]}, {b[2], b[3]}}
	if src.Addr().Is4() {
		pairs = [][2]uint32{{a[3], b[3]}}
	}
	pairs = append(pairs, [2]uint32{uint32(src.Port())<<16 | uint32(dst.Port()), salt ^ uint32(proto)})
	sum, key := s.keys[0], loader.HashLane-2*len(pairs) // the last multipliers
	for _, p := range pairs {
		sum += (s.keys[key] + uint64(p[0])) * (s.keys[key+1] + uint64(p[1]))
		key += 2
	}
	return max(sum>>32, 1)
}

// Spread is hash_spread: both halves by multipliers of the second lane.
func (s *Seeded) Spread(flow uint64) uint64 {
	k := s.keys[loader.HashLane:]
	return Mix((k[0]+k[1]*flow)>>32<<32 | (k[2]+k[3]*flow)>>32)
}

// Flow is hash_flow without a salt, of two endpoints.
func (s *Seeded) Flow(src, dst uint64) uint64 {
	return Mix(s.multilinear(6, uint32(src>>32), uint32(src), uint32(dst>>32), uint32(dst)))
}
