/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Out of order: data packets that end below the flow's maximum and arrive within 3 ms of it (sections 2 and 4.3, definition 11).
 *
 * The recent-packet table has two ways (section 5 has it instead of the queue): a record is free for another flow when its
 * flow has been silent for 3 ms, so a minute of 370,000 flows needs entries for those of 3 ms, some 350 packets. A flow whose
 * first entry is taken tries the second one. One that moves to the first entry when it becomes free restarts: at
 * most one late packet is missed by that.
 *
 * {signature, time of the last packet} in one word admits a flow in one read-modify-write; {maximum, its time} in a later
 * stage is compared in another. A packet whose end is not below the maximum renews both, one that is below it
 * neither. Numbers wrap; one that is 64 MiB or more below is of another connection (segment.h), and restarts.
 *
 * What is late by the paper's definition is not always reordered: a fast retransmission within a train is also
 * below the maximum and within 3 ms of it. retrans.h separates them.
 *
 * The counts are added to the Count Sketch, or (lean.ooo=misra-gries) to counters of {signature, count} under a hash: an event of
 * the owner adds, one of another flow subtracts, and the flow that reaches 0 takes it. That is Misra-Gries with one counter for
 * the flows that share it; decreasing all counters at once, as in the paper's pseudo-code, needs more memory accesses
 * than a switch has.
 *
 * Many cores: a record's words are written whole. Two flows of one entry on two cores can leave one's maximum with the
 * other's signature: it is as far off as a random number, and one in 64 would be counted as late, once. */
#pragma once

#include "segment.h"

enum ooo_counter {
	OOO_SEGMENTS,   /* data packets, copies not counted */
	OOO_COPIES,     /* packets that a mirror showed twice */
	OOO_COMPARED,   /* data packets of a flow in memory */
	OOO_TAKEN,      /* records written */
	OOO_REFUSED,    /* data packets that found both places taken */
	OOO_EVENTS,     /* packets out of order */
	OOO_BEHIND,     /* below the maximum, but later than 3 ms */
	OOO_COUNTERS
};
_Static_assert(OOO_COUNTERS <= 7, "frame.h keeps room for 7");

#define OOO_TICK 8
#define OOO_WINDOW 11718 /* ticks of 256 ns: 3 ms */

const volatile _Bool lean_ooo_mg_on = 0;

/* stages 0 and 1: {signature 16, time 16}; stage 3: {maximum, its time}, way 0 in front of way 1 */
REGISTER(lean_ooo_way0, 0, __u32, 512);
REGISTER(lean_ooo_way1, 1, __u32, 512);
REGISTER(lean_ooo_max, 3, __u64, 1024);
/* stage 5, instead of the sketch: {signature, count} */
REGISTER_BANKED(lean_ooo_mg, 5, __u64, 1);

const enum ooo_counter *unused_ooo __attribute__((unused));

struct ooo {
	struct lean_event event;
	__u8 fate;   /* enum seg_fate */
	__u32 index; /* of the record */
};

/* One way's word: updates the flow's own record, replaces one that is older than the window, leaves others. */
static __always_inline int ooo_claim(__u32 *word, __u16 signature, __u16 time)
{
	__u32 early = seg_early(), old;

	opaque(early); /* known before the word is read, or registers that are lent to it in between count as fed by the word */
	old = reg_load(word);
	if (old >> 16 != signature && seg_within(time, old, SEG_WINDOW, early))
		return FATE_OTHER;
	reg_store(word, (__u32)signature << 16 | time);
	return old >> 16 == signature ? FATE_OWN : FATE_TAKEN;
}

/* Way 0. A copy of a packet finds that packet's record, and changes nothing but its time. */
static __always_inline void ooo_0(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	const struct segment *seg = &f->segment;
	__u32 *word;

	if (!seg->data)
		return;
	count->c[LEAN_OOO + (seg->copy ? OOO_COPIES : OOO_SEGMENTS)] += phv->segs;
	s->index = SEG_SLOT(seg->way[0], lean_ooo_way0);
	word = reg_at(lean_ooo_way0, s->index);
	if (word)
		s->fate = ooo_claim(word, seg->signature, seg->time);
}

/* Way 1, for flows without a record in way 0. */
static __always_inline void ooo_1(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	__u32 slot, *word;

	if (!f->segment.data || s->fate != FATE_OTHER)
		return;
	slot = SEG_SLOT(f->segment.way[1], lean_ooo_way1);
	s->index = lean_ooo_way0_entries + slot;
	word = reg_at(lean_ooo_way1, slot);
	if (word)
		s->fate = ooo_claim(word, f->segment.signature, f->segment.time);
}

static __always_inline void ooo_2(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}

/* Below the maximum? A switch has one comparison for it: numbers in the middle of the range without their signs, those within a quarter
 * of the wrap with them. With its hashes a host compares the same way. */
static __always_inline int ooo_below(__u32 end, __u32 max)
{
	__u32 sign = (end + (1U << 30)) >> 31 ? 0 : 1U << 31;

	return hash_crc ? (end ^ sign) < (max ^ sign) : seg_below(end, max);
}

/* Ticks since the maximum was stored: a switch has one clock, and no time that is younger than now. */
static __always_inline __u32 ooo_age(__u32 now, __u32 then)
{
	return hash_crc ? now - then : clock_since(now, then);
}

/* Is it below its flow's maximum, within the window? */
static __always_inline void ooo_compare(struct ooo *s, struct phv *phv, __u64 *word, __u64 mine, struct lean_counts_t *count)
{
	__u64 old = reg_load(word);

	count->c[LEAN_OOO + OOO_COMPARED] += phv->segs;
	if (!ooo_below(mine >> 32, old >> 32)) {
		reg_store(word, mine);
		return;
	}
	if (ooo_age(mine, old) > OOO_WINDOW) {
		count->c[LEAN_OOO + OOO_BEHIND] += phv->segs;
		return;
	}
	count->c[LEAN_OOO + OOO_EVENTS] += phv->segs;
	s->event.value = seg_weight(phv);
}

static __always_inline void ooo_3(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	__u64 *word, mine;

	if (!f->segment.data || (f->segment.copy && s->fate != FATE_TAKEN))
		return;
	if (s->fate == FATE_OTHER) {
		count->c[LEAN_OOO + OOO_REFUSED] += phv->segs;
		return;
	}
	word = reg_at(lean_ooo_max, s->index);
	if (!word)
		return;
	lean_trial(&s->event, phv);
	mine = (__u64)f->segment.end << 32 | (__u32)(clock_now(phv) >> OOO_TICK);
	if (s->fate == FATE_OWN) {
		ooo_compare(s, phv, word, mine, count);
		return;
	}
	count->c[LEAN_OOO + OOO_TAKEN]++;
	reg_store(word, mine);
}

/* Stage 5, Misra-Gries: the flow's count after this event, or 0 if the counter is another flow's. */
static __always_inline __u32 ooo_tally(const struct ooo *s, const struct phv *phv, const struct sketch_place *at)
{
	__u32 signature = at->rows >> 32, value = s->event.value, n;
	__u64 *word = reg_bank(lean_ooo_mg, phv, (__u32)at->rows & (lean_ooo_mg_entries - 1)), old;

	if (!word)
		return 0;
	old = reg_load(word);
	n = old;
	if (old >> 32 == signature) {
		reg_store(word, old + value);
		return n + value;
	}
	if (n > value) {
		reg_store(word, old - value);
		return 0;
	}
	reg_store(word, (__u64)signature << 32 | (value - n));
	return value - n;
}
