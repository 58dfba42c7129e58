/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Longest prefix match over a plain array: the equivalent of an lpm table on a switch.
 *
 * BPF's LPM map costs 85 to 98 ns per lookup here, more than all other processing of a packet. This is a multi-bit trie that
 * userspace builds (maps/prefix) and replaces as a whole while packets arrive. The stride of each node is chosen when it is built, as in
 * a level-compressed trie (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries", IEEE JSAC 17, 1999), and prefixes are pushed down
 * to the leaves (Srinivasan and Varghese, "Fast Address Lookups Using Controlled Prefix Expansion", ACM TOCS 17, 1999), so that a step
 * is one read and no word is read twice. A path that many prefixes share, and on which none ends, is compared as a whole.
 *
 * One table contains many tries, each with a root: the value found in one may name the next root (interface, then source; a pair of
 * prefixes). A packet reads the head once and passes it to each of its lookups, so that all of them use the same version. Two halves
 * of the array are the current version and the next one; userspace fills the other half, writes the head with one store, and
 * waits until no program runs that has read the old one. In addition to the position of the version the head contains the word at root 0: a
 * packet's first step needs no further read.
 *
 * A word has 32 bits, two per element, since the fewer cache lines a table has, the fewer are missing from the cache. It is a
 * leaf, 0 << 31 | value (0: no prefix matches), or a node, with the number of address bits that it uses (1 to 32), less one, in bits 24 to 28, and a
 * base, counted from the version's start, in bits 0 to 23:
 *   branch   4 << 29  the word at base + those bits is next
 *   compare  5 << 29  the word at base + 2 is next if those bits are the word at base, else the word at base + 1
 *   lanes    6 << 29  a branch to cells of four words at base + 4 * those bits, for a large trie in which most prefixes end within the following eight bits:
 *                     four prefixes of these eight, the longest first, a byte each in word 0 and their masks in word 1, word 2 for an address that matches none,
 *                     and word 3 for one that matches the only one, or the list (7 << 29 | base) of the words for the first to the last of them; both
 *                     apply after the eight bits. Mask 0: no prefix. So a lookup reads one cache line where a branch and its child need two or three.
 *
 * Bound: PREFIX_STEPS steps for any set of prefixes; userspace rejects none for its shape, as eight bits per step always suffice. */
#pragma once

#include "base.h"

#define PREFIX_STEPS 16
#define PREFIX_ONWARD (1U << 31)
#define PREFIX_LANES (1U << 30)
#define PREFIX_COMPARE (1U << 29)
#define PREFIX_LIST (7U << 29)
#define PREFIX_BASE ((1U << 24) - 1)

/* words: of one version, a multiple of 16; maps/prefix sets another number. Element 0 is the head, alone in its cache line.
 * Userspace writes through a mapping, which the kernel does not allow for maps that are read-only to programs: the proof ensures that. */
#define PREFIX_TABLE(name, words)                                                                     \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                     \
		__type(key, __u32);                                                                   \
		__type(value, __u64);                                                                 \
		__uint(max_entries, 8 + (words));                                                     \
		__uint(map_flags, BPF_F_MMAPABLE);                                                    \
	} name SEC(".maps") TAG("pisa:prefix")

/* Two words, from an even index. The key has a stack word of its own: if the compiler stores something else in the other half, the verifier loses its bounds. */
static __always_inline __u64 prefix_pair(void *table, __u32 place)
{
	__u64 key = place >> 1, *pair;

	pair = bpf_map_lookup_elem(table, &key);
	return pair ? READ_ONCE(*pair) : 0;
}

static __always_inline __u32 prefix_word(void *table, __u32 place)
{
	return prefix_pair(table, place) >> ((place & 1) * 32);
}

/* The version that this packet uses. Bits 0 to 31: its position, with its roots; 32 to 63: the word at root 0. */
static __always_inline __u64 prefix_head(void *table)
{
	return prefix_pair(table, 0);
}

/* The lanes that match eight bits: the highest bit of each one's byte; bits above the lowest of these are not reliable. */
static __always_inline __u32 prefix_lanes(__u64 lanes, __u32 bits)
{
	__u32 all = bits * 0x01010101, x = (all & (__u32)lanes) | (~all & (__u32)(lanes >> 32));

	return (x - 0x01010101) & ~x & 0x80808080;
}

/* The number of the lowest of them. */
static __always_inline __u32 prefix_lowest(__u32 hits)
{
	return ((hits - 1 & ~hits) >> 7 & 0x01010101) * 0x01010101 >> 24;
}

/* The unused bits of an address, left-aligned. */
struct prefix_rest {
	__u64 high, low;
};

static __always_inline __u32 prefix_take(struct prefix_rest *rest, __u32 bits)
{
	__u32 top = rest->high >> (64 - bits);

	rest->high = rest->high << bits | rest->low >> (64 - bits);
	rest->low <<= bits;
	return top;
}

static __always_inline __u32 prefix_cell(void *table, __u32 version, __u32 place, struct prefix_rest *rest)
{
	__u64 lanes = prefix_pair(table, place), words = prefix_pair(table, place + 2);
	__u32 hits = prefix_lanes(lanes, rest->high >> 56), word = words >> 32;

	if (!hits)
		return words;
	prefix_take(rest, 8);
	return word >= PREFIX_LIST ? prefix_word(table, version + (word & PREFIX_BASE) + prefix_lowest(hits)) : word;
}

/* The value of the longest prefix of an address in the trie at root; 0 if there is none. The address is left-aligned in high;
 * low is the rest of it. */
static __always_inline __u32 prefix_find(void *table, __u64 head, __u32 root, __u64 high, __u64 low)
{
	__u32 version = head, word = root ? prefix_word(table, version + root) : head >> 32, top, base;
	struct prefix_rest rest = {high, low};
	__u64 pair;

	for (__u64 i = 0; i < PREFIX_STEPS; i++) {
		if (!(word & PREFIX_ONWARD)) /* asked here alone, where the answer is nearly always the same: whether the value is 0 is not */
			return word;
		base = version + (word & PREFIX_BASE);
		top = prefix_take(&rest, (word >> 24 & 31) + 1);
		if (word & PREFIX_LANES) {
			word = prefix_cell(table, version, base + 4 * top, &rest);
		} else if (word & PREFIX_COMPARE) {
			pair = prefix_pair(table, base);
			word = (__u32)pair == top ? prefix_word(table, base + 2) : pair >> 32;
		} else {
			word = prefix_word(table, base + top);
		}
	}
	return word & PREFIX_ONWARD ? 0 : word;
}

/* An address of the packet header vector. IPv4 and IPv6 have separate tries: 32 bits are left-aligned. */
static __always_inline __u32 prefix_of(void *table, __u64 head, __u32 root, const __u32 *addr, __u8 family)
{
	__u64 high = (__u64)bpf_ntohl(addr[0]) << 32 | bpf_ntohl(addr[1]), low = (__u64)bpf_ntohl(addr[2]) << 32 | bpf_ntohl(addr[3]);

	if (family == 4)
		return prefix_find(table, head, root, low << 32, 0);
	return prefix_find(table, head, root, high, low);
}
