/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A packet's time in a queue of this host: carried in the packet, not matched.
 *
 * TC egress writes the time of enqueueing and the flow hash into the words of the packet's control block that the queue
 * does not use; the start of transmission (trace point net_dev_start_xmit) reads them there. So a packet is its own record: no
 * table, no digest, and a copy made by segmentation has the words of its original. On a switch these are bridged headers
 * (ConQuest: Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, chapter 5).
 *
 * The control block has 20 bytes that belong to the queueing discipline that has the packet. Each kind writes the first 8 or
 * 16 of them (list: loader/qdisc), and the rest is unchanged:
 *
 *	CARRY_WORDS  12 bytes: 48 bits of the time, the flow hash, 16 bits of tag
 *	CARRY_TICK    4 bytes: 22 bits of 1,024 ns and 10 bits of tag; the flow hash is calculated again at transmission
 *
 * The tag depends on the time, the hash, the interface and a secret. Words written by others, for another interface, or in an
 * earlier passage of the same buffer have the right one with a chance of 2^-16 (2^-10); the others are counted and not passed to algorithms.
 * The longest delay is 2^47 ns, or 4.29 s in the short form; a longer delay reads too short by a multiple of that.
 *
 * A packet that did not pass TC egress (from a socket that bypasses it, or a console that sends in an interrupt) has no words and
 * never uses the vector: so it may interrupt a chain on this CPU. */
#pragma once

#include "chain.h"
#include "hash.h"

enum carry_form { CARRY_NONE = 0, CARRY_TICK = 1, CARRY_WORDS = 2 };

#define CARRY_AT 2 /* of the five words */

#define CARRY_TICK_SHIFT 10
#define CARRY_TICK_BITS 22
#define CARRY_TICK_TAG (32 - CARRY_TICK_BITS)
#define CARRY_TIME_BITS 48
#define CARRY_OLDEST (1ULL << (CARRY_TIME_BITS - 1))

static __always_inline __u64 carry_tag(__u64 time, __u32 flow, __u32 ifindex)
{
	__u64 x = (time ^ hash_seed) + ((__u64)flow << 32 | ifindex);

	return x * 0x9e3779b97f4a7c15ULL;
}

static __always_inline void carry_pack(__u32 *words, __u64 time, __u32 flow, __u32 ifindex)
{
	__u64 known = time & ((1ULL << CARRY_TIME_BITS) - 1);

	words[0] = known;
	words[1] = flow;
	words[2] = known >> 32 << 16 | carry_tag(known, flow, ifindex) >> 48;
}

static __always_inline __u32 carry_pack_tick(__u64 time, __u32 ifindex)
{
	__u32 tick = (time >> CARRY_TICK_SHIFT) & ((1U << CARRY_TICK_BITS) - 1);

	return tick << CARRY_TICK_TAG | carry_tag(tick, 0, ifindex) >> (64 - CARRY_TICK_TAG);
}

enum carry_found {
	CARRY_OURS,
	CARRY_BARE,    /* nothing is there */
	CARRY_FOREIGN, /* the tag is not right */
	CARRY_STALE,   /* the tag is right, and the time is none that a packet of now can have */
};

/* words: the last three of the five. time: of enqueueing. */
static __always_inline enum carry_found carry_unpack(const __u32 *words, __u8 form, __u32 ifindex, __u64 now, __u64 *time)
{
	__u64 known, age;

	if (form == CARRY_TICK) {
		__u32 tick = words[2] >> CARRY_TICK_TAG, mask = (1U << CARRY_TICK_BITS) - 1;

		if (!words[2])
			return CARRY_BARE;
		if ((words[2] ^ carry_tag(tick, 0, ifindex) >> (64 - CARRY_TICK_TAG)) & ((1U << CARRY_TICK_TAG) - 1))
			return CARRY_FOREIGN;
		age = (((__u32)(now >> CARRY_TICK_SHIFT) - tick) & mask) << CARRY_TICK_SHIFT;
		*time = now - age;
		return CARRY_OURS;
	}
	if (!(words[0] | words[1] | words[2]))
		return CARRY_BARE;
	known = words[0] | (__u64)(words[2] >> 16) << 32;
	if ((__u16)words[2] != carry_tag(known, words[1], ifindex) >> 48)
		return CARRY_FOREIGN;
	age = (now - known) & ((1ULL << CARRY_TIME_BITS) - 1);
	if (age >= CARRY_OLDEST)
		return CARRY_STALE;
	*time = now - age;
	return CARRY_OURS;
}

/* The flow hash of phv->flow: directional, never 0. By one lane, since more bits are not needed. */
static __always_inline __u32 carry_flow(const struct phv *phv)
{
	__u32 flow = hash_flow_one(phv, 0x71756575);

	return flow + !flow;
}

/* Defines the program of an algorithm at the start of transmission, in addition to those of ALGORITHM() or ENFORCER():
 *
 *	START_OF_TRANSMISSION(conquest) { ... reads *phv, touches registers, returns nothing ... }
 *
 * It is called for a packet that leaves its queue: now is its departure, enqueued the time of enqueueing, queue its transmit queue, flow
 * the value of flow at TC egress. Algorithms without such a program are skipped. */
#define START_OF_TRANSMISSION(name)                                                                   \
	static __always_inline void name##_sent(struct phv *phv);                                     \
	SEC("tp_btf/net_dev_start_xmit") int name##_tp(__u64 *ctx)                                    \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		if (!phv)                                                                             \
			return 0;                                                                     \
		name##_sent(phv);                                                                     \
		chain_next(ctx, phv, &chain_tp);                                                      \
		return 0;                                                                             \
	}                                                                                             \
	static __always_inline void name##_sent(struct phv *phv)
