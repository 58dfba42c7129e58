/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Acting on culprits alone (section 5.4.2): whoever leaves the queue and is found to fill it writes when that will be forgotten; TC egress
 * looks there for the flow of the next packet, and marks it, drops it, or sends it another way.
 *
 * One word a flow: {until, in ticks; tag; drop; chance}. Two flows in one place take it from each other, and neither is taken for
 * the other but by a chance of 2^-CULPRIT_TAG. A word acts for conquest_hold at most, whoever dies meanwhile. On a switch the word is
 * written by a mirrored packet, since queue's end and beginning are two pipelines. */
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
const volatile __u64 conquest_drop_from = 2000000; /* action drop: delay, ns, behind which marks have not helped */
const volatile __u32 conquest_to = 0;            /* mark, class: where to */

#define CULPRIT_TICK 10 /* 2^10 ns: 36 minutes ahead and behind */
#define CULPRIT_CHANCE 12
#define CULPRIT_TAG 19

REGISTER(conquest_culprits, 8, __u64, 1024);

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

/* At the end of the queue. */
static __always_inline void culprit_condemn(const struct phv *phv, __u64 delay, __u32 chance)
{
	__u32 until = (phv->now + conquest_hold) >> CULPRIT_TICK;
	__u64 *word = culprit_of(phv), drop = delay >= conquest_drop_from;

	if (word)
		reg_store(word, (__u64)until << 32 | culprit_tag(phv) << (CULPRIT_CHANCE + 1) | drop << CULPRIT_CHANCE | chance);
}

/* At its beginning. */
static __always_inline int culprit_found(struct phv *phv, int *drop)
{
	__u64 *at = culprit_of(phv), word;

	if (!at)
		return 0;
	word = reg_load(at);
	if (((__u32)word >> (CULPRIT_CHANCE + 1)) != culprit_tag(phv))
		return 0;
	if ((__s32)((__u32)(word >> 32) - (__u32)(clock_now(phv) >> CULPRIT_TICK)) <= 0)
		return 0;
	*drop = word >> CULPRIT_CHANCE & 1;
	word &= (1 << CULPRIT_CHANCE) - 1;
	return word == (1 << CULPRIT_CHANCE) - 1 || coin_flip(phv) >> (32 - CULPRIT_CHANCE) < word;
}

/* What becomes of a packet that is handed to the queue; 1: something. */
static __always_inline int culprit_act(struct phv *phv)
{
	int drop = 0;

	if (!phv->flow || !culprit_found(phv, &drop))
		return 0;
	if (conquest_action == ACTION_MARK)
		verdict_steer(phv, STEER_MARK, conquest_to);
	else if (conquest_action == ACTION_CLASS)
		verdict_steer(phv, STEER_PRIORITY, conquest_to);
	else if (conquest_action == ACTION_DROP && (drop || !ecn_capable(phv)))
		verdict_raise(phv, VERDICT_DROP);
	else if (ecn_capable(phv))
		verdict_raise(phv, VERDICT_MARK);
	else
		return 0;
	return 1;
}
