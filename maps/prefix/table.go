package prefix

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
)

// Tag is the tag that PREFIX_TABLE gives its map.
const Tag = "pisa:prefix"

// start is the word at which the first half begins: the head has a cache line of its own. Halves are multiples of start, so that aligned words of
// a version are aligned in either half.
const start = 16

// Table is a loaded prefix table. One goroutine changes it.
type Table struct {
	name    string
	pairs   *maps.Shared
	half    int // words of a version
	current *Trie
}

// MaxWords is the largest number of words of a version.
const MaxWords = (baseMask + 1 - start) / 2 / start * start

// Size sets the size of an object's table for versions of n words.
func Size(spec *ebpf.CollectionSpec, name string, words int) error {
	ms, ok := spec.Maps[name]
	if !ok {
		return fmt.Errorf("size prefix table %s: %w", name, maps.ErrNoMap)
	}
	if words < 1 || words > MaxWords {
		return fmt.Errorf("size prefix table %s: %d words: allowed are 1 to %d", name, words, MaxWords)
	}
	ms.MaxEntries = uint32((start + 2*((words+start-1)/start*start)) / 2)
	return nil
}

// Open opens a loaded table. The content from an earlier process stays until Replace.
func Open(set *maps.Set, name string) (*Table, error) {
	a, err := set.Array(name)
	if err != nil {
		return nil, err
	}
	pairs, err := a.Shared()
	if err != nil {
		return nil, err
	}
	t := &Table{name: name, pairs: pairs, half: (2*pairs.Len() - start) / 2 / start * start}
	return t, nil
}

// Words that a version may have.
func (t *Table) Words() int { return t.half }

// Current is the version in which packets are looked up; nil before this process' first Replace.
func (t *Table) Current() *Trie { return t.current }

// Replace replaces the set of rules, for all roots at once: a packet is looked up either in the old or in the new set. After an error the old
// set stays. When it returns no packet uses the old set.
func (t *Table) Replace(roots int, rules []Rule) error {
	trie, err := Build(roots, rules, t.half)
	if err != nil {
		return fmt.Errorf("replace prefix table %s: %w", t.name, err)
	}
	return t.Put(trie)
}

// Put is Replace for a trie that is built.
func (t *Table) Put(trie *Trie) error {
	if len(trie.Words) > t.half {
		return fmt.Errorf("replace prefix table %s: %w: %d words, it has %d", t.name, ErrFull, len(trie.Words), t.half)
	}
	head := start
	if uint32(t.pairs.Load(0)) == start {
		head = start + t.half
	}
	for i := 0; i < len(trie.Words); i += 2 {
		pair := uint64(trie.Words[i])
		if i+1 < len(trie.Words) {
			pair |= uint64(trie.Words[i+1]) << 32
		}
		t.pairs.Store((head+i)/2, pair)
	}
	t.pairs.Store(0, uint64(head)|uint64(trie.Words[0])<<32)
	if err := settle(); err != nil {
		return fmt.Errorf("replace prefix table %s: %w", t.name, err)
	}
	t.current = trie
	return nil
}

// settle returns when no packet uses the earlier version. Tables are not closed, so it opens the barrier for this call only.
func settle() error {
	b, err := maps.NewBarrier()
	if err != nil {
		return err
	}
	return errors.Join(b.Wait(), b.Close())
}
