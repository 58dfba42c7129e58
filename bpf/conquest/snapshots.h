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
	__u32 edge;  /* share of the oldest that counts, in 2^-16 */
	__u32 look;  /* others than that of the departure are looked at */
};

/* What they say, of all windows together: weighted by answer_weigh(), for who asks. */
struct answer {
	__u64 row[2]; /* the flow, by row */
	__u64 total;  /* all flows */
	__u64 limit;  /* alpha of that, window by window as on a switch */
	__u32 last[2], second[2]; /* the flow in the window before that of the departure and in the one before, by row */
	__u32 oldest[3]; /* ... and all flows, in the oldest window, whatever its weight */
	__u32 marks; /* enum cell_mark */
};

/* What befell a packet in its own window's cells. */
enum cell_mark {
	CELL_FRESH = 1, /* it is the first one of its window and queue */
	CELL_RACED = 2,
	CELL_LATE = 4,
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

/* Adds to a cell; returns what its window held before. Marks are kept in memory: what seldom changes is not to be carried through all cells. */
static __always_inline __u32 cell_add(__u64 *cell, __u32 epoch, __u32 add, __u32 *marks, __u32 fresh)
{
	__u64 old = reg_load(cell);

	if ((__u32)(old >> 32) == epoch)
		return (__u32)reg_add(cell, add);
	if (cell_age(old, epoch) > ~0U - LATE_MOST)
		fresh = CELL_LATE;
	else if (reg_cas(cell, old, (__u64)epoch << 32 | add) != old)
		fresh = CELL_RACED;
	if (fresh)
		WRITE_ONCE(*marks, READ_ONCE(*marks) | fresh);
	return 0;
}

/* What a cell holds if its window is that of the packet or one of those before that are asked for, `beyond` in all: the snapshot it is in has no
 * other window of these. No branch: of which window a cell is cannot be predicted. */
static __always_inline __u64 cell_read(__u64 word, __u32 epoch, __u64 beyond)
{
	__u64 age = (__u32)(epoch - (__u32)(word >> 32));

	age -= beyond;
	opaque(age);
	return word & age >> 32;
}

/* What a cell holds of one window. */
static __always_inline __u32 cell_of(__u64 word, __u32 window)
{
	__u64 other = (word >> 32) ^ window;

	opaque(other);
	return (__u32)word & (__u32)((other - 1) >> 32);
}

/* What ramps ask for, beside the sums: the flow in the last two windows. No branch here either: the compiler would make two ways of all that is behind it, and
 * what this stage writes would hang on what it has read. */
#define SNAPSHOT_RAMP(a, r, epoch, word)                                                              \
	do {                                                                                          \
		WRITE_ONCE((a)->last[r], READ_ONCE((a)->last[r]) | cell_of(word, (epoch) - 1));       \
		WRITE_ONCE((a)->second[r], READ_ONCE((a)->second[r]) | cell_of(word, (epoch) - 2));   \
	} while (0)

/* Reads one array of snapshot j, if it is not the packet's: word is what is there. The oldest window is weighted behind all of them. */
#define SNAPSHOT_READ(array, j, key, at, then)                                                        \
	do {                                                                                          \
		__u64 *cell_, word;                                                                   \
		if (slot == (j))                                                                      \
			break;                                                                        \
		cell_ = bpf_map_lookup_elem(&array, key);                                             \
		if (!cell_)                                                                           \
			break;                                                                        \
		word = reg_load(cell_);                                                               \
		n = cell_read(word, epoch, beyond);                                                   \
		if (last == (j))                                                                      \
			WRITE_ONCE(a->oldest[at], n);                                                 \
		then;                                                                                 \
	} while (0)

/* Writes it, if it is: n is what its window held before. */
#define SNAPSHOT_WRITE(array, j, key, fresh)                                                          \
	if (slot == (j)) {                                                                            \
		__u64 *cell_ = bpf_map_lookup_elem(&array, key);                                      \
		if (cell_)                                                                            \
			n = cell_add(cell_, epoch, add, &a->marks, fresh);                            \
	}

#define SNAPSHOT_TOTAL(j)                                                                             \
	SNAPSHOT_READ(conquest_t##j, j, &queue, 2, {                                                  \
		total += n;                                                                           \
		limit += n * alpha >> 20;                                                             \
	})

#define SNAPSHOT_ROW(j, r) SNAPSHOT_READ(conquest_s##j##_##r, j, &column[r], r, row += n)

#define SNAPSHOT_RAMPS(j, r)                                                                          \
	SNAPSHOT_READ(conquest_s##j##_##r, j, &column[r], r, {                                        \
		row += n;                                                                             \
		SNAPSHOT_RAMP(a, r, epoch, word);                                                     \
	})

/* b is 2 at least, and more than that a multiple of 4. */
#define SNAPSHOT_FOUR(each, j0, j1, j2, j3, ...)                                                      \
	do {                                                                                          \
		each(j0, ##__VA_ARGS__); each(j1, ##__VA_ARGS__);                                     \
		if (b == 2)                                                                           \
			break;                                                                        \
		each(j2, ##__VA_ARGS__); each(j3, ##__VA_ARGS__);                                     \
	} while (0)

/* The four arrays of a stage. Reads come first: behind an atomic operation they would wait for it. */
#define SNAPSHOT_TOTALS(j0, j1, j2, j3)                                                               \
	do {                                                                                          \
		__u32 at_ = epoch, slot, last;                                                        \
		__u64 n = 0, total = READ_ONCE(a->total), limit = READ_ONCE(a->limit);                \
		opaque(at_);                                                                          \
		slot = at_ & mask;                                                                    \
		last = (at_ - reach) & mask;                                                          \
		if (look)                                                                             \
			SNAPSHOT_FOUR(SNAPSHOT_TOTAL, j0, j1, j2, j3);                                \
		n = 0;                                                                                \
		SNAPSHOT_WRITE(conquest_t##j0, j0, &queue, CELL_FRESH)                                \
		else SNAPSHOT_WRITE(conquest_t##j1, j1, &queue, CELL_FRESH)                           \
		else SNAPSHOT_WRITE(conquest_t##j2, j2, &queue, CELL_FRESH)                           \
		else SNAPSHOT_WRITE(conquest_t##j3, j3, &queue, CELL_FRESH)                           \
		if (own) {                                                                            \
			total += n;                                                                   \
			limit += n * alpha >> 20;                                                     \
		}                                                                                     \
		WRITE_ONCE(a->total, total);                                                          \
		WRITE_ONCE(a->limit, limit);                                                          \
	} while (0)

#define SNAPSHOT_ROWS(j0, j1, j2, j3, r)                                                              \
	do {                                                                                          \
		__u32 at_ = epoch, slot, last;                                                        \
		__u64 n = 0, row = READ_ONCE(a->row[r]);                                              \
		opaque(at_);                                                                          \
		slot = at_ & mask;                                                                    \
		last = (at_ - reach) & mask;                                                          \
		if (look && conquest_ramp)                                                            \
			SNAPSHOT_FOUR(SNAPSHOT_RAMPS, j0, j1, j2, j3, r);                             \
		else if (look)                                                                        \
			SNAPSHOT_FOUR(SNAPSHOT_ROW, j0, j1, j2, j3, r);                               \
		n = 0;                                                                                \
		SNAPSHOT_WRITE(conquest_s##j0##_##r, j0, &column[r], 0)                               \
		else SNAPSHOT_WRITE(conquest_s##j1##_##r, j1, &column[r], 0)                          \
		else SNAPSHOT_WRITE(conquest_s##j2##_##r, j2, &column[r], 0)                          \
		else SNAPSHOT_WRITE(conquest_s##j3##_##r, j3, &column[r], 0)                          \
		if (own)                                                                              \
			row += n;                                                                     \
		WRITE_ONCE(a->row[r], row);                                                           \
	} while (0)

/* Four snapshots: three stages of four arrays. */
#define SNAPSHOT_GROUP(j0, j1, j2, j3)                                                                \
	do {                                                                                          \
		if (j0 >= b)                                                                          \
			break;                                                                        \
		SNAPSHOT_TOTALS(j0, j1, j2, j3);                                                      \
		SNAPSHOT_ROWS(j0, j1, j2, j3, 0);                                                     \
		if (conquest_rows < 2)                                                                \
			break;                                                                        \
		SNAPSHOT_ROWS(j0, j1, j2, j3, 1);                                                     \
	} while (0)

/* Counts a packet in its window and asks for its flow. queue and column are the places of total and rows. any: see forget(). The verifier is to know neither
 * where it is nor that nothing has been found so far, or else it walks every way through the snapshots for each. */
static __always_inline void snapshots_pass(const struct span *s, __u32 queue, __u32 *column, __u32 add, int own, __u64 any, struct answer *a)
{
	__u32 b = conquest_snapshots, mask = b - 1, epoch = s->epoch, reach = s->reach, look = s->look;
	__u64 beyond = reach + 1, none = 0, alpha = conquest_alpha;

	forget(look, any);
	forget(none, any);
	opaque(beyond);
	WRITE_ONCE(a->row[0], none);
	WRITE_ONCE(a->row[1], none);
	WRITE_ONCE(a->total, none);
	WRITE_ONCE(a->limit, none);
	WRITE_ONCE(a->marks, none);
	WRITE_ONCE(a->oldest[0], none);
	WRITE_ONCE(a->oldest[1], none);
	WRITE_ONCE(a->oldest[2], none);
	if (conquest_ramp) {
		WRITE_ONCE(a->last[0], none);
		WRITE_ONCE(a->last[1], none);
		WRITE_ONCE(a->second[0], none);
		WRITE_ONCE(a->second[1], none);
	}
	SNAPSHOT_GROUP(0, 1, 2, 3);
	SNAPSHOT_GROUP(4, 5, 6, 7);
	SNAPSHOT_GROUP(8, 9, 10, 11);
	SNAPSHOT_GROUP(12, 13, 14, 15);
}

/* Takes from a sum the part of the oldest window that does not count. */
static __always_inline __u64 span_rest(const struct span *s, __u64 oldest)
{
	return oldest - (oldest * s->edge >> 16);
}

/* The answer of who has asked. */
static __always_inline void answer_weigh(const struct span *s, struct answer *a)
{
	__u64 all = a->oldest[2], part = all * s->edge >> 16;

	a->total -= all - part;
	a->limit += (part * conquest_alpha >> 20) - (all * conquest_alpha >> 20);
	a->row[0] -= span_rest(s, a->oldest[0]);
	a->row[1] = conquest_rows < 2 ? a->row[0] : a->row[1] - span_rest(s, a->oldest[1]);
}
