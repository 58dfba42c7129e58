/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finished waits, added up under keys: a connection, a kind, and the end that was waited for.
 *
 * Two ways of words {signature 14, credit 2, number 20, time 28 in 2^14 ns}. A wait is added to its own word, or takes one whose credit is used up, or lowers the
 * credit of the one that is in its place: Misra and Gries' counters by hash (section 4.3), whose scores are credits as in lean by rate (bpf/lean/rate.h). What
 * a word held is sent to userspace with the key of the connection that takes it, so that what was counted is never lost, and a connection that has ended
 * needs no place. A wait that finds none is added to the tally of its place in the first way: no connection had more there than its words and this tally together,
 * which is its upper bound. With few connections that wait, all is exact.
 *
 * Room: a million waits of a connection, and 73 minutes of them. */
#pragma once

#include "frame.h"
#include "ends.h"

/* stage 6, read by userspace only: delays of all connections, by leg; records that were not stored or overwritten, by the connections' slot */
#define WAITS_MANTISSA 3
TALLY(waits_delays, 6, __u32, LEGS * BINS(32, WAITS_MANTISSA));
TALLY(waits_missed, 6, __u32, 1024);
TALLY(waits_torn, 6, __u32, 1024);
/* stages 7 and 8 */
REGISTER_BANKED(waits_w0, 7, __u64, 512);
REGISTER_BANKED(waits_w1, 8, __u64, 512);
/* stage 9, read by userspace only: waits without a place: {number 24, time 40} */
TALLY(waits_crowd, 9, __u64, 512);

#define WORD_NUMBER 28
#define WORD_CREDIT 48
#define WORD_SIGN 50
#define WORD_TICK 14

/* Stage 6. */
static __always_inline void tally(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u32 *cell;

	if (w->measured && w->leg < LEGS) {
		cell = reg_bank(waits_delays, phv, w->leg * BINS(32, WAITS_MANTISSA) + bins_index(w->measured - 1, WAITS_MANTISSA));
		if (cell)
			(*cell)++;
	}
	count->c[WAITS_MISSED] += w->missed + w->torn;
	if (w->missed) {
		cell = reg_bank(waits_missed, phv, w->slot);
		if (cell)
			*cell += w->missed;
	}
	if (w->torn) {
		cell = reg_bank(waits_torn, phv, w->slot);
		if (cell)
			*cell += w->torn;
	}
}

enum fate { FATE_ELSEWHERE, FATE_HERE, FATE_TAKEN };

/* One way: *found is what a word that is taken held. */
static __always_inline int add(__u64 *word, __u64 sign, __u64 wait, __u64 *found)
{
	__u64 old;

	opaque(wait);
	old = reg_load(word);
	if (old >> WORD_SIGN == sign)
		return reg_cas(word, old, (old + wait) | 3ULL << WORD_CREDIT) == old ? FATE_HERE : FATE_ELSEWHERE;
	if (old >> WORD_CREDIT & 3) {
		reg_cas(word, old, old - (1ULL << WORD_CREDIT));
		return FATE_ELSEWHERE;
	}
	*found = old;
	return reg_cas(word, old, sign << WORD_SIGN | 1ULL << WORD_CREDIT | wait) == old ? FATE_TAKEN : FATE_ELSEWHERE;
}

static __always_inline void report(const struct waits *w, const struct phv *phv, __u64 found, __u8 way, struct waits_counts_t *count)
{
	struct waits_report r = {.hash = w->hash, .word = found, .path = w->path, .family = phv->family, .bank = phv->bank, .way = way, .kind = w->kind,
				 .end = w->end, .server = w->server};
	const __u32 *lower = w->from ? phv->dst : phv->src, *upper = w->from ? phv->src : phv->dst;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		r.lower[i] = lower[i];
		r.upper[i] = upper[i];
	}
	r.lport = w->from ? phv->dport : phv->sport;
	r.uport = w->from ? phv->sport : phv->dport;
	if (ring_send(waits_reports, &r))
		count->c[WAITS_REPORTED]++;
	else
		count->c[WAITS_UNREPORTED]++;
}

/* A finished wait: stages 7 to 9. */
static __always_inline void place(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u64 key = hash_mix(w->hash ^ (w->kind * 2 + w->end + 1) * 0x9e3779b97f4a7c15ULL), sign = key >> WORD_SIGN, found = 0;
	__u64 time = w->ticks >> (WORD_TICK - WAITS_TICK), wait = 1ULL << WORD_NUMBER | time, *word, *cell;
	__u32 slot0 = (__u32)key & 0xffff & (waits_w0_entries - 1), slot1 = (__u32)(key >> 16) & 0xffff & (waits_w1_entries - 1);
	int fate;

	sign += !sign;
	word = reg_bank(waits_w0, phv, slot0);
	if (!word)
		return;
	fate = add(word, sign, wait, &found);
	if (fate == FATE_TAKEN)
		report(w, phv, found, 0, count);
	if (fate != FATE_ELSEWHERE)
		return;
	word = reg_bank(waits_w1, phv, slot1);
	if (!word)
		return;
	fate = add(word, sign, wait, &found);
	if (fate == FATE_TAKEN)
		report(w, phv, found, 1, count);
	if (fate != FATE_ELSEWHERE)
		return;
	count->c[WAITS_CROWDED]++;
	cell = reg_bank(waits_crowd, phv, slot0);
	if (cell)
		*cell += 1ULL << 40 | time;
}
