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

#define SIDE_BY_SIDE 4 /* snapshots of a group */

const volatile __u32 conquest_snapshots = 4; /* b: a power of two */
const volatile __u32 conquest_rows = 2;      /* R: 1 or 2 */
const volatile __u32 conquest_columns = 2048; /* C: of one queue's row, a power of two */
const volatile __u32 conquest_queues = 1;     /* that are distinguished: a power of two */
const volatile __u32 conquest_shift = 20;    /* T = 2^shift ns */

/* Stages are those of b = 4, R = 2; userspace sets them where there are more (maps.SetStage). The arrays of four snapshots stand side by side: all are asked at one
 * place. With b = 2 two of them stay empty. */
#define SNAPSHOTS(g, j0, j1, j2, j3)                                                                  \
	REGISTERS(conquest_t_##g, 3, __u64, 1, SIDE_BY_SIDE,                                          \
		  "conquest_t" #j0 ",conquest_t" #j1 ",conquest_t" #j2 ",conquest_t" #j3);            \
	REGISTERS(conquest_r0_##g, 4, __u64, 2048, SIDE_BY_SIDE,                                      \
		  "conquest_s" #j0 "_0,conquest_s" #j1 "_0,conquest_s" #j2 "_0,conquest_s" #j3 "_0"); \
	REGISTERS(conquest_r1_##g, 5, __u64, 2048, SIDE_BY_SIDE,                                      \
		  "conquest_s" #j0 "_1,conquest_s" #j1 "_1,conquest_s" #j2 "_1,conquest_s" #j3 "_1")

SNAPSHOTS(0, 0, 1, 2, 3);
SNAPSHOTS(1, 4, 5, 6, 7);
SNAPSHOTS(2, 8, 9, 10, 11);
SNAPSHOTS(3, 12, 13, 14, 15);

const volatile __u32 conquest_alpha = 10486; /* what is a large share of the queue, in 2^-20 */
const volatile __u32 conquest_coarse = 0;    /* coarse windows are 2^conquest_coarse of those of snapshots: coarse.h; 0: there are none */
const volatile __u32 conquest_ramp = 0;      /* growth from one window to the next that is reported; 0: none */

/* What is asked of the snapshots: the flow in the window of the departure and in some before it. */
struct span {
	__u32 epoch; /* the window of the departure */
	__u32 reach; /* the oldest window that is read is so many before it; 0: none */
	__u32 edge;  /* share of the oldest that counts, in 2^-16 */
	__u32 look;  /* others than that of the departure are looked at */
	__u32 wide;  /* reach and edge are of coarse windows: coarse.h */
	__u32 beyond; /* the packet waited longer than that */
	__u64 many;  /* wide: snapshots' windows that lie in the wait wholly, that of the departure with them, */
	__u64 every; /* ... and those since the oldest window that is read began, for totals */
};

enum { SUM_ALL = 2, SUMS };

/* Their sums over all windows together: weighted by answer_weigh(), for who asks. */
struct answer {
	__u64 sum[SUMS]; /* the flow, by row, and all flows */
	__u64 limit;     /* alpha of these, window by window as on a switch */
	__u32 last[2], second[2]; /* the flow in the window before that of the departure and in the one before, by row */
	__u32 oldest[SUMS]; /* the sums' part in the oldest window, whatever its weight */
	__u32 marks; /* enum cell_mark */
	__u64 turned[SUMS]; /* what a cell held of an older window, which this packet has overwritten; 0: nothing */
};

/* What befell a packet in its own window's cells. */
enum cell_mark {
	CELL_FRESH = 1, /* it is the first one of its window and queue */
	CELL_RACED = 2,
	CELL_LATE = 4,
	CELL_FIRST = 8, /* ... of its window and of the flows that share a cell of the first row */
};

#define NO_SNAPSHOT 64U
#define SPAN_ONE 65536U
#define LATE_MOST 64U /* windows: more than clocks of cores differ by, and little beside the 2^32 that a number repeats after */

/* Windows from a cell's own to that of a packet, all that there are: a cell of a later window is nearly 2^32 back. A count of 0 is of nobody, whatever
 * the window beside it: such a cell is not later than anybody, by its highest bit. No branch, since a read-modify-write has two at most. */
static __always_inline __u32 cell_age(__u64 word, __u32 epoch)
{
	__u64 count = (__u32)word;

	opaque(count);
	return (epoch - (__u32)(word >> 32)) & ~((__u32)((count - 1) >> 32) << 31);
}

/* Adds to a cell. Marks and what was overwritten are held in memory: what seldom changes is not to be carried through all cells. */
static __always_inline void cell_add(__u64 *cell, __u64 old, __u32 epoch, __u32 add, __u32 *marks, __u64 *turned, __u32 fresh)
{
	if ((__u32)(old >> 32) == epoch) {
		reg_add(cell, add);
		return;
	}
	if (cell_age(old, epoch) > ~0U - LATE_MOST)
		fresh = CELL_LATE;
	else if (reg_cas(cell, old, (__u64)epoch << 32 | add) != old)
		fresh = CELL_RACED;
	else if (conquest_coarse)
		WRITE_ONCE(*turned, old);
	if (fresh)
		WRITE_ONCE(*marks, READ_ONCE(*marks) | fresh);
}

/* What a cell holds if its window is one of `many` up to the newest that is asked for: the snapshot it is in has no other of these. No branch: of which
 * window a cell is cannot be predicted. */
static __always_inline __u64 cell_read(__u64 word, __u32 newest, __u64 many)
{
	__u64 age = (__u32)(newest - (__u32)(word >> 32));

	age -= many;
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

/* What ramps ask for, beside the sums: the flow in the last two windows. No branch here either: the compiler would make two ways of all that follows it, and
 * what this stage writes would hang on what it has read. */
static __always_inline void ramp_read(struct answer *a, int r, __u32 epoch, __u64 word)
{
	WRITE_ONCE(a->last[r], READ_ONCE(a->last[r]) | cell_of(word, epoch - 1));
	WRITE_ONCE(a->second[r], READ_ONCE(a->second[r]) | cell_of(word, epoch - 2));
}

/* What a packet looks for. */
struct search {
	__u32 epoch;  /* its own window */
	__u32 newest; /* that is read, */
	__u64 many;   /* and so many before and with it, of rows */
	__u64 every;  /* ... of totals */
	__u32 mask;   /* of windows' numbers: whose snapshot it is */
	__u32 last;   /* the snapshot of the oldest one; none where that is a coarse one */
	__u32 look, add;
	__u64 alpha;
};

/* One stage: arrays of four snapshots at one place. own: the one that the packet writes, or SIDE_BY_SIDE. It is last: after an atomic operation the others would
 * wait for it, and what lies between its read and its write are conditions of a read-modify-write. The oldest window is weighted after all stages. */
static __always_inline void stage_turn(__u64 *cells, const struct search *f, __u32 first, int r, __u32 own, struct answer *a)
{
	__u64 sum = READ_ONCE(a->sum[r]), limit = READ_ONCE(a->limit), many = r == SUM_ALL ? f->every : f->many, word, n;
	__u32 last = f->last;

	opaque(last);
	last &= 2 * NO_SNAPSHOT - 1; /* what is found out of it is not known of f->last */
	if (f->look) {
#pragma unroll
		for (__u32 i = 0; i < SIDE_BY_SIDE; i++) {
			if (i == own || i > f->mask) /* b = 2 */
				continue;
			word = reg_load(&cells[i]);
			n = cell_read(word, f->newest, many);
			if (last == first + i)
				WRITE_ONCE(a->oldest[r], n);
			sum += n;
			if (r == SUM_ALL)
				limit += n * f->alpha >> 20;
			else if (conquest_ramp)
				ramp_read(a, r, f->epoch, word);
		}
	}
	if (own < SIDE_BY_SIDE) {
		word = reg_load(&cells[own]);
		n = cell_read(word, f->newest, many);
		sum += n;
		limit += n * f->alpha >> 20;
		cell_add(&cells[own], word, f->epoch, f->add, &a->marks, &a->turned[r], r == SUM_ALL ? CELL_FRESH : r == 0 ? CELL_FIRST : 0);
	}
	WRITE_ONCE(a->sum[r], sum);
	if (r == SUM_ALL)
		WRITE_ONCE(a->limit, limit);
}

/* Whose turn it is decides before anything is read. */
static __always_inline void stage_pass(__u64 *cells, const struct search *f, __u32 first, int r, struct answer *a)
{
	__u32 slot = f->epoch;

	opaque(slot); /* or the verifier would keep it for all stages, and walk through them for each */
	slot &= f->mask;
	if (slot == first)
		stage_turn(cells, f, first, r, 0, a);
	else if (slot == first + 1)
		stage_turn(cells, f, first, r, 1, a);
	else if (slot == first + 2)
		stage_turn(cells, f, first, r, 2, a);
	else if (slot == first + 3)
		stage_turn(cells, f, first, r, 3, a);
	else
		stage_turn(cells, f, first, r, SIDE_BY_SIDE, a);
}

#define SNAPSHOT_STAGE(map, key, first, r)                                                            \
	do {                                                                                          \
		struct map##_t *cells_ = bpf_map_lookup_elem(&map, key);                              \
		if (cells_)                                                                           \
			stage_pass(cells_->of, &f, first, r, a);                                      \
	} while (0)

/* Four snapshots: three stages of four arrays. */
#define SNAPSHOT_GROUP(g)                                                                             \
	do {                                                                                          \
		if (g * SIDE_BY_SIDE > f.mask)                                                        \
			break;                                                                        \
		SNAPSHOT_STAGE(conquest_t_##g, &queue, g * SIDE_BY_SIDE, SUM_ALL);                    \
		SNAPSHOT_STAGE(conquest_r0_##g, &column[0], g * SIDE_BY_SIDE, 0);                     \
		if (conquest_rows < 2)                                                                \
			break;                                                                        \
		SNAPSHOT_STAGE(conquest_r1_##g, &column[1], g * SIDE_BY_SIDE, 1);                     \
	} while (0)

/* Counts a packet in its window and asks for its flow; own: in the packet's own window, too. queue and column are the places of total and rows. any: see forget().
 * The verifier is to know neither where it is nor that nothing has been found so far, or else it walks every way through the snapshots for each. */
static __always_inline void snapshots_pass(const struct span *s, __u32 queue, __u32 *column, __u32 add, int own, __u64 any, struct answer *a)
{
	struct search f = {.epoch = s->epoch, .newest = s->epoch - !own, .many = s->reach + !!own, .mask = conquest_snapshots - 1,
			   .last = (s->epoch - s->reach) & (conquest_snapshots - 1), .look = s->look, .add = add, .alpha = conquest_alpha};
	__u64 none = 0, nothing = 0; /* two of them: what the verifier knows to be the same would keep paths apart */

	f.every = f.many;
	if (conquest_coarse && s->wide) {
		f.many = s->many;
		f.every = s->every;
		f.last = NO_SNAPSHOT;
	}
	forget(f.look, any);
	forget(none, any);
	if (conquest_coarse)
		forget(nothing, any);
	forget(f.last, any);
	opaque(f.many);
	opaque(f.every);
#pragma unroll
	for (int r = 0; r < SUMS; r++) {
		WRITE_ONCE(a->sum[r], none);
		WRITE_ONCE(a->oldest[r], none);
		if (conquest_coarse)
			WRITE_ONCE(a->turned[r], nothing);
	}
	WRITE_ONCE(a->limit, none);
	WRITE_ONCE(a->marks, none);
	if (conquest_ramp) {
		WRITE_ONCE(a->last[0], none);
		WRITE_ONCE(a->last[1], none);
		WRITE_ONCE(a->second[0], none);
		WRITE_ONCE(a->second[1], none);
	}
	SNAPSHOT_GROUP(0);
	SNAPSHOT_GROUP(1);
	SNAPSHOT_GROUP(2);
	SNAPSHOT_GROUP(3);
}

/* Takes from a sum the part of the oldest window that does not count. */
static __always_inline __u64 span_rest(const struct span *s, __u64 oldest)
{
	return oldest - (oldest * s->edge >> 16);
}

/* The answer of who has asked. */
static __always_inline void answer_weigh(const struct span *s, struct answer *a)
{
	__u64 all = a->oldest[SUM_ALL], part = all * s->edge >> 16;

	a->sum[SUM_ALL] -= all - part;
	a->limit += (part * conquest_alpha >> 20) - (all * conquest_alpha >> 20);
	a->sum[0] -= span_rest(s, a->oldest[0]);
	a->sum[1] = conquest_rows < 2 ? a->sum[0] : a->sum[1] - span_rest(s, a->oldest[1]);
}
