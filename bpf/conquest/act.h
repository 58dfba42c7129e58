/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Acting on culprits alone (section 5.4.2): whoever leaves the queue and is found to fill it writes when that will be forgotten; TC egress
 * looks there for the flow of the next packet, and marks it, drops it, or sends it another way.
 *
 * One word a flow: {until, in ticks; delay, in 4 ticks; tag; drop; chance}. Two flows in one place take it from each other, and neither is taken for
 * the other but by a chance of 2^-CULPRIT_TAG. A word acts for conquest_hold at most, whoever dies meanwhile. On a switch the word is
 * written by a mirrored packet, since queue's end and beginning are two pipelines.
 *
 * No flow is starved by drops. A packet is dropped only on the evidence of one of its flow that was handed to the queue at least a gap after the last drop, when
 * the sender had time to react, and waited conquest_drop_from. The gap is conquest_gap after a drop that helped, and doubles up to 64 times that
 * while there is evidence, until it is longer than the flow's round trip. So:
 * - a packet of a flow leaves the queue between any two drops: at least half of all its packets pass, and all but one a gap;
 * - a flow that halves its rate at a loss keeps alpha/2 of the link: at each drop it had alpha of what left, a round trip after the last one (a shorter gap
 *   than its round trip costs it a halving more for each doubling, once).
 * Flows that share a place share its gaps: fewer drops. Of two cores that drop at once one does, by compare-and-swap. */
#pragma once

#include "phv.h"
#include "clock.h"
#include "coin.h"
#include "register.h"
#include "verdict.h"
#include "snapshots.h"

enum conquest_action_kind { ACTION_REPORT, ACTION_ECN, ACTION_DROP, ACTION_MARK, ACTION_CLASS };

/* of how much more than its share a flow has (section 5.4.2); constant steps are what a switch can do */
enum conquest_chance_kind { CHANCE_THRESHOLD, CHANCE_LINEAR, CHANCE_QUADRATIC, CHANCE_STEPS };

const volatile __u32 conquest_action = ACTION_REPORT;
const volatile __u32 conquest_chance = CHANCE_THRESHOLD;
const volatile _Bool conquest_everyone = 0;      /* whoever passes while the queue is long, culprit or not: to compare with */
const volatile __u64 conquest_hold = 10000000;   /* ns that a culprit stays one */
const volatile __u64 conquest_drop_from = 2000000; /* action drop: delay, ns, after which marks have not helped */
const volatile __u32 conquest_to = 0;            /* mark, class: where to */

const volatile __u32 conquest_weight = 0;        /* in units of the snapshots: who has so much in the queue is acted upon, whatever share that is; 0: who has alpha of it */

const volatile __u32 conquest_gap = 512; /* ticks, a power of two */

#define CULPRIT_TICK 14  /* 2^14 ns */
#define CULPRIT_UNTIL 28 /* bits: 36 minutes ahead and back */
#define CULPRIT_DELAY 12 /* bits, of 4 ticks: 268 ms, and what is longer counts as that */
#define CULPRIT_COARSE 2
#define CULPRIT_TAG 16
#define CULPRIT_CHANCE 7
#define GAP_DOUBLES 6

REGISTER(conquest_culprits, 8, __u64, 1024);
/* {gap, tick from which evidence counts}, of the last drop; after culprits: userspace sets the stage */
REGISTER(conquest_drops, 9, __u64, 1024);

/* Of 2^CULPRIT_CHANCE. size, limit, total: of the flow, of whom it becomes a culprit, of the queue. */
static __always_inline __u32 culprit_chance(__u64 size, __u64 limit, __u64 total)
{
	__u64 most = (1 << CULPRIT_CHANCE) - 1, over = size - limit, room = total > limit ? total - limit : 1, part;

	if (conquest_chance == CHANCE_THRESHOLD || size <= limit || over >= room)
		return most;
	if (conquest_chance == CHANCE_STEPS)
		return size < 2 * limit ? most >> 3 : size < 4 * limit ? most >> 1 : most;
	part = (over << CULPRIT_CHANCE) / room;
	if (conquest_chance == CHANCE_QUADRATIC)
		part = part * part >> CULPRIT_CHANCE;
	return part > most ? most : part;
}

static __always_inline __u32 culprit_tag(const struct phv *phv)
{
	return conquest_everyone ? 0 : (phv->flow >> 12) & ((1 << CULPRIT_TAG) - 1);
}

static __always_inline __u64 *culprit_of(const struct phv *phv)
{
	return reg_at(conquest_culprits, conquest_everyone ? 0 : phv->flow & (conquest_culprits_entries - 1));
}

static __always_inline __u64 *culprit_drops(const struct phv *phv)
{
	return reg_at(conquest_drops, conquest_everyone ? 0 : phv->flow & (conquest_drops_entries - 1));
}

/* At the end of the queue. */
static __always_inline void culprit_condemn(const struct phv *phv, __u64 delay, __u32 chance)
{
	__u64 until = (phv->now + conquest_hold) >> CULPRIT_TICK, waited = delay >> (CULPRIT_TICK + CULPRIT_COARSE), drop = delay >= conquest_drop_from;
	__u64 *word = culprit_of(phv);

	if (waited >> CULPRIT_DELAY)
		waited = (1 << CULPRIT_DELAY) - 1;
	if (word)
		reg_store(word, until << (64 - CULPRIT_UNTIL) | waited << (CULPRIT_TAG + 1 + CULPRIT_CHANCE) | culprit_tag(phv) << (CULPRIT_CHANCE + 1) |
					drop << CULPRIT_CHANCE | chance);
}

/* What is known at the beginning of the queue. */
struct sentence {
	__u32 since; /* tick at which the packet was handed over that bears it out, about */
	int drop;
};

static __always_inline int culprit_found(struct phv *phv, struct sentence *s)
{
	__u64 *at = culprit_of(phv), word;
	__u32 until, now, chance;

	if (!at)
		return 0;
	word = reg_load(at);
	if (((__u32)(word >> (CULPRIT_CHANCE + 1)) & ((1 << CULPRIT_TAG) - 1)) != culprit_tag(phv))
		return 0;
	now = clock_now(phv) >> CULPRIT_TICK;
	until = word >> (64 - CULPRIT_UNTIL);
	until -= now; /* how long it lasts: modulo 2^CULPRIT_UNTIL */
	until <<= 32 - CULPRIT_UNTIL;
	if ((__s32)until <= 0)
		return 0;
	s->since = now + (until >> (32 - CULPRIT_UNTIL)) - (__u32)(conquest_hold >> CULPRIT_TICK) -
		   (((__u32)(word >> (CULPRIT_TAG + 1 + CULPRIT_CHANCE)) & ((1 << CULPRIT_DELAY) - 1)) << CULPRIT_COARSE);
	s->drop = word >> CULPRIT_CHANCE & 1;
	chance = word & ((1 << CULPRIT_CHANCE) - 1);
	return chance == (1 << CULPRIT_CHANCE) - 1 || coin_flip(phv) >> (32 - CULPRIT_CHANCE) < chance;
}

/* May a packet be dropped on evidence that old? Then the next one may be a gap later. A word of a time that cannot be is as good as none. */
static __always_inline int culprit_drop(struct phv *phv, __u32 since)
{
	__u64 *at = culprit_drops(phv), old, next;
	__u32 longest = conquest_gap << GAP_DOUBLES, now = clock_now(phv) >> CULPRIT_TICK, gap;

	opaque(now); /* in front of the access */
	if (!at)
		return 0;
	old = reg_load(at);
	gap = old >> 32;
	since -= (__u32)old;
	if (-since - 1 < longest) /* not yet */
		return 0;
	if (since < gap)
		gap = (gap << 1 | (gap & longest)) & (2 * longest - 1); /* it goes on */
	else
		gap = conquest_gap; /* the last drop helped */
	next = (__u64)gap << 32 | (__u32)(now + gap);
	return reg_cas(at, old, next) == old;
}

/* What becomes of a packet that is handed to the queue; 1: something. */
static __always_inline int culprit_act(struct phv *phv)
{
	struct sentence s;

	if (!phv->flow || !culprit_found(phv, &s))
		return 0;
	if (conquest_action == ACTION_MARK)
		verdict_steer(phv, STEER_MARK, conquest_to);
	else if (conquest_action == ACTION_CLASS)
		verdict_steer(phv, STEER_PRIORITY, conquest_to);
	else if (conquest_action == ACTION_DROP && s.drop && culprit_drop(phv, s.since))
		verdict_raise(phv, VERDICT_DROP);
	else if (ecn_capable(phv))
		verdict_raise(phv, VERDICT_MARK);
	else
		return 0;
	return 1;
}
