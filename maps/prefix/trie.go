package prefix

import (
	"fmt"
	"math/bits"
)

// How bpf/include/prefix.h reads a word.
const (
	steps      = 16 // PREFIX_STEPS
	onward     = 1 << 31
	inLanes    = 1 << 30
	comparing  = 1 << 29
	list       = 7 << 29
	countShift = 24
	countMask  = 1<<5 - 1
	baseMask   = 1<<countShift - 1
	maxCompare = 32
	maxStride  = 20
	forced     = 8 // bits a step that always suffice: steps * forced is the length of a key
)

// Trie is a set of rules as words: the roots first. Bases count from its beginning.
type Trie struct {
	Words []uint32
	Roots int
	Steps int // most steps of a lookup after the root
}

// densities are the words of a branch for each rule below it. Wide strides take fewer steps, but in a table larger than a core's cache one
// step costs more than two in a smaller table: so each density but the last is for tries up to its number of words (half a MiB, and one).
var densities = []struct {
	fill  float64
	words int
}{{8, 1 << 17}, {4, 1 << 18}, {2, baseMask + 1}}

// Build makes one trie of rules with a number of roots. most bounds its words (0: as many as a word can address): where it does not fit, it is
// built again with smaller strides, which take more steps.
func Build(roots int, rules []Rule, most int) (*Trie, error) {
	all, err := sorted(roots, rules)
	if err != nil {
		return nil, err
	}
	if most <= 0 || most > baseMask+1 {
		most = baseMask + 1
	}
	need := 0
	for _, d := range densities {
		b := &builder{fill: d.fill, most: min(most, d.words)}
		if b.build(roots, all) {
			return &Trie{b.words, roots, b.deepest}, nil
		}
		need = b.need
	}
	return nil, fmt.Errorf("%w: %d rules take %d words or more, it has %d", ErrFull, len(rules), need, most)
}

// builder makes one trie.
type builder struct {
	fill    float64 // words of a branch for each rule below it
	most    int
	words   []uint32
	need    int
	deepest int
}

func (b *builder) build(roots int, rules []Rule) bool {
	if _, ok := b.alloc(roots); !ok {
		return false
	}
	for root := range roots {
		n := 0
		for n < len(rules) && rules[n].Root == root {
			n++
		}
		word, ok := b.node(rules[:n], 0, 0, 0)
		if !ok {
			return false
		}
		b.words[root], rules = word, rules[n:]
	}
	return true
}

// alloc appends n words, aligned so that small blocks are in one cache line.
func (b *builder) alloc(n int) (base int, ok bool) {
	align := 1 << bits.Len(uint(min(n, 16)-1))
	base = (len(b.words) + align - 1) &^ (align - 1)
	if b.need = base + n; b.need > b.most {
		return 0, false
	}
	b.words = append(b.words, make([]uint32, b.need-len(b.words))...)
	return base, true
}

// node is the word for a set of rules, after at bits of the key; value is that of the prefix around them.
func (b *builder) node(rules []Rule, at int, value uint32, step int) (uint32, bool) {
	if len(rules) > 0 && rules[0].Bits == at {
		value, rules = rules[0].Value, rules[1:]
	}
	if uniform(rules, value) {
		b.deepest = max(b.deepest, step)
		return value, true
	}
	shared, longest := span(rules)
	least := max(1, longest-at-forced*(steps-1-step)) // bits that this step must take
	if n := min(shared-at, maxCompare); n >= least && n > 1 {
		return b.compare(rules, at, n, value, step)
	}
	if stride := laneStride(rules, at, shared, longest); stride >= max(least, 1) {
		return b.lanes(rules, at, stride, value, step)
	}
	stride := bits.Len(uint(b.fill*float64(len(rules)))) - 1
	return b.branch(rules, at, min(max(stride, least), longest-at, maxStride), value, step)
}

func uniform(rules []Rule, value uint32) bool {
	for _, r := range rules {
		if r.Value != value {
			return false
		}
	}
	return true
}

// span is the number of bits that all rules share and none ends within, and the length of the longest.
func span(rules []Rule) (shared, longest int) {
	shared = rules[0].Key.common(rules[len(rules)-1].Key)
	for _, r := range rules {
		shared, longest = min(shared, r.Bits), max(longest, r.Bits)
	}
	return shared, longest
}

func (b *builder) compare(rules []Rule, at, n int, value uint32, step int) (uint32, bool) {
	base, ok := b.alloc(3)
	if !ok {
		return 0, false
	}
	word, ok := b.node(rules, at+n, value, step+1)
	if !ok {
		return 0, false
	}
	b.words[base], b.words[base+1], b.words[base+2] = rules[0].Key.take(at, n), value, word
	return onward | comparing | uint32(n-1)<<countShift | uint32(base), true
}

func (b *builder) branch(rules []Rule, at, stride int, value uint32, step int) (uint32, bool) {
	base, ok := b.alloc(1 << stride)
	if !ok {
		return 0, false
	}
	for i, part := range divided(rules, at, stride, value) {
		word, ok := b.node(part.rules, at+stride, part.value, step+1)
		if !ok {
			return 0, false
		}
		b.words[base+i] = word
	}
	return onward | uint32(stride-1)<<countShift | uint32(base), true
}

// part is the part of a set of rules that begins with some bits: the rules that are at least as long, and the value of the longest shorter one.
type part struct {
	rules []Rule
	value uint32
}

// divided are the parts of rules by the stride bits after at.
func divided(rules []Rule, at, stride int, value uint32) []part {
	parts := make([]part, 1<<stride)
	for i := range parts {
		parts[i].value = value
	}
	inner := make([]Rule, 0, len(rules))
	for _, r := range rules {
		if r.Bits >= at+stride {
			inner = append(inner, r)
			continue
		}
		first := r.Key.take(at, stride)
		for i := range uint32(1) << (at + stride - r.Bits) {
			parts[first+i].value = r.Value
		}
	}
	for i := range parts {
		n := 0
		for n < len(inner) && inner[n].Key.take(at, stride) == uint32(i) {
			n++
		}
		parts[i].rules, inner = inner[:n], inner[n:]
	}
	return parts
}

// Find looks a key up as a packet does: the same steps.
func (t *Trie) Find(root int, k Key) uint32 {
	word, at := t.Words[root], 0
	for word&onward != 0 {
		n, base := int(word>>countShift&countMask)+1, word&baseMask
		next := k.take(at, n)
		switch {
		case word&inLanes != 0:
			var bits int
			word, bits = t.cell(base+4*next, k.take(at+n, laneBits))
			at += bits
		case word&comparing == 0:
			word = t.Words[base+next]
		case next == t.Words[base]:
			word = t.Words[base+2]
		default:
			word = t.Words[base+1]
		}
		at += n
	}
	return word
}
