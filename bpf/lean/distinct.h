/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Algorithm 4: retransmissions from packets against different packets, of elephants only (section 4.4).
 *
 * Every data packet enters the Count Sketch with a value of one. A flow whose estimate has reached the limit, a share of all
 * packets, is an elephant, and is counted in a list: its packets since then, and its different ones (Kane,
 * Nelson, Woodruff require a 2-approximation; here 64 registers of HyperLogLog, Flajolet et al. 2007, which
 * err by 13 %). A retransmission is a packet but not a different one: userspace reports the difference.
 *
 * A list entry is {signature, packets} under a hash. A new elephant takes the entry of a flow that has not had the limit's
 * packets since it was listed, and is reported when it does. A register is {tag, largest rank}: the tag
 * is of the entry's flow, so that the old registers need not be cleared.
 *
 * It finds elephants. One retransmission in a hundred packets is a thirteenth of the error of 64 registers, and no memory within
 * 40 KB changes that for a thousand flows: docs/lean.md has the calculation. */
#pragma once

#include "segment.h"

#define DISTINCT_REGISTERS 64

const volatile _Bool lean_ret_distinct = 0;

/* stage 10: {signature, packets}; stage 11: {tag 8, rank 8}, 64 of each entry */
REGISTER_BANKED(lean_ret_list, 10, __u64, 1);
REGISTER_BANKED(lean_ret_rank, 11, __u16, 64);

/* 32 bits that identify a segment of a flow: equal when it is retransmitted. */
static __always_inline __u32 distinct_item(const struct phv *phv, const struct lean_flow *f)
{
	struct hash_input in;

	if (hash_crc) {
		hash_fields(&in, phv, 0, phv->seq);
		return hash_crc32(&in, 0);
	}
	return hash_mix(f->hash ^ phv->seq * 0x9e3779b97f4a7c15ULL) >> 32;
}

static __always_inline __u32 distinct_entry(const struct sketch_place *at)
{
	return (__u32)at->rows & (lean_ret_list_entries - 1);
}

/* Stage 10: an elephant's entry. FATE_OTHER: a larger one's. */
static __always_inline int distinct_list(const struct phv *phv, const struct sketch_place *at, __u32 limit)
{
	__u64 *word = reg_bank(lean_ret_list, phv, distinct_entry(at)), old;

	if (!word)
		return FATE_OTHER;
	old = reg_load(word);
	if (old >> 32 == at->rows >> 32) {
		reg_add(word, 1);
		return FATE_OWN;
	}
	if ((__u32)old >= limit)
		return FATE_OTHER;
	reg_store(word, (at->rows >> 32) << 32 | 1);
	return FATE_TAKEN;
}

/* Stage 11: the segment's register keeps the largest rank, which is the number of leading zeros plus one. */
static __always_inline void distinct_rank(const struct phv *phv, const struct sketch_place *at, __u32 item)
{
	__u32 index = distinct_entry(at) * DISTINCT_REGISTERS + item % DISTINCT_REGISTERS, old;
	__u32 mine = (__u32)(at->rows >> 40 & 0xff) << 8 | (32 - bins_log2(item | DISTINCT_REGISTERS));
	__u16 *word = reg_bank(lean_ret_rank, phv, index);

	if (!word)
		return;
	old = reg_load(word);
	if (old >> 8 != mine >> 8 || old < mine)
		reg_store(word, mine);
}
