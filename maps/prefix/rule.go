// Package prefix is userspace's side of a prefix table (bpf/include/prefix.h): longest prefix match over a plain array, built here and
// replaced as a whole while packets arrive. It names no algorithm.
package prefix

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

// Errors of rules and tables.
var (
	// ErrRule is wrapped for a rule that is invalid for any table.
	ErrRule = errors.New("not a rule of a prefix table")
	// ErrFull is wrapped when a set of rules takes more words than a table has.
	ErrFull = errors.New("the prefix table is full")
)

// MaxValue is the largest value of a rule.
const MaxValue = 1<<31 - 1

// Key is what is looked up: bits from the top.
type Key struct{ High, Low uint64 }

// KeyOf is an address as packets look it up: IPv4 and IPv6 need separate tries.
func KeyOf(a netip.Addr) Key {
	if a.Is4() {
		b := a.As4()
		return Key{High: uint64(binary.BigEndian.Uint32(b[:])) << 32}
	}
	b := a.As16()
	return Key{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// Word is a number of 32 bits as a key: an interface, a mark.
func Word(n uint32) Key { return Key{High: uint64(n) << 32} }

// Rule gives a value to all keys with the same first Bits bits, in one of the table's tries.
type Rule struct {
	Root  int
	Key   Key
	Bits  int
	Value uint32 // 0: as if no rule matched
}

// Of is the rule of a prefix.
func Of(root int, p netip.Prefix, value uint32) Rule {
	return Rule{Root: root, Key: KeyOf(p.Addr()), Bits: p.Bits(), Value: value}
}

func (r Rule) check(roots int) error {
	switch {
	case r.Root < 0 || r.Root >= roots:
		return fmt.Errorf("%w: root %d: there are 0 to %d", ErrRule, r.Root, roots-1)
	case r.Bits < 0 || r.Bits > 128:
		return fmt.Errorf("%w: %d bits: allowed are 0 to 128", ErrRule, r.Bits)
	case r.Value > MaxValue:
		return fmt.Errorf("%w: value %#x: at most %#x", ErrRule, r.Value, MaxValue)
	}
	return nil
}

// Masked keeps the first n bits.
func (k Key) Masked(n int) Key {
	if n <= 64 {
		return Key{High: k.High & upper(n)}
	}
	return Key{k.High, k.Low & upper(n-64)}
}

func upper(n int) uint64 { return ^(^uint64(0) >> n) }

// common is the number of first bits in which two keys agree.
func (k Key) common(o Key) int {
	if x := k.High ^ o.High; x != 0 {
		return bits.LeadingZeros64(x)
	}
	return 64 + bits.LeadingZeros64(k.Low^o.Low)
}

// take returns the n bits that follow the first from bits; n is at most 32.
func (k Key) take(from, n int) uint32 {
	high, low := k.High, k.Low
	switch {
	case from >= 64:
		high, low = low<<(from-64), 0
	case from > 0:
		high = high<<from | low>>(64-from)
	}
	return uint32(high >> (64 - n))
}

func compare(a, b Rule) int {
	return cmp.Or(a.Root-b.Root, cmp.Compare(a.Key.High, b.Key.High), cmp.Compare(a.Key.Low, b.Key.Low), a.Bits-b.Bits)
}

// sorted are checked rules, by root and key, outer before inner. Bits after a prefix are cleared.
func sorted(roots int, rules []Rule) ([]Rule, error) {
	all := slices.Clone(rules)
	for i := range all {
		if err := all[i].check(roots); err != nil {
			return nil, err
		}
		all[i].Key = all[i].Key.Masked(all[i].Bits)
	}
	slices.SortFunc(all, compare)
	for i := 1; i < len(all); i++ {
		if compare(all[i-1], all[i]) == 0 {
			return nil, fmt.Errorf("%w: %x/%d in root %d is there twice", ErrRule, all[i].Key, all[i].Bits, all[i].Root)
		}
	}
	return all, nil
}
