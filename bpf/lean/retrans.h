/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Retransmissions: data packets that repeat what a flow had sent long before (section 4.4).
 *
 * sequence  A packet is a retransmission if its first byte is below the flow's maximum of 3 ms ago. The age of the current
 *           maximum does not suffice: in a bulk flow the maximum is never older than a packet's gap, and a fast
 *           retransmission would be counted as reordered (30 of 39 in a capture of a speed test). So a record has cuts: T,
 *           the last rotation; M, the maximum; C, which is older than 3 ms, and P, which will become C. A packet that
 *           arrives more than 3 ms after T sets C = P, P = M; after more than 6 ms everything is old, and C = P = M.
 *           C never contains what is younger than 3 ms, and contains everything older than 9 ms. Segments of one byte are
 *           keep-alives and window probes, and never an event. A mirror's copies are recognized by segment.h.
 * distinct  Algorithm 4 (distinct.h).
 *
 * The table must keep flows with many packets from one train to the next. {signature, time of the last packet} in one
 * word: a record may be replaced when its flow has been silent for a second, and then only by one packet in 16, so that
 * flows of a few packets mostly do not enter; after four seconds of silence any packet may replace it. Two ways,
 * and the other arrays are indexed by the way that was found. A flow that moves to way 0 when it becomes free restarts.
 *
 * Many cores: words of 16, 32 and 64 bits are written whole. Two flows in one entry on two cores can mix their words; a
 * number of another flow is as far off as a random one, and one in 64 is within the 64 MiB that are compared. */
#pragma once

#include "segment.h"
#include "distinct.h"

enum retrans_counter {
	RET_SEGMENTS,   /* data packets, copies not counted */
	RET_COPIES,     /* packets that a mirror showed twice */
	RET_COMPARED,   /* data packets of a flow in memory */
	RET_TAKEN,      /* records written */
	RET_REFUSED,    /* data packets that were not looked at further: no place, or no luck */
	RET_EVENTS,     /* packets sent again */
	RET_PROBES,     /* ... of one byte: keep-alives, window probes */
	RET_COUNTERS
};
_Static_assert(RET_COUNTERS <= 14, "frame.h keeps room for 14");

#define RET_TICK 16 /* the ways' times count 2^16 ns */
#define RET_FRESH (1U << 30) /* bytes below the first packet at which the cuts of a new record lie: nothing is below */

const volatile __u32 lean_ret_keep = 15259; /* ticks of silence after which a record may be taken, with luck: 1 s */
const volatile __u32 lean_ret_free = 61035; /* ... and without: 4 s */

/* stages 0 and 1: {signature, time}; stage 2: T, M; stage 3: {C, P}; way 0 in front of way 1 */
REGISTER(lean_ret_way0, 0, __u64, 1024);
REGISTER(lean_ret_way1, 1, __u64, 512);
REGISTER(lean_ret_time, 2, __u16, 1536);
REGISTER(lean_ret_max, 2, __u32, 1536);
REGISTER(lean_ret_cuts, 3, __u64, 1536);

const enum retrans_counter *unused_retrans __attribute__((unused));

/* How far the cuts move. */
enum ret_turn { TURN_NONE, TURN_ONE, TURN_ALL, TURN_FRESH };

struct retrans {
	struct lean_event event;
	__u8 fate;    /* enum seg_fate */
	__u8 turn;    /* enum ret_turn */
	__u32 index;  /* of the record */
	__u32 silent; /* ticks of silence after which this packet may take a record */
	__u32 max;    /* before this packet */
	__u32 item;   /* distinct: names the segment */
};

/* One way's word: updates the flow's own record, replaces one whose flow has been silent for long enough, leaves others. A time
 * that another core has just written may be younger than now. */
static __always_inline int ret_claim(__u64 *word, __u64 mine, __u32 silent)
{
	__u64 old = reg_load(word);

	if (old >> 32 != mine >> 32 && (__u32)mine - (__u32)old + 1 <= silent + 1)
		return FATE_OTHER;
	reg_store(word, mine);
	return old >> 32 == mine >> 32 ? FATE_OWN : FATE_TAKEN;
}

/* {signature, time} of this packet. */
static __always_inline __u64 ret_word(struct phv *phv, const struct segment *seg)
{
	return (__u64)seg->signature << 32 | (__u32)(clock_now(phv) >> RET_TICK);
}

/* Way 0. A copy finds its packet's record; what it writes there is the same. */
static __always_inline void retrans_0(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	const struct segment *seg = &f->segment;
	__u64 *word;

	if (!seg->data)
		return;
	count->c[LEAN_RETRANS + (seg->copy ? RET_COPIES : RET_SEGMENTS)] += phv->segs;
	if (lean_ret_distinct) {
		s->item = distinct_item(phv, f);
		s->event.value = seg->copy ? 0 : 1;
		return;
	}
	s->silent = seg->luck ? lean_ret_free : lean_ret_keep;
	s->index = SEG_SLOT(seg->way[0], lean_ret_way0);
	word = reg_at(lean_ret_way0, s->index);
	if (word)
		s->fate = ret_claim(word, ret_word(phv, seg), s->silent);
}

/* Way 1, for flows without a record in way 0. */
static __always_inline void retrans_1(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	__u64 *word;
	__u32 slot;

	if (!f->segment.data || lean_ret_distinct || s->fate != FATE_OTHER)
		return;
	slot = SEG_SLOT(f->segment.way[1], lean_ret_way1);
	s->index = lean_ret_way0_entries + slot;
	word = reg_at(lean_ret_way1, slot);
	if (word)
		s->fate = ret_claim(word, ret_word(phv, &f->segment), s->silent);
}

/* T of the flow's own record: do the cuts move? M's last packet is older than a window if T is older than two and the tick
 * in which it was written. */
static __always_inline int ret_turn(__u16 *word, __u16 now)
{
	__u16 old = reg_load(word);

	if (seg_within(now, old, SEG_WINDOW, seg_early()))
		return TURN_NONE;
	reg_store(word, now);
	return seg_within(now, old, 2 * SEG_WINDOW + 1, seg_early()) ? TURN_ONE : TURN_ALL;
}

static __always_inline void retrans_2(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	const struct segment *seg = &f->segment;
	__u16 *time;
	__u32 *max;

	if (!seg->data || lean_ret_distinct)
		return;
	if (s->fate == FATE_OTHER) {
		count->c[LEAN_RETRANS + RET_REFUSED] += phv->segs;
		return;
	}
	time = reg_at(lean_ret_time, s->index);
	max = reg_at(lean_ret_max, s->index);
	if (!time || !max)
		return;
	if (s->fate == FATE_TAKEN) {
		count->c[LEAN_RETRANS + RET_TAKEN]++;
		s->turn = TURN_FRESH;
		s->max = seg->start - RET_FRESH;
		reg_store(time, seg->time);
		reg_store(max, seg->end);
		return;
	}
	s->turn = ret_turn(time, seg->time);
	s->max = reg_load(max);
	if (!seg_below_number(seg->end, s->max))
		reg_store(max, seg->end);
}

/* {C, P}: moves them, and returns C. */
static __always_inline __u32 ret_cut(__u64 *word, const struct retrans *s)
{
	__u64 old;

	if (s->turn >= TURN_ALL) {
		reg_store(word, (__u64)s->max << 32 | s->max);
		return s->max;
	}
	old = reg_load(word);
	if (s->turn == TURN_NONE)
		return old >> 32;
	reg_store(word, old << 32 | s->max);
	return old;
}

static __always_inline void retrans_3(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	const struct segment *seg = &f->segment;
	__u64 *word;
	__u32 cut;

	if (!seg->data || s->fate == FATE_OTHER)
		return;
	word = reg_at(lean_ret_cuts, s->index);
	if (!word)
		return;
	cut = ret_cut(word, s);
	count->c[LEAN_RETRANS + RET_COMPARED] += s->fate == FATE_OWN && !seg->copy ? phv->segs : 0;
	if (s->fate == FATE_OWN && !seg->copy)
		lean_trial(&s->event, phv);
	if (seg->copy || !(s->turn >= TURN_ALL ? seg_below(seg->start, cut) : seg_below_number(seg->start, cut)))
		return;
	if (phv->payload == 1) {
		count->c[LEAN_RETRANS + RET_PROBES]++;
		return;
	}
	count->c[LEAN_RETRANS + RET_EVENTS] += phv->segs;
	s->event.value = seg_weight(phv);
}
