package beaucoup

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// counter counts distinct attributes of a stream, of one key. add gives it the hash of a packet's attribute; estimate is its
// answer then; accesses are the words of memory that it has read and written in place, or written.
type counter interface {
	add(hash uint64)
	estimate() float64
	accesses() float64
}

// hyperLogLog has one register a packet to look at and to write. With sample < 1 it only sees attributes whose hash falls into
// that share: always the same ones.
type hyperLogLog struct {
	registers []uint8
	sample    float64
	sum       float64 // of 2^-register
	zeros     float64
	words     float64
}

func newHyperLogLog(registers int, sample float64) *hyperLogLog {
	return &hyperLogLog{registers: make([]uint8, registers), sample: sample, sum: float64(registers), zeros: float64(registers)}
}

func (h *hyperLogLog) add(hash uint64) {
	if h.sample < 1 && float64(scramble(hash)) >= h.sample*math.MaxUint64 {
		return
	}
	h.words++
	r := &h.registers[hash%uint64(len(h.registers))]
	rank := uint8(bits.LeadingZeros64(hash) + 1)
	if rank <= *r {
		return
	}
	if *r == 0 {
		h.zeros--
	}
	h.sum += math.Ldexp(1, -int(rank)) - math.Ldexp(1, -int(*r))
	*r = rank
}

// estimate has the constant and the correction of small counts of Flajolet, Fusy, Gandouet and Meunier (2007).
func (h *hyperLogLog) estimate() float64 {
	m := float64(len(h.registers))
	alpha := 0.7213 / (1 + 1.079/m)
	if m <= 16 {
		alpha = 0.673
	} else if m <= 32 {
		alpha = 0.697
	} else if m <= 64 {
		alpha = 0.709
	}
	e := alpha * m * m / h.sum
	if e <= 2.5*m && h.zeros > 0 {
		e = m * math.Log(m/h.zeros)
	}
	return e / h.sample
}

func (h *hyperLogLog) accesses() float64 { return h.words }

// sampling records the addresses of a share of the packets, two words each, and estimates from how many attributes were
// recorded once and twice.
type sampling struct {
	share float64
	rng   *rand.Rand
	seen  map[uint64]int
	once  float64
	twice float64
	words float64
	chao  bool
}

func newSampling(accesses float64, rng *rand.Rand, chao bool) *sampling {
	return &sampling{share: accesses / 2, rng: rng, seen: map[uint64]int{}, chao: chao}
}

func (s *sampling) add(hash uint64) {
	if s.rng.Float64() >= s.share {
		return
	}
	s.words += 2
	switch s.seen[hash]++; s.seen[hash] {
	case 1:
		s.once++
	case 2:
		s.once--
		s.twice++
	case 3:
		s.twice--
	}
}

// estimate is Chao's (1984, bias-corrected), or the guaranteed-error estimator of Charikar and others (2000).
func (s *sampling) estimate() float64 {
	found := float64(len(s.seen))
	if s.chao {
		return found + s.once*(s.once-1)/(2*(s.twice+1))
	}
	return found + (math.Sqrt(1/s.share)-1)*s.once
}

func (s *sampling) accesses() float64 { return s.words }

const (
	univLayers = 16
	univRows   = 4
	univWidth  = 1024
	univHeap   = 256
)

// univMon is 16 layers of count sketches with their largest items; every row of every layer is updated with a probability of
// its own (NitroSketch), such that each layer has the same share of the accesses. An item's place in the heap follows from the
// median of all rows: those that were not updated are read for it. Heaps are for free.
type univMon struct {
	layers  [univLayers]univLayer
	rng     *rand.Rand
	written float64 // counters
	touched float64 // counters that are written or read
	all     bool    // accesses are the latter
}

type univLayer struct {
	share float64 // probability of a row's update
	skip  float64 // rows until the next update
	rows  [univRows][univWidth]float64
	items largest
	ends  float64 // items of the heap that are in no deeper layer
}

func newUnivMon(accesses float64, rng *rand.Rand, all bool) *univMon {
	u := &univMon{rng: rng, all: all}
	for i := range u.layers {
		l := &u.layers[i]
		l.share = min(1, accesses/univLayers/univRows*math.Ldexp(1, i))
		l.items.at = map[uint64]int{}
		l.skip = u.gap(l.share)
	}
	return u
}

// gap draws how many rows are left out until the next update.
func (u *univMon) gap(share float64) float64 {
	if share >= 1 {
		return 0
	}
	return math.Floor(math.Log(1-u.rng.Float64()) / math.Log1p(-share))
}

// depth is the deepest layer of an attribute.
func depth(hash uint64) int { return min(bits.TrailingZeros64(^scramble(hash)), univLayers-1) }

func (u *univMon) add(hash uint64) {
	deepest := depth(hash)
	for i := 0; i <= deepest; i++ {
		l := &u.layers[i]
		updated := false
		for row := range univRows {
			if l.skip > 0 {
				l.skip--
				continue
			}
			l.skip = u.gap(l.share)
			cell, sign := place(hash, i, row)
			l.rows[row][cell] += sign / l.share
			u.written++
			updated = true
		}
		if updated {
			u.touched += univRows
			l.offer(hash, i)
		}
	}
}

// place is an attribute's cell in a row, and its sign.
func place(hash uint64, layer, row int) (cell int, sign float64) {
	h := scramble(hash + uint64(layer*univRows+row+1)*0x9e3779b97f4a7c15)
	return int(h % univWidth), float64(h>>62&1)*2 - 1
}

func (l *univLayer) offer(hash uint64, layer int) {
	var e [univRows]float64
	for row := range e {
		cell, sign := place(hash, layer, row)
		e[row] = sign * l.rows[row][cell]
	}
	slices.Sort(e[:])
	in, out, replaced := l.items.offer(hash, (e[1]+e[2])/2)
	if in && depth(hash) == layer {
		l.ends++
	}
	if replaced && depth(out) == layer {
		l.ends--
	}
}

// estimate is UnivMon's recursive sum with g = 1: items of a layer that go deeper are in the deeper layer's estimate twice.
func (u *univMon) estimate() float64 {
	y := float64(len(u.layers[univLayers-1].items.list))
	for i := univLayers - 2; i >= 0; i-- {
		l := &u.layers[i]
		y = 2*y + l.ends - (float64(len(l.items.list)) - l.ends)
	}
	return y
}

func (u *univMon) accesses() float64 {
	if u.all {
		return u.touched
	}
	return u.written
}

// largest is the univHeap items with the largest values, a heap with the smallest on top.
type largest struct {
	list []item
	at   map[uint64]int
}

type item struct {
	hash  uint64
	value float64
}

// offer an item: in: it is there now and was not; replaced: out was removed for it.
func (h *largest) offer(hash uint64, value float64) (in bool, out uint64, replaced bool) {
	if i, ok := h.at[hash]; ok {
		h.list[i].value = value
		h.down(h.up(i))
		return false, 0, false
	}
	if value <= 0 {
		return false, 0, false
	}
	if len(h.list) < univHeap {
		h.list = append(h.list, item{hash, value})
		h.at[hash] = len(h.list) - 1
		h.up(len(h.list) - 1)
		return true, 0, false
	}
	if value <= h.list[0].value {
		return false, 0, false
	}
	out = h.list[0].hash
	delete(h.at, out)
	h.list[0] = item{hash, value}
	h.at[hash] = 0
	h.down(0)
	return true, out, true
}

func (h *largest) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.at[h.list[i].hash], h.at[h.list[j].hash] = i, j
}

func (h *largest) up(i int) int {
	for i > 0 && h.list[i].value < h.list[(i-1)/2].value {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (h *largest) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			return
		}
		if child+1 < len(h.list) && h.list[child+1].value < h.list[child].value {
			child++
		}
		if h.list[i].value <= h.list[child].value {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// scramble is a bijection of 64 bits (Stafford's variant 13 of MurmurHash3's finaliser).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
