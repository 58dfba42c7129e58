/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flow keys as words: stored whole and not as a digest, so that a report can name the flow.
 *
 * A key has up to KEY_WORDS words of 64 bits, and a packet compares and writes only the words that its family needs:
 *
 *	word 0   IPv4: source and destination, 32 bits each; IPv6: low half of the first address
 *	word 1   the tag: ports, protocol, family (omitted if only IPv4 addresses are counted)
 *	word 2   IPv6: low half of the second address, or high half of the only one
 *	word 3,4 IPv6: high halves of two addresses
 *
 * Without addresses the tag is word 0. The family in the tag decides which of the following words are used. No key is all
 * zeros: that is an empty entry. Go's inverse: userspace/heavy/key.go. */
#pragma once

#include "phv.h"
#include "hash.h"

#define KEY_WORDS 5

enum key_field {
	KEY_SRC = 1 << 0,
	KEY_DST = 1 << 1,
	KEY_SPORT = 1 << 2,
	KEY_DPORT = 1 << 3,
	KEY_PROTO = 1 << 4,
};

enum key_family { FAMILY_BOTH = 0, FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

#define KEY_ADDRS (KEY_SRC | KEY_DST)
#define KEY_PORTS (KEY_SPORT | KEY_DPORT)

/* Which fields, from which packets. */
const volatile __u32 key_fields = KEY_SRC | KEY_DST | KEY_SPORT | KEY_DPORT | KEY_PROTO;
const volatile __u32 key_family = FAMILY_BOTH;
const volatile __u32 key_words = KEY_WORDS; /* of the longest key */
const volatile _Bool key_tagged = 1;        /* IPv4 addresses alone do without the tag where nothing else is counted */

struct key {
	__u64 w[KEY_WORDS];
	__u32 words; /* of this packet's family */
};

static __always_inline __u64 key_half(const __u32 *addr, int half)
{
	return (__u64)bpf_ntohl(addr[half]) << 32 | bpf_ntohl(addr[half + 1]);
}

/* Bits 48..63 source port, 32..47 destination port, 24..31 protocol, 8..23 free for the algorithm, 1 IPv6, 0 set. */
static __always_inline __u64 key_tag(const struct phv *phv)
{
	__u64 w = phv->family == 4 ? 1 : 3;

	if (key_fields & KEY_SPORT)
		w |= (__u64)phv->sport << 48;
	if (key_fields & KEY_DPORT)
		w |= (__u64)phv->dport << 32;
	if (key_fields & KEY_PROTO)
		w |= (__u64)phv->proto << 24;
	return w;
}

static __always_inline void key_v4(const struct phv *phv, struct key *key, __u64 tag)
{
	key->w[0] = 0;
	if (key_fields & KEY_SRC)
		key->w[0] = (__u64)bpf_ntohl(phv->src[3]) << 32;
	if (key_fields & KEY_DST)
		key->w[0] |= bpf_ntohl(phv->dst[3]);
	if (!(key_fields & KEY_DST))
		key->w[0] |= 1;
	key->words = 1;
	if (key_tagged) {
		key->w[1] = tag;
		key->words = 2;
	}
}

static __always_inline void key_v6(const struct phv *phv, struct key *key, __u64 tag)
{
	const __u32 *first = key_fields & KEY_SRC ? phv->src : phv->dst;

	key->w[0] = key_half(first, 2);
	key->w[1] = tag;
	if ((key_fields & KEY_ADDRS) != KEY_ADDRS) {
		key->w[2] = key_half(first, 0);
		key->words = 3;
		return;
	}
	key->w[2] = key_half(phv->dst, 2);
	key->w[3] = key_half(first, 0);
	key->w[4] = key_half(phv->dst, 0);
	key->words = 5;
}

/* The words of this packet's key; false if the packet has no such key (another family, no ports). */
static __always_inline int key_of(const struct phv *phv, struct key *key)
{
	__u64 tag;

	if (!phv_has(phv, PHV_IP) || (key_family && phv->family != key_family))
		return 0;
	if ((key_fields & KEY_PORTS) && (key_fields & KEY_ADDRS) == 0 && !phv_has(phv, PHV_PORTS))
		return 0;
	tag = key_tag(phv);
#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++)
		key->w[i] = 0;
	if (!(key_fields & KEY_ADDRS)) {
		key->w[0] = tag;
		key->words = 1;
	} else if (phv->family == 4) {
		key_v4(phv, key, tag);
	} else {
		key_v6(phv, key, tag);
	}
	return 1;
}

/* 64 bits of hash over the words in use, strongly universal: any two keys, whatever bits they differ in, agree in n given bits
 * with probability 2^-n (hash.h). Rows are bits of it, or of another bijection of it. */
static __always_inline __u64 key_hash(const struct key *key)
{
	struct hash_sums s;

	hash_begin(&s, 0);
#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++)
		if ((__u32)i < key_words && (__u32)i < key->words)
			hash_add(&s, 1 + 2 * i, key->w[i] >> 32, (__u32)key->w[i]);
	return hash_mix(hash_halves(&s));
}

/* CRC mode: the twin's hash input, the words in network order. */
static __always_inline void key_fields_of(struct hash_input *in, const struct key *key)
{
#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++) {
		in->w[2 * i] = bpf_htonl(key->w[i] >> 32);
		in->w[2 * i + 1] = bpf_htonl((__u32)key->w[i]);
	}
	in->w[2 * KEY_WORDS] = 0;
}
