package prefix

import (
	"cmp"
	"math/bits"
	"slices"
)

// Cells of lanes: up to four prefixes of the next eight bits in a line of memory.
const (
	laneBits  = 8
	laneCount = 4
	cellWords = 4
	cellShare = 6   // words of cells for each rule, at most
	laneRules = 256 // fewer are small in any form
)

// laneStride is the number of bits of a branch to cells: large enough that most rules end in a cell and few cells overflow, and small enough
// that cells take no more memory than other branches; 0 where no stride does both, or where one branch holds all rules.
func laneStride(rules []Rule, at, shared, longest int) int {
	if len(rules) < laneRules || shared > at {
		return 0
	}
	var ends [129]int
	for _, r := range rules {
		ends[r.Bits]++
	}
	most := min(maxStride, bits.Len(uint(len(rules)*cellShare/cellWords))-1)
	covered := 0
	for n := range min(at+laneBits+laneBits, 129) {
		covered += ends[n]
	}
	for stride := laneBits; stride <= most && at+stride+laneBits <= 128; stride++ {
		covered += ends[at+stride+laneBits]
		if 4*covered >= 3*len(rules) && 4*roomy(rules, at, stride) >= 3*len(rules) {
			if longest-at <= stride+3 {
				return 0
			}
			return stride
		}
	}
	return 0
}

// roomy is the number of rules that are shorter than a cell, or in a cell that holds all of its rules.
func roomy(rules []Rule, at, stride int) (n int) {
	var last uint32
	inside := 0
	end := func() {
		if inside <= laneCount {
			n += inside
		}
		inside = 0
	}
	for _, r := range rules {
		if r.Bits < at+stride {
			n++
			continue
		}
		if next := r.Key.take(at, stride); next != last {
			end()
			last = next
		}
		inside++
	}
	end()
	return n
}

// lane is a prefix of the bits of a cell and the rules below it.
type lane struct {
	bits, mask uint32
	rules      []Rule // that take more bits than a cell has
	value      uint32
}

// lanesOf are the lanes of the rules after at bits, the longest first, and the value of the prefix around them; nil if they do not fit into a cell.
func lanesOf(p part, at int) ([]lane, uint32) {
	rules, value := p.rules, p.value
	if len(rules) > 0 && rules[0].Bits == at {
		value, rules = rules[0].Value, rules[1:]
	}
	lanes := []lane{}
	for len(rules) > 0 {
		l, n := laneOf(rules[0], at), 1
		if l.mask == 0xff {
			for n < len(rules) && rules[n].Key.take(at, laneBits) == l.bits {
				n++
			}
			l.rules, l.value = rules[:n], around(lanes, l.bits, value)
		}
		if lanes, rules = append(lanes, l), rules[n:]; len(lanes) > laneCount {
			return nil, value
		}
	}
	slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Compare(b.mask, a.mask) })
	return lanes, value
}

func laneOf(r Rule, at int) lane {
	mask := uint32(0xff)
	if n := r.Bits - at; n < laneBits {
		mask = 0xff00 >> n & 0xff
	}
	return lane{bits: r.Key.take(at, laneBits) & mask, mask: mask, value: r.Value}
}

// around is the value of the longest of the lanes that contain bits. Outer lanes precede inner ones.
func around(lanes []lane, bits, value uint32) uint32 {
	for _, l := range lanes {
		if bits&l.mask == l.bits {
			value = l.value
		}
	}
	return value
}

func (b *builder) lanes(rules []Rule, at, stride int, value uint32, step int) (uint32, bool) {
	base, ok := b.alloc(cellWords << stride)
	if !ok {
		return 0, false
	}
	for i, p := range divided(rules, at, stride, value) {
		if !b.cell(base+cellWords*i, p, at+stride, step+1) {
			return 0, false
		}
	}
	return onward | inLanes | uint32(stride-1)<<countShift | uint32(base), true
}

// cell fills the four words at base.
func (b *builder) cell(base int, p part, at, step int) bool {
	if uniform(p.rules, p.value) {
		p.rules = nil
	}
	lanes, value := lanesOf(p, at)
	zeros, ones := patterns(lanes)
	b.words[base], b.words[base+1], b.words[base+2] = zeros, ones, value
	b.deepest = max(b.deepest, step)
	if len(lanes) > 0 {
		word, ok := b.next(lanes, at+laneBits, step)
		b.words[base+3] = word
		return ok
	}
	if p.rules == nil {
		return true
	}
	word, ok := b.node(p.rules, at, p.value, step)
	b.words[base+2] = word
	return ok
}

// patterns are the bits that must be 0 and those that must be 1 for each lane, a byte each. In an unused lane every bit must be both, so it never
// matches.
func patterns(lanes []lane) (zeros, ones uint32) {
	zeros, ones = ^uint32(0), ^uint32(0)
	for i, l := range lanes {
		zeros &^= (l.bits | ^l.mask&0xff) << (laneBits * i)
		ones &^= (^l.bits&0xff | ^l.mask&0xff) << (laneBits * i)
	}
	return zeros, ones
}

// next is the word for the nodes below lanes: the node of a single lane, or a list.
func (b *builder) next(lanes []lane, at, step int) (uint32, bool) {
	if len(lanes) == 1 {
		return b.node(lanes[0].rules, at, lanes[0].value, step)
	}
	base, ok := b.alloc(len(lanes))
	if !ok {
		return 0, false
	}
	for i, l := range lanes {
		if b.words[base+i], ok = b.node(l.rules, at, l.value, step); !ok {
			return 0, false
		}
	}
	return list | uint32(base), true
}

// cell looks the next eight bits up in the cell at base; it returns the word that follows and the number of bits used.
func (t *Trie) cell(base, next uint32) (word uint32, taken int) {
	zeros, ones, word := t.Words[base], t.Words[base+1], t.Words[base+3]
	for i := range uint32(laneCount) {
		if (next&(zeros>>(laneBits*i))|^next&(ones>>(laneBits*i)))&0xff != 0 {
			continue
		}
		if word >= list {
			word = t.Words[word&baseMask+i]
		}
		return word, laneBits
	}
	return t.Words[base+2], 0
}
