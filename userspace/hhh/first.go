package hhh

import (
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Prefixes of 8 bits have a counter each (section 3.5.6), whose sums are those of shorter ones.

const firstArray = "hhh_first"

const firstBytes = 1 << exactBits

// first6 is the first counter of IPv6.
func (c *config) first6() int {
	if c.ways.Spec.Family == heavy.Both {
		return firstBytes
	}
	return 0
}

// firsts is the number of counters; an unused array has one.
func (c *config) firsts() int {
	if c.exact == 0 {
		return 1
	}
	return c.first6() + firstBytes
}

// readFirst adds up the counters of all CPUs and resets them.
func (i *instance) readFirst(s *snapshot.Snapshot, bank int) error {
	if i.exact == 0 {
		return nil
	}
	copies, err := i.first.ReadResetPerCPU(bank)
	if err != nil {
		return fmt.Errorf("read first bytes: %w", err)
	}
	sums := make(snapshot.Words, i.firsts())
	for _, words := range copies {
		for n, w := range words {
			sums[n] += w
		}
	}
	s.Words[firstWords] = sums
	return nil
}

func (c *config) firstOf(r *snapshot.Reader) []uint64 {
	if c.exact == 0 {
		return nil
	}
	words := r.Words(firstWords, c.firsts())
	for _, n := range words {
		if n > mostCounted {
			r.Refuse("%d packets of a first byte", n)
			return nil
		}
	}
	return words
}

// addFirst replaces the estimates of prefixes of up to 8 bits.
func (c *config) addFirst(s seen, words []uint64) {
	exact := map[heavy.Prefix]float64{}
	for n, count := range words {
		if count == 0 {
			continue
		}
		v4 := c.ways.Spec.Family == heavy.IPv4 || c.ways.Spec.Family == heavy.Both && n < firstBytes
		a := addrOf(byte(n), v4)
		for level := 1; level <= c.exact; level++ {
			exact[c.prefix(a, a, level, level)] += float64(count)
		}
	}
	for p, n := range exact {
		s.estimates[p], s.margins[p] = n, margin{}
	}
}

// addrOf is the first address with a first byte.
func addrOf(first byte, v4 bool) netip.Addr {
	if v4 {
		return netip.AddrFrom4([4]byte{first})
	}
	return netip.AddrFrom16([16]byte{first})
}
