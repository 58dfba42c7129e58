package prefix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// exact is longest prefix match by its definition: all prefixes, the longest first.
type exact map[int]map[netip.Prefix]uint32

func newExact(rules []Rule, v6 bool) exact {
	e := exact{}
	for _, r := range rules {
		if e[r.Root] == nil {
			e[r.Root] = map[netip.Prefix]uint32{}
		}
		e[r.Root][netip.PrefixFrom(address(r.Key, v6), r.Bits).Masked()] = r.Value
	}
	return e
}

func (e exact) find(root int, a netip.Addr) uint32 {
	for n := a.BitLen(); n >= 0; n-- {
		if v, ok := e[root][netip.PrefixFrom(a, n).Masked()]; ok {
			return v
		}
	}
	return 0
}

func address(k Key, v6 bool) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.High)
	binary.BigEndian.PutUint64(b[8:], k.Low)
	if v6 {
		return netip.AddrFrom16(b)
	}
	return netip.AddrFrom4([4]byte(b[:4]))
}

// near is a key at, just before, just after, or somewhere below a rule's prefix.
func near(rng *rand.Rand, r Rule) Key {
	k, one := r.Key.Masked(r.Bits), Key{Low: 1}
	switch rng.IntN(5) {
	case 0:
		return k
	case 1: // the last one
		return Key{k.High | ^upper(min(r.Bits, 64)), k.Low | ^upper(max(0, r.Bits-64))}
	case 2:
		return Key{k.High - 1, ^uint64(0)}
	case 3: // another bit
		n := rng.IntN(max(1, r.Bits))
		if n < 64 {
			one = Key{High: 1 << (63 - n)}
		} else {
			one.Low = 1 << (127 - n)
		}
		return Key{k.High ^ one.High, k.Low ^ one.Low}
	}
	m := r.Key.Masked(r.Bits)
	random := Key{rng.Uint64(), rng.Uint64()}
	inner := random.Masked(r.Bits)
	return Key{m.High | random.High ^ inner.High, m.Low | random.Low ^ inner.Low}
}

// sets are shapes of rules, for one root.
var sets = map[string]func(rng *rand.Rand, n, width int) []Rule{
	"random": func(rng *rand.Rand, n, width int) (rules []Rule) {
		for range n {
			rules = append(rules, Rule{Key: Key{rng.Uint64(), rng.Uint64()}, Bits: rng.IntN(width + 1)})
		}
		return rules
	},
	"clustered": func(rng *rand.Rand, n, width int) (rules []Rule) { // few networks, many hosts
		for range n {
			k := Key{uint64(rng.IntN(4))<<61 | uint64(rng.IntN(7))<<40, uint64(rng.IntN(1000))}
			if width == 32 {
				k.High |= uint64(rng.IntN(1000)) << 32
			}
			rules = append(rules, Rule{Key: k, Bits: width - rng.IntN(4)})
		}
		return rules
	},
	"nested": func(rng *rand.Rand, n, width int) (rules []Rule) { // each inside of the one before
		k := Key{rng.Uint64(), rng.Uint64()}
		for i := range min(n, width+1) {
			rules = append(rules, Rule{Key: k, Bits: width - i})
		}
		return rules
	},
	"caterpillar": func(rng *rand.Rand, n, width int) (rules []Rule) { // a host branches off at every bit: the most steps a rule
		k := Key{rng.Uint64(), rng.Uint64()}
		for i := range min(n, width) {
			other := k
			if i < 64 {
				other.High ^= 1 << (63 - i)
			} else {
				other.Low ^= 1 << (127 - i)
			}
			rules = append(rules, Rule{Key: other, Bits: width})
		}
		return rules
	},
	"windows": func(rng *rand.Rand, n, width int) (rules []Rule) { // most end within eight bits, some farther on, some alike but for these
		first := min(width-8, bits.Len(uint(n))-1)
		for range n {
			r := Rule{Key: Key{rng.Uint64(), rng.Uint64()}, Bits: first + rng.IntN(9)}
			if p := rng.IntN(10); p == 0 && len(rules) > 0 {
				r.Key = rules[rng.IntN(len(rules))].Key
				r.Key.High ^= uint64(rng.IntN(256)) << (64 - first - 8)
			} else if p == 1 {
				r.Bits = first + rng.IntN(width-first+1)
			}
			rules = append(rules, r)
		}
		return rules
	},
	"ends": func(_ *rand.Rand, _, width int) []Rule { // the first and the last of all, and everything
		return []Rule{{Bits: 0}, {Bits: width}, {Key: Key{^uint64(0), ^uint64(0)}, Bits: width}, {Key: Key{1 << 63, 0}, Bits: 1}}
	},
	"none": func(*rand.Rand, int, int) []Rule { return nil },
}

// distinct gives values, and leaves one rule for a prefix.
func distinct(rng *rand.Rand, root, width int, rules []Rule) (list []Rule) {
	seen := map[string]bool{}
	for _, r := range rules {
		r.Root, r.Value = root, uint32(rng.IntN(5)) // few values, 0 among them: leaves that look alike
		if width == 32 {
			r.Key = Key{High: r.Key.High & upper(32)}
		}
		if id := fmt.Sprint(r.Key.Masked(r.Bits), r.Bits); !seen[id] {
			seen[id] = true
			list = append(list, r)
		}
	}
	return list
}

func checkTrie(t *testing.T, rng *rand.Rand, name string, roots, width int, rules []Rule) {
	t.Helper()
	trie, err := Build(roots, rules, 0)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if trie.Steps > steps {
		t.Errorf("%s: %d steps, a packet takes %d", name, trie.Steps, steps)
	}
	truth := newExact(rules, width == 128)
	for n := range 4000 {
		k, root := Key{rng.Uint64(), rng.Uint64()}, rng.IntN(roots)
		if len(rules) > 0 && n%8 != 0 {
			r := rules[rng.IntN(len(rules))]
			k, root = near(rng, r), r.Root
		}
		a := address(k, width == 128)
		if got, want := trie.Find(root, KeyOf(a)), truth.find(root, a); got != want {
			t.Fatalf("%s: root %d, %s: %d, want %d", name, root, a, got, want)
		}
	}
}

// Lookups in any set of rules equal the definition, within the number of steps that a packet takes.
func TestAgainstDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, set := range sets {
		for _, width := range []int{32, 128} {
			for _, n := range []int{1, 2, 9, 130, 3000} {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				var rules []Rule
				for root := range 3 { // tries are independent
					rules = append(rules, distinct(rng, root, width, set(rng, n, width))...)
				}
				rng.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
				checkTrie(t, rng, fmt.Sprintf("%s, %d rules, %d bits", name, n, width), 4, width, rules)
			}
		}
	}
}

// A set that does not fit is built with smaller strides; if that is too large as well, the error has the number of words that it needs.
func TestRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rules := distinct(rng, 0, 32, sets["random"](rng, 5000, 32))
	wide, err := Build(1, rules, 0)
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := Build(1, rules, len(wide.Words)-1)
	if err != nil || len(narrow.Words) >= len(wide.Words) {
		t.Fatalf("%d words in the place of %d, %v", len(narrow.Words), len(wide.Words), err)
	}
	truth := newExact(rules, false)
	for range 20_000 {
		a := address(near(rng, rules[rng.IntN(len(rules))]), false)
		if got, want := narrow.Find(0, KeyOf(a)), truth.find(0, a); got != want {
			t.Fatalf("%s: %d, want %d", a, got, want)
		}
	}
	if _, err := Build(1, rules, 1000); !errors.Is(err, ErrFull) {
		t.Errorf("5,000 rules in 1,000 words: %v", err)
	}
}

// A large set of which most ends within eight bits is one branch to cells; a small one is not, nor one that a branch holds as a whole.
func TestLanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	dense := func(n int) (rules []Rule) {
		for i := range uint32(n) {
			rules = append(rules, Rule{Key: Word(i << 8), Bits: 24, Value: i + 1})
		}
		return rules
	}
	for _, c := range []struct {
		name  string
		rules []Rule
		lanes bool
	}{
		{"like a routing table", internet(rng, 100_000), true},
		{"3,000 within eight bits", distinct(rng, 0, 32, sets["windows"](rng, 3000, 32)), true},
		{"3,000 of IPv6 within eight bits", distinct(rng, 0, 128, sets["windows"](rng, 3000, 128)), true},
		{"few", internet(rng, 100), false},
		{"eight in each place", eights(rng, 5000), false},
		{"hosts", distinctHosts(rng, 100_000, 32), false},
		{"adjacent", dense(100_000), false},
	} {
		trie, err := Build(1, c.rules, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := trie.Words[0] >= onward|inLanes; got != c.lanes {
			t.Errorf("%s: a branch to cells: %t, want %t", c.name, got, c.lanes)
		}
	}
}

// eights are n times eight adjacent prefixes.
func eights(rng *rand.Rand, n int) (rules []Rule) {
	for range n {
		k := Key{High: rng.Uint64() & upper(19)}
		for i := range uint64(8) {
			rules = append(rules, Rule{Key: Key{High: k.High | i<<42}, Bits: 22})
		}
	}
	rules = distinct(rng, 0, 32, rules)
	for i := range rules {
		rules[i].Value = uint32(i + 1)
	}
	return rules
}

func TestRefused(t *testing.T) {
	for _, rules := range [][]Rule{{{Root: 1}}, {{Root: -1}}, {{Bits: 129}}, {{Bits: -1}}, {{Value: 1 << 31}},
		{{Bits: 8, Value: 1}, {Key: Key{High: 1}, Bits: 8, Value: 2}}} {
		if _, err := Build(1, rules, 0); !errors.Is(err, ErrRule) {
			t.Errorf("%+v: %v", rules, err)
		}
	}
}

// internet is a set like a routing table's: most prefixes have 24 bits, some 16 to 23, few more.
func internet(rng *rand.Rand, n int) []Rule {
	var rules []Rule
	seen := map[Rule]bool{}
	for len(rules) < n {
		r := Rule{Key: Key{High: uint64(rng.Uint32()) << 32}, Bits: 24}
		switch p := rng.Float64(); {
		case p < .35:
			r.Bits = 16 + rng.IntN(8)
		case p < .40:
			r.Bits = 25 + rng.IntN(8)
		}
		r.Key = r.Key.Masked(r.Bits)
		if !seen[r] {
			seen[r] = true
			r.Value = uint32(len(rules) + 1)
			rules = append(rules, r)
		}
	}
	return rules
}

// The memory of 100,000 prefixes, as docs/memory-rules.md states it.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name  string
		rules []Rule
		most  float64 // words a rule
	}{
		{"like a routing table", internet(rng, 100_000), 10},
		{"random hosts", distinctHosts(rng, 100_000, 32), 12},
		{"random hosts of IPv6", distinctHosts(rng, 100_000, 128), 24},
		{"1,000 paths of 128 bits with a host at every bit", caterpillars(rng, 1000), 60},
	} {
		trie, err := Build(1, c.rules, 0)
		if err != nil {
			t.Fatal(err)
		}
		words := float64(len(trie.Words)) / float64(len(c.rules))
		t.Logf("%s: %.2f words a prefix, %d steps", c.name, words, trie.Steps)
		if words > c.most {
			t.Errorf("%s: %.2f words a prefix, at most %.1f are documented", c.name, words, c.most)
		}
	}
}

func distinctHosts(rng *rand.Rand, n, width int) []Rule {
	var rules []Rule
	for range n {
		rules = append(rules, Rule{Key: Key{rng.Uint64(), rng.Uint64()}, Bits: width})
	}
	rules = distinct(rng, 0, width, rules)
	for i := range rules {
		rules[i].Value = uint32(i + 1)
	}
	return rules
}

// caterpillars are n paths through 128 bits, with a host that branches off at every bit.
func caterpillars(rng *rand.Rand, n int) (rules []Rule) {
	for range n {
		rules = append(rules, sets["caterpillar"](rng, 128, 128)...)
	}
	for i := range rules {
		rules[i].Value = uint32(i + 1)
	}
	return rules
}

// BenchmarkBuild measures the build of 100,000 prefixes, without the write.
func BenchmarkBuild(b *testing.B) {
	rules := internet(rand.New(rand.NewPCG(3, 4)), 100_000)
	for b.Loop() {
		if _, err := Build(1, rules, 0); err != nil {
			b.Fatal(err)
		}
	}
}
