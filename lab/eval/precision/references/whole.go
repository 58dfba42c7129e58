package references

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Whole is CocoSketch (Zhang et al., SIGCOMM 2021) over IPv4 sources: one table of addresses, whose sums over any prefix are unbiased. A packet that has no entry adds
// to the smallest of its counters, and takes its entry with probability 1/counter. Ways is 1 in the form that a switch passes once; with more a
// packet adds to a counter that it has already read.
type Whole struct {
	ways  [][]wholeEntry
	rng   *rand.Rand
	seed  uint64
	total float64
}

type wholeEntry struct {
	address uint32
	count   uint64
}

// NewWhole divides entries among the ways.
func NewWhole(entries, ways int, seed uint64) *Whole {
	w := &Whole{rng: rand.New(rand.NewPCG(seed, 7)), seed: seed}
	for range ways {
		w.ways = append(w.ways, make([]wholeEntry, entries/ways))
	}
	return w
}

// Add counts a packet.
func (w *Whole) Add(src netip.Addr) {
	b := src.As4()
	address := binary.BigEndian.Uint32(b[:])
	w.total++
	var least *wholeEntry
	for i, way := range w.ways {
		h := uint64(address)*0x9e3779b97f4a7c15 + w.seed + uint64(i)*0xd6e8feb86659fd93
		for range 2 {
			h = (h ^ h>>32) * 0xd6e8feb86659fd93
		}
		e := &way[(h>>32)%uint64(len(way))]
		if e.address == address && e.count > 0 {
			e.count++
			return
		}
		if least == nil || e.count < least.count {
			least = e
		}
	}
	if least.count++; w.rng.Uint64N(least.count) == 0 {
		least.address = address
	}
}

// Counts returns the estimates of all prefixes of so many bits and its multiples; the root is exact.
func (w *Whole) Counts(step int) map[heavy.Prefix]float64 {
	counts := map[heavy.Prefix]float64{}
	for _, way := range w.ways {
		for _, e := range way {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], e.address)
			for bits := step; e.count > 0 && bits <= 32; bits += step {
				counts[heavy.Prefix{Src: netip.PrefixFrom(netip.AddrFrom4(b), bits).Masked()}] += float64(e.count)
			}
		}
	}
	counts[heavy.Prefix{Src: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}] = w.total
	return counts
}
