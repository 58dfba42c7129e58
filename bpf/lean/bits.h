/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Keys from sub-buckets, one per bit of the key (Theorem 3), instead of reports.
 *
 * The theorem's sub-buckets 2k-1 and 2k sum the flows with a 0 and with a 1 in bit k; the larger one gives the bit of the
 * bucket's heaviest flow. Both are one cell here: a flow adds its value if its bit is 1, and subtracts it if it is 0.
 * A switch cannot access a hundred cells for a packet, so each event goes to one bit that a coin selects: a bit is known when
 * some of the flow's events were added to it, and a flow needs about a thousand of them. 16 more bits are a checksum of the key.
 *
 * Only userspace reads the cells. IPv4 only: an IPv6 key has three times the bits. */
#pragma once

#include "frame.h"

#define BITS_BUCKET 128 /* cells of a bucket */
#define BITS_USED 120   /* source, destination, ports, protocol, check */
#define BITS_CHECK 104  /* first bit of the check */

const volatile _Bool lean_bits_on = 0;

/* stage 10: [bucket][bit] */
TALLY(lean_bits, 10, __u32, 1);

/* The key's two words: addresses; ports and protocol. */
struct bits_key {
	__u64 addresses;
	__u64 rest;
};

/* 16 bits that refuse a wrong key. A switch has the half of a hash that no row and no array uses. */
static __always_inline __u64 bits_check(const struct bits_key *key, const struct sketch_place *at, __u8 proto)
{
	return hash_crc ? at->rest >> 48 ^ proto : hash_mix(key->addresses ^ hash_mix(key->rest)) >> 48;
}

static __always_inline void bits_key(struct bits_key *key, const struct phv *phv, const struct sketch_place *at, int reverse)
{
	__u64 src = bpf_ntohl(reverse ? phv->dst[3] : phv->src[3]), dst = bpf_ntohl(reverse ? phv->src[3] : phv->dst[3]);
	__u64 sport = reverse ? phv->dport : phv->sport, dport = reverse ? phv->sport : phv->dport;

	key->addresses = src << 32 | dst;
	key->rest = lean_pair ? 0 : sport << 48 | dport << 32 | (__u64)phv->proto << 24;
	key->rest |= bits_check(key, at, lean_pair ? 0 : phv->proto) << 8;
}

static __always_inline void bits_add(struct phv *phv, const struct sketch_place *at, const struct lean_event *e,
				     struct lean_counts_t *count)
{
	__u32 bit = (__u32)((coin_flip(phv) >> 16) * BITS_USED) >> 16, bucket, *cell;
	struct bits_key key;
	__s32 value;

	if (phv->family != 4) {
		count->c[LEAN_NAMELESS]++;
		return;
	}
	bits_key(&key, phv, at, e->reverse);
	value = (bit < 64 ? key.addresses >> (63 - bit) : key.rest >> (127 - bit)) & 1 ? e->value : -e->value;
	bucket = BLOOM_BITS(at, 0) & (lean_bits_entries / BITS_BUCKET - 1);
	cell = reg_bank(lean_bits, phv, bucket * BITS_BUCKET + (bit & (BITS_BUCKET - 1)));
	if (cell)
		*cell += value;
}
