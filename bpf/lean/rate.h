/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* By rate: a flow's events beside its packets, instead of its sum in the sketch.
 *
 * A sketch of packets has an error of thousands of packets in 40 kB and cannot tell 400 events of 500 packets from 400 of a million. So a
 * statistic has a table of flows that have had an event: two ways of words {signature 16, credit 3, events 18, packets 27}. A flow
 * enters with its first event, and from then on its packets and events are counted. Packets after the entry are fresh trials: the event that
 * a flow enters with is not among the events, so that events / packets is not biased by the selection.
 *
 * A word belongs to its flow as long as other flows' events have not used up its credit: an own event raises it to 4 or more, one of a flow that is not
 * in the way lowers it by 1, at 0 the flow takes the word. Own packets do neither: how fast a flow sends has no effect on its place.
 * What a word held is sent to userspace with the key of the flow that takes it. So a flow that has ended, or returns, keeps what was counted,
 * and the table holds only those that are active.
 *
 * Latency's events are delays above a threshold (lean_slow), which userspace moves so that few delays are above it; the delays of a flow in
 * the table are added up with their weights, in two further arrays at the word's index. The mean is their quotient.
 *
 * Counts have room for 134 million packets and 262,143 events of a flow in a window: two million packets a second in a minute.
 *
 * Many cores: a word is replaced by compare-and-swap. A packet whose swap fails is not counted, neither as packet nor as event, which
 * leaves the rate as it is. Sums of delays may get one delay of a flow that loses its word at this moment. */
#pragma once

#include "frame.h"

#define RATE_EVENTS 27  /* lowest bit of events */
#define RATE_CREDIT 45  /* ... of credit */
#define RATE_SIGN 48    /* ... of the signature */
#define RATE_ENTRY 1    /* credit of a flow that enters */
#define RATE_OWN 4      /* ... at least, after an event of its own */
#define RATE_STANDS 28  /* sums of delays: lowest bit of the sum above the weights */

/* stages 5 and 6, way 0 in front of way 1 */
#define RATED(name)                                                                                   \
	REGISTER_BANKED(name##_r0, 5, __u64, 1);                                                      \
	REGISTER_BANKED(name##_r1, 6, __u64, 1)
RATED(lean_lat);
RATED(lean_loss);
RATED(lean_ooo);
RATED(lean_ret);
/* stage 7: {sum of delays times their weights in sixteenths, sum of the weights}; stage 8: sum of their squares times the weights */
REGISTER_BANKED(lean_lat_sum_r, 7, __u64, 1);
REGISTER_BANKED(lean_lat_sq_r, 8, __u64, 1);

/* A flow that takes a word, and what the word and its sums held before. */
struct lean_rate_report {
	__u64 rows; /* of the flow's place */
	__u32 src[4];
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u8 stat; /* and the way << 4 */
	__u8 bank;
	__u64 word;
	__u64 sums;
	__u64 squares;
};
const struct lean_rate_report *unused_rate_report __attribute__((unused));

enum rate_fate { RATE_ELSEWHERE, RATE_HERE, RATE_TAKEN };

/* What a packet found in a statistic, in one word: what the word held before it was taken, whose credit was 0, and in the place of that credit
 * the fate and the way. One word, because the stack has no room for more, and of each statistic, because the proof follows words. */
#define RATE_FOUND(fate, n) ((__u64)((fate) | (n) << 2) << RATE_CREDIT)
#define RATE_FATE(found) ((found) >> RATE_CREDIT & 3)
#define RATE_PLACE(found) ((found) >> (RATE_CREDIT + 2) & 1) /* the way */
#define RATE_BEFORE(found) ((found) & ~(7ULL << RATE_CREDIT))

/* A packet without event, or one that takes an event back. */
static __always_inline __u64 rate_count(__u64 *word, __u64 signature, __u64 packets, __u64 back, const int n)
{
	__u64 old, some;

	opaque(packets); /* what the packet is is known before the word is read, in either function */
	opaque(back);
	old = reg_load(word);
	if (old >> RATE_SIGN != signature)
		return 0;
	some = ((old >> RATE_EVENTS & 0x3ffff) + 0x3ffff) >> 18; /* is there one to take back? */
	opaque(some);
	some &= back;
	opaque(some);
	reg_cas(word, old, old + packets - (some << RATE_EVENTS));
	return RATE_FOUND(RATE_HERE, n);
}

/* A packet with events: its flow's word, or one that it takes, or one that it brings nearer to that. */
static __always_inline __u64 rate_event(__u64 *word, __u64 signature, __u64 both, const int n)
{
	__u64 old;

	opaque(both);
	old = reg_load(word);
	if (old >> RATE_SIGN == signature) {
		reg_cas(word, old, (old + both) | (__u64)RATE_OWN << RATE_CREDIT);
		return RATE_FOUND(RATE_HERE, n);
	}
	if (old >> RATE_CREDIT & 7) {
		reg_cas(word, old, old - (1ULL << RATE_CREDIT));
		return 0;
	}
	return reg_cas(word, old, signature << RATE_SIGN | (__u64)RATE_ENTRY << RATE_CREDIT) == old ? old | RATE_FOUND(RATE_TAKEN, n) : 0;
}

static __always_inline __u64 rate_signature(const struct sketch_place *at)
{
	__u64 signature = at->rows >> 48;

	return signature + !signature;
}

#define RATE_SLOT(reg, n, at) ((__u32)((at)->rows >> (16 * (n))) & 0xffff & (reg##_r##n##_entries - 1))

/* One way of a statistic's table: with and without event are two actions on the word. more: is to be counted as an event, although it is none
 * that a flow enters with. */
#define RATE_WAY(reg, n, phv, at, e, more, found)                                                           \
	do {                                                                                          \
		__u32 slot_ = RATE_SLOT(reg, n, at);                                                  \
		__u64 *word_;                                                                         \
		if ((e)->hit > 0) {                                                                   \
			opaque(slot_);                                                                \
			word_ = reg_bank(reg##_r##n, phv, slot_);                                     \
			if (word_)                                                                    \
				found = rate_event(word_, rate_signature(at), (e)->trial | (__u64)(e)->hit << RATE_EVENTS, n); \
		} else {                                                                              \
			__u64 back_ = (e)->hit < 0, packets_ = (e)->trial | (__u64)(more) << RATE_EVENTS; \
			opaque(back_);                                                                \
			word_ = reg_bank(reg##_r##n, phv, slot_);                                     \
			if (word_)                                                                    \
				found = rate_count(word_, rate_signature(at), packets_, back_, n);    \
		}                                                                                     \
	} while (0)

/* A delay's place in the sums of its flow: way 0 in front of way 1. */
static __always_inline __u32 rate_sums(const struct sketch_place *at, __u64 found)
{
	return RATE_PLACE(found) ? lean_lat_r0_entries + RATE_SLOT(lean_lat, 1, at) : RATE_SLOT(lean_lat, 0, at);
}

/* Adds a delay to one of its flow's sums. A flow that enters starts without the delay that it enters with. */
static __always_inline void rate_add(__u64 *word, __u64 value, int fate, __u64 *before)
{
	if (!word)
		return;
	if (fate == RATE_TAKEN)
		*before = reg_swap(word, 0);
	else
		reg_add(word, value);
}
