package precision

import (
	"math/bits"

	"github.com/xdpmon/xdpmon/tests/hashes"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Plain is PRECISION in a few lines of Go, with the hashes and the seeded coins of a replay: what the program
// must do, packet for packet. It counts packets of keys of two words.
type Plain struct {
	Initial uint64
	Taken   uint64 // entries that were taken: second passes
	Admit   func(coin func() uint32, next uint64) bool
	Value   func(next uint64) uint64 // of an entry that was taken; nil: next
	ways    [][]plainEntry
	hash    *hashes.Seeded
	packet  uint32 // seed of the last packet's coin
}

type plainEntry struct {
	key   heavy.Key
	count uint64 // without the initial value
}

// NewPlain makes a table of so many entries in two ways, as a replay with that seed has it.
func NewPlain(entries int, initial, seed uint64, admit func(coin func() uint32, next uint64) bool) *Plain {
	return NewPlainWays(2, entries, initial, seed, admit)
}

// NewPlainWays makes a table of any number of ways; the program has four at most.
func NewPlainWays(ways, entries int, initial, seed uint64, admit func(coin func() uint32, next uint64) bool) *Plain {
	p := &Plain{Initial: initial, Admit: admit, ways: make([][]plainEntry, ways), hash: hashes.New(seed), packet: uint32(seed)*2654435761 | 1}
	for w := range p.ways {
		p.ways[w] = make([]plainEntry, entries/ways)
	}
	return p
}

// NewPlainPow2 admits with probability 2^-x, with the value 2^x for x = ceil(log2 min) (Algorithm 2).
func NewPlainPow2(entries int, initial, seed uint64) *Plain {
	power := func(next uint64) uint64 { return 1 << bits.Len64(max(next, 2)-2) }
	p := NewPlain(entries, initial, seed, func(coin func() uint32, next uint64) bool { return PlainExact(coin, power(next)) })
	p.Value = power
	return p
}

// PlainExact admits with probability 1/next.
func PlainExact(coin func() uint32, next uint64) bool { return uint64(coin())*next>>32 == 0 }

// PlainNineEighths admits with probability 1/(2^y floor(T)), next = 2^y T, T in [8, 16).
func PlainNineEighths(coin func() uint32, next uint64) bool {
	if next < 8 {
		return PlainExact(coin, next)
	}
	y := bits.Len64(next) - 4
	k := next >> y
	limit := (1<<32 + k/2) / k << 18 >> y // of 2^50, from a table of whole numbers
	high := uint64(coin())
	if high != limit>>18 {
		return high < limit>>18
	}
	return uint64(coin())>>14 < limit&(1<<18-1)
}

// Add implements Reference.
func (p *Plain) Add(key heavy.Key) float64 {
	least := p.find(key)
	coin := p.coin()
	if least.key == key {
		least.count++
		return float64(least.count + p.Initial)
	}
	next := least.count + p.Initial + 1
	if !p.Admit(coin, next) {
		return 0
	}
	if p.Value != nil {
		next = p.Value(next)
	}
	*least = plainEntry{key, next - p.Initial}
	p.Taken++
	return float64(next)
}

// hashStep separates the hashes of pairs of ways; ways_rows in bpf/include/ways.h has the first two pairs.
const hashStep = 0x632be59bd9b4e019

// find is the key's entry, or the smallest of its places, the first of those that are alike.
func (p *Plain) find(key heavy.Key) (least *plainEntry) {
	h := p.hash.Key(key[:2]...)
	g := h
	for w, way := range p.ways {
		if w > 0 && w%2 == 0 {
			g = hashes.Mix(h + uint64(w/2)*hashStep)
		}
		e := &way[uint64(uint32(g>>(w%2*32)))*uint64(len(way))>>32]
		if e.key == key {
			return e
		}
		if least == nil || e.count < least.count {
			least = e
		}
	}
	return least
}

// coin is this packet's generator: bpf/include/coin.h.
func (p *Plain) coin() func() uint32 {
	p.packet += 0x9e3779b9
	x := p.packet | 1
	return func() uint32 {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		return x * 0x9e3779b1
	}
}

// Counts implements Reference.
func (p *Plain) Counts() map[heavy.Key]float64 {
	counts := map[heavy.Key]float64{}
	for _, way := range p.ways {
		for _, e := range way {
			if e.key != (heavy.Key{}) {
				counts[e.key] += float64(e.count + p.Initial)
			}
		}
	}
	return counts
}
