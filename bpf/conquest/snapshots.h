/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Round-robin snapshots: b Count-Min sketches of R rows, one for each of the last b windows of T of the departure time.
 *
 * Chen, chapter 5 (ConQuest), section 5.3. A window's sketch is written while it lasts, read while it is one of the b - 1 before,
 * and then taken for another window. The paper cleans it in between, one cell a packet, which is not done in time when packets are
 * rare. Here every cell has the number of its window beside it, 32 + 32 bits: what is of an older window counts as 0 and is
 * overwritten by the first packet that writes there. Nothing has to be cleaned, an idle link is no exception, and the
 * snapshot that would be cleaned can be read as well.
 *
 * Beside the rows each snapshot has the total of its window, by transmit queue.
 *
 * Many cores. A cell is one 64-bit word. A packet that finds its own window there adds with one atomic operation, so nothing is
 * lost and nothing torn. The first one of a window exchanges the word; when another core was faster, the packet is missing in this cell
 * (CONQUEST_RACED: at most one packet a core, cell and window). A packet that finds a newer window, because its core took its time
 * between clock and cell, does not write (CONQUEST_LATE). An addition that meets an exchange of the next window in between is
 * counted there: off by one packet at the edge of a window. Estimates only ever lack such packets.
 *
 * A count has 32 bits: userspace bounds T so that no link of 100 Gb/s fills them. */
#pragma once

#include "base.h"
#include "phv.h"
#include "register.h"

#define SNAPSHOTS_MOST 16

const volatile __u32 conquest_snapshots = 4; /* b: a power of two */
const volatile __u32 conquest_rows = 2;      /* R: 1 or 2 */
const volatile __u32 conquest_columns = 2048; /* C: of one queue's row, a power of two */
const volatile __u32 conquest_queues = 1;     /* that are told apart: a power of two */
const volatile __u32 conquest_shift = 20;    /* T = 2^shift ns */

/* Stages are those of b = 4, R = 2; userspace sets them where there are more (maps.SetStage). A group is four snapshots. */
#define SNAPSHOT(j)                                                                                   \
	REGISTER(conquest_t##j, 3, __u64, 1);                                                         \
	REGISTER(conquest_s##j##_0, 4, __u64, 2048);                                                  \
	REGISTER(conquest_s##j##_1, 5, __u64, 2048)

#define SNAPSHOTS(each) each(0); each(1); each(2); each(3); each(4); each(5); each(6); each(7); \
	each(8); each(9); each(10); each(11); each(12); each(13); each(14); each(15)

SNAPSHOTS(SNAPSHOT);

const volatile __u32 conquest_alpha = 10486; /* what is a large share of the queue, in 2^-20 */
const volatile __u32 conquest_ramp = 0;      /* growth from one window to the next that is reported; 0: none */

/* What is asked of the snapshots: the flow in the window of the departure and in some before it. */
struct span {
	__u32 epoch; /* the window of the departure */
	__u32 reach; /* the oldest window that is read is so many before it; 0: none */
	__u32 look;  /* ... that are looked at: by ramps as well */
	__u32 edge;  /* share of the oldest that counts, in 2^-16 */
	__u32 own;   /* all ones if the window of the departure counts */
};

/* What they say: weighted, of all windows together. */
struct answer {
	__u64 row[2]; /* the flow, by row */
	__u64 total;  /* all flows */
	__u64 limit;  /* alpha of that, window by window as on a switch */
	__u32 last[2], second[2]; /* the flow in the window before that of the departure and in the one before, by row */
	__u32 oldest[2]; /* ... in the oldest window, whatever its weight */
	__u32 raced, late;
	__u8 fresh;   /* the first packet of its window and queue */
};

#define SPAN_ONE 65536U
#define LATE_MOST 64U /* windows: more than clocks of cores differ by, and little beside the 2^32 that a number comes back after */

/* Windows from a cell's own to that of a packet, all that there are: a cell of a later window is nearly 2^32 behind. A count of 0 is of nobody, whatever
 * the window beside it: such a cell is not later than anybody, by its highest bit. No branch, since a read-modify-write has two at most. */
static __always_inline __u32 cell_age(__u64 word, __u32 epoch)
{
	__u64 count = (__u32)word;

	opaque(count);
	return (epoch - (__u32)(word >> 32)) & ~((__u32)((count - 1) >> 32) << 31);
}

/* Adds to a cell; returns what its window held before. */
static __always_inline __u32 cell_add(__u64 *cell, __u32 epoch, __u32 add, struct answer *a, __u8 *fresh)
{
	__u64 old = reg_load(cell);

	if ((__u32)(old >> 32) == epoch)
		return (__u32)reg_add(cell, add);
	if (cell_age(old, epoch) > ~0U - LATE_MOST) {
		a->late = 1;
		return 0;
	}
	if (reg_cas(cell, old, (__u64)epoch << 32 | add) == old)
		*fresh = 1;
	else
		a->raced = 1;
	return 0;
}

/* What a cell holds of a window. No branch: of which window it is cannot be predicted. */
static __always_inline __u32 cell_read(const __u64 *cell, __u32 epoch)
{
	__u64 word = reg_load(cell), other = (word >> 32) ^ epoch;

	opaque(other);
	return (__u32)word & (__u32)((other - 1) >> 32);
}

/* Writes or reads one array of snapshot j, of b - 1 = mask: n is what it holds of its window, back how many windows ago that is. b is 2 at least, and a group is
 * looked at as a whole. */
#define SNAPSHOT_TOUCH(array, j, index, s, add, a, fresh, then)                                       \
	do {                                                                                          \
		__u32 back = ((s)->epoch - (j)) & (conquest_snapshots - 1), n;                        \
		__u64 *cell;                                                                          \
		if ((((j) & ~1) == 2 && (j) >= conquest_snapshots) || back > (s)->look)               \
			break;                                                                        \
		cell = reg_at(array, index);                                                          \
		if (!cell)                                                                            \
			break;                                                                        \
		n = back ? cell_read(cell, (s)->epoch - back) : cell_add(cell, (s)->epoch, add, a, fresh); \
		then;                                                                                 \
	} while (0)

/* Which part of what a window holds counts. */
static __always_inline __u64 span_part(const struct span *s, __u32 back, __u32 n)
{
	if (back == 0)
		return n & s->own;
	if (back == s->reach)
		return (__u64)n * s->edge >> 16;
	return back < s->reach ? n : 0;
}

#define SNAPSHOT_TOTAL(j)                                                                             \
	SNAPSHOT_TOUCH(conquest_t##j, j, queue, s, add, a, &a->fresh, {                               \
		__u64 part = span_part(s, back, n);                                                   \
		a->total += part;                                                                     \
		a->limit += part * conquest_alpha >> 20;                                              \
	})

#define SNAPSHOT_ROW(j, r)                                                                            \
	SNAPSHOT_TOUCH(conquest_s##j##_##r, j, column[r], s, add, a, &other, {                        \
		if (back == (s)->reach)                                                               \
			a->oldest[r] = n;                                                             \
		else if (back < (s)->reach)                                                           \
			a->row[r] += back ? n : n & (s)->own;                                         \
		if (ramped && back == 1)                                                          \
			a->last[r] = n;                                                               \
		if (ramped && back == 2)                                                          \
			a->second[r] = n;                                                             \
	})

/* Four snapshots: three stages of four arrays. */
#define SNAPSHOT_GROUP(j0, j1, j2, j3)                                                                \
	do {                                                                                          \
		if (j0 >= conquest_snapshots)                                                         \
			break;                                                                        \
		SNAPSHOT_TOTAL(j0); SNAPSHOT_TOTAL(j1); SNAPSHOT_TOTAL(j2); SNAPSHOT_TOTAL(j3);       \
		SNAPSHOT_ROW(j0, 0); SNAPSHOT_ROW(j1, 0); SNAPSHOT_ROW(j2, 0); SNAPSHOT_ROW(j3, 0);   \
		if (conquest_rows < 2)                                                                \
			break;                                                                        \
		SNAPSHOT_ROW(j0, 1); SNAPSHOT_ROW(j1, 1); SNAPSHOT_ROW(j2, 1); SNAPSHOT_ROW(j3, 1);   \
	} while (0)

/* Nothing so far. The verifier is not to know it, or else it walks every way through the snapshots for each sum that is still 0. */
static __always_inline void answer_begin(struct answer *a, struct span *s, __u64 any)
{
	__u64 none = 0;

	s->look = conquest_ramp && s->reach < 2 ? 2 : s->reach;
	forget(s->look, any);
	forget(s->reach, any);
	forget(s->own, any);
	forget(s->edge, any);
	forget(none, any);
	*a = (struct answer){.row = {none, none}, .total = none, .limit = none, .last = {none, none}, .second = {none, none},
			     .oldest = {none, none}, .raced = none, .late = none, .fresh = none};
}

/* Counts a packet in its window and asks for its flow. queue and column are the places of total and rows. */
static __always_inline void snapshots_pass(const struct span *s, __u32 queue, const __u32 *column, __u32 add, struct answer *a)
{
	__u8 ramped = conquest_ramp != 0, other = 0;

	SNAPSHOT_GROUP(0, 1, 2, 3);
	SNAPSHOT_GROUP(4, 5, 6, 7);
	SNAPSHOT_GROUP(8, 9, 10, 11);
	SNAPSHOT_GROUP(12, 13, 14, 15);
	a->row[0] += span_part(s, s->reach, a->oldest[0]);
	a->row[1] = conquest_rows < 2 ? a->row[0] : a->row[1] + span_part(s, s->reach, a->oldest[1]);
}
