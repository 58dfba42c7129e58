/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Who is charged: 64 bits of hash of a user, of which rows take 16 each. Users of different slices and of different kinds are
 * different users. In CRC mode the twin's field list is hashed, each row with its own polynomial. */
#pragma once

#include "hash.h"
#include "member.h"

static __always_inline __u32 user_mask(__u32 bits)
{
	return bits >= 32 ? ~0U : ~(~0U >> bits);
}

/* The i-th word of an address, host order, without what lies after its prefix. */
static __always_inline __u32 user_word(const __u32 *addr, int i, __u32 bits)
{
	__u32 front = 32 * i;

	return bits <= front ? 0 : bpf_ntohl(addr[i]) & user_mask(bits - front);
}

static __always_inline void user_v4(struct hash_sums *s, const struct phv *phv, __u64 m, __u32 tag)
{
	__u32 mask = user_mask(AHAB_PREFIX4(m));

	switch (AHAB_USER(m)) {
	case AHAB_USER_SOURCE:
		hash_add(s, 1, bpf_ntohl(phv->src[3]) & mask, tag);
		break;
	case AHAB_USER_DESTINATION:
		hash_add(s, 1, bpf_ntohl(phv->dst[3]) & mask, tag);
		break;
	default:
		hash_add(s, 1, phv->src[3], phv->dst[3]);
		hash_add(s, 3, (__u32)phv->sport << 16 | phv->dport, tag ^ phv->proto << 16);
	}
}

static __always_inline void user_v6(struct hash_sums *s, const struct phv *phv, __u64 m, __u32 tag)
{
	const __u32 *addr = AHAB_USER(m) == AHAB_USER_DESTINATION ? phv->dst : phv->src;
	__u32 bits = AHAB_USER(m) ? AHAB_PREFIX6(m) : 128;

	hash_add(s, 1, user_word(addr, 0, bits), user_word(addr, 1, bits));
	hash_add(s, 3, user_word(addr, 2, bits), user_word(addr, 3, bits));
	if (AHAB_USER(m)) {
		hash_add_one(s, 5, tag);
		return;
	}
	hash_add(s, 5, phv->dst[0], phv->dst[1]);
	hash_add(s, 7, phv->dst[2], phv->dst[3]);
	hash_add(s, 9, (__u32)phv->sport << 16 | phv->dport, tag ^ phv->proto << 16);
}

static __always_inline __u64 user_hash(const struct phv *phv, __u64 m)
{
	__u32 tag = AHAB_SLICE(m) | (__u32)AHAB_USER(m) << 24 | (__u32)phv->family << 26;
	struct hash_sums s;

	hash_begin(&s, 0);
	if (phv->family == 4)
		user_v4(&s, phv, m, tag);
	else
		user_v6(&s, phv, m, tag);
	return hash_mix(hash_halves(&s));
}

/* The twin's field list: addresses as far as they distinguish users, ports where these do, and the slice. */
static __always_inline void user_fields(struct hash_input *in, const struct phv *phv, __u64 m)
{
	__u32 bits = phv->family == 4 ? 96 + AHAB_PREFIX4(m) : AHAB_PREFIX6(m), kind = AHAB_USER(m), front;

	hash_fields(in, phv, 0, AHAB_SLICE(m));
	if (!kind)
		return;
	in->w[8] = 0;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		front = bits <= 32 * i ? 0 : user_mask(bits - 32 * i);
		in->w[i] = kind == AHAB_USER_SOURCE ? in->w[i] & bpf_htonl(front) : 0;
		in->w[4 + i] = kind == AHAB_USER_DESTINATION ? in->w[4 + i] & bpf_htonl(front) : 0;
	}
}
