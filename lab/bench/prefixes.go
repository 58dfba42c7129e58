package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/maps/prefix"
)

// prefixCount is how many the tables of the benchmark hold.
const prefixCount = 100_000

// prefixed are lookups in 100,000 prefixes, in our table and in BPF's: of addresses that are scattered over a routing table, so that each
// of them misses the cache, and of clients in any order, half of which have a prefix of their own.
func prefixed() []Subject {
	filled := func(name, what string, fill func(*maps.Set) error) Subject {
		s := yardstick(name, GroupYardsticks, what)
		s.fill = fill
		return s
	}
	return []Subject{
		yardstick("scatter", GroupYardsticks, "an address, scattered: what the next ones look up"),
		yardstick("scatter_word", GroupYardsticks, "... in an array of a MiB, one word"),
		yardstick("scatter_words", GroupYardsticks, "... in two of them, the first says where"),
		filled("prefix_table", "... in 100,000 prefixes, prefix table", fillTable),
		filled("prefix_table6", "... in 100,000 prefixes of IPv6, prefix table", fillTable),
		filled("lpm_map", "... in 100,000 prefixes, BPF's LPM map", func(set *maps.Set) error { return fillMap(set, routes()) }),
		filled("prefix_near", "clients as they come in 100,000 prefixes, prefix table", fillTable),
		filled("lpm_near", "clients as they come in 100,000 prefixes, BPF's LPM map", func(set *maps.Set) error { return fillMap(set, near()) }),
	}
}

// near are hosts, every second one from 10.0.0.0, between half of the routes, in the third trie.
func near() []prefix.Rule {
	rules := routes()[:prefixCount/2]
	for n := range uint32(prefixCount / 2) {
		rules = append(rules, prefix.Rule{Key: prefix.Word(10<<24 + 2*n), Bits: 32, Value: 1 + n})
	}
	kept, seen := rules[:0], map[prefix.Rule]bool{}
	for _, r := range rules {
		place := prefix.Rule{Key: r.Key, Bits: r.Bits}
		if r.Root = 2; !seen[place] {
			seen[place] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// routes are prefixes as in a routing table: most have 24 bits, some 16 to 23, few more. All addresses below 128.0.0.0 lie in one
// of eight bits besides.
func routes() (rules []prefix.Rule) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range uint64(128) {
		rules = append(rules, prefix.Rule{Key: prefix.Key{High: n << 56}, Bits: 8, Value: uint32(n + 1)})
	}
	seen := map[prefix.Rule]bool{}
	for len(rules) < prefixCount {
		r := prefix.Rule{Bits: 24}
		switch p := rng.Float64(); {
		case p < .35:
			r.Bits = 16 + rng.IntN(8)
		case p < .40:
			r.Bits = 25 + rng.IntN(8)
		}
		r.Key.High = uint64(rng.Uint32()>>(32-r.Bits)) << (64 - r.Bits)
		if !seen[r] {
			seen[r] = true
			r.Value = uint32(len(rules) + 1)
			rules = append(rules, r)
		}
	}
	return rules
}

// routes6 are the same below 2001:db8::/32, down to 64 bits, in the second trie.
func routes6() (rules []prefix.Rule) {
	for _, r := range routes() {
		r.Root, r.Key, r.Bits = 1, prefix.Key{High: 0x20010db8<<32 | r.Key.High>>32}, r.Bits+32
		rules = append(rules, r)
	}
	return rules
}

func fillTable(set *maps.Set) error {
	table, err := prefix.Open(set, "micro_prefixes")
	if err != nil {
		return err
	}
	return table.Replace(3, slices.Concat(routes(), routes6(), near()))
}

func fillMap(set *maps.Set, rules []prefix.Rule) error {
	array, err := set.Array("micro_lpm")
	if err != nil {
		return err
	}
	for _, r := range rules {
		key := make([]byte, 8)
		binary.NativeEndian.PutUint32(key, uint32(r.Bits))
		binary.BigEndian.PutUint32(key[4:], uint32(r.Key.High>>32))
		if err := array.Map().Update(key, uint64(r.Value), ebpf.UpdateAny); err != nil {
			return fmt.Errorf("fill the LPM map: %w", err)
		}
	}
	return nil
}
