/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Longest prefix match over a plain array: what an lpm table is on a switch.
 *
 * BPF's LPM map costs 85 to 98 ns a lookup here, more than everything else that a packet meets together. This is a multi-bit trie that
 * userspace builds (maps/prefix) and replaces as a whole while packets come. The stride of each node is chosen when it is built, as in
 * a level-compressed trie (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries", IEEE JSAC 17, 1999), and prefixes are pushed down
 * to the leaves (Srinivasan and Varghese, "Fast Address Lookups Using Controlled Prefix Expansion", ACM TOCS 17, 1999), so that a step
 * is one read and nothing is looked at twice. A way that many prefixes share, and that none leaves, is compared as a whole.
 *
 * One table holds many tries, each with a root: the value found in one may say which root comes next (interface, then source; a pair of
 * prefixes). A packet reads the head once and hands it to each of its lookups, so that all of them are in the same version. Two halves
 * of the array hold the version in use and the next one; userspace fills the other half, writes the head with one store, and
 * waits until no program runs that has read the old one. Beside the place of the version the head holds the word at root 0: what a packet
 * begins with costs it no further read.
 *
 * A word has 32 bits, two stand in an element, since the fewer lines of memory a table has the fewer are missing from the cache. It is a
 * leaf, 0 << 31 | value (0: no prefix matches), or leads on, with bits 25 to 29 the bits of the address that it takes (1 to 32), less one, and a
 * base, counted from the version's beginning, in bits 0 to 24:
 *   branch   1 << 31            the word at base + those bits is next
 *   compare  1 << 31 | 1 << 30  the word at base + 2 is next if those bits are the word at base, else the word at base + 1
 *
 * Bound: PREFIX_STEPS steps at any set of prefixes; userspace refuses none for its shape, as eight bits a step are always enough. */
#pragma once

#include "base.h"

#define PREFIX_STEPS 16
#define PREFIX_ONWARD (1U << 31)
#define PREFIX_COMPARE (1U << 30)
#define PREFIX_BASE ((1U << 25) - 1)

/* words: of one version, a multiple of 16; maps/prefix sets another number. Element 0 is the head, and stands alone in its line.
 * Userspace writes through a mapping, which the kernel allows of no map that it guards against programs: the proof does. */
#define PREFIX_TABLE(name, words)                                                                     \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                     \
		__type(key, __u32);                                                                   \
		__type(value, __u64);                                                                 \
		__uint(max_entries, 8 + (words));                                                     \
		__uint(map_flags, BPF_F_MMAPABLE);                                                    \
	} name SEC(".maps") TAG("pisa:prefix")

/* Two words, from an even place. */
static __always_inline __u64 prefix_pair(void *table, __u32 place)
{
	__u64 *pair;

	place >>= 1;
	pair = bpf_map_lookup_elem(table, &place);
	return pair ? READ_ONCE(*pair) : 0;
}

static __always_inline __u32 prefix_word(void *table, __u32 place)
{
	return prefix_pair(table, place) >> ((place & 1) * 32);
}

/* The version that this packet is looked up in. Bits 0 to 31: where it begins, with its roots; 32 to 63: the word at root 0. */
static __always_inline __u64 prefix_head(void *table)
{
	return prefix_pair(table, 0);
}

/* The value of the longest prefix of an address in the trie at root; 0 when there is none. The address stands in the upper bits of high;
 * low is what of it has no room there. */
static __always_inline __u32 prefix_find(void *table, __u64 head, __u32 root, __u64 high, __u64 low)
{
	__u32 word = root ? prefix_word(table, (__u32)head + root) : head >> 32, bits, top, base;
	__u64 pair;

	for (int i = 0; i < PREFIX_STEPS && word & PREFIX_ONWARD; i++) {
		base = (__u32)head + (word & PREFIX_BASE);
		bits = (word >> 25 & 31) + 1;
		top = high >> (64 - bits);
		high = high << bits | low >> (64 - bits);
		low <<= bits;
		if (word & PREFIX_COMPARE) {
			pair = prefix_pair(table, base);
			word = (__u32)pair == top ? prefix_word(table, base + 2) : pair >> 32;
		} else {
			word = prefix_word(table, base + top);
		}
	}
	return word & PREFIX_ONWARD ? 0 : word;
}

/* An address of the packet header vector. IPv4 and IPv6 have tries of their own: 32 bits stand at the top. */
static __always_inline __u32 prefix_of(void *table, __u64 head, __u32 root, const __u32 *addr, __u8 family)
{
	__u64 high = (__u64)bpf_ntohl(addr[0]) << 32 | bpf_ntohl(addr[1]), low = (__u64)bpf_ntohl(addr[2]) << 32 | bpf_ntohl(addr[3]);

	if (family == 4)
		return prefix_find(table, head, root, low << 32, 0);
	return prefix_find(table, head, root, high, low);
}
