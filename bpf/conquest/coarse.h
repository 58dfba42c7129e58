/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Coarse snapshots, for packets that waited longer than the fine ones reach back: a queue of a shaper stands at tens or hundreds of milliseconds.
 *
 * Four windows of 2^conquest_coarse fine ones each (128: 268 ms beside 2.1 ms, so that 0.8 s are covered at least, and a second mostly). Nothing is counted twice and nothing is sampled: what a
 * fine cell holds of its old window when the first packet of a new one overwrites it is added to the coarse cell of that old window, in a later stage.
 * So a packet pays for coarse snapshots only where it overwrites a cell, and what a flow had is what coarse cells hold and what fine cells of the same column
 * hold that nobody has overwritten yet, each word with the number of its window beside it.
 *
 * Who folds. Rows: packets that waited longer than the fine snapshots reach back. In a queue that is first in, first out, whoever arrives after a packet that did not
 * arrived after it did, and asks for nothing that left before, as what it overwrites had. Totals are always folded, since packets of another class, which
 * need not wait, would lose them. (Where classes share columns, a flow may lack what such a packet has overwritten: its share is too small then, not too large.)
 *
 * Who asks. The first packet of a fine window and cell of the first row: what a wait of many windows holds differs little from one packet to the next, and a flow
 * is reported once a window. The others take its answer from what was reported. A flow that has less than an eighth of alpha in the fine windows does not ask: where it had alpha of all of the
 * wait, packets of it that left before have asked. Of two flows that share a cell, the one that is first asks.
 *
 * Accuracy. The oldest coarse window counts by its overlap; fine cells count if their window ends after the packet arrived. Columns are a quarter of the fine
 * rows'. A count has 32 bits: 268 ms of 100 Gb/s do not fill it. Many cores: as in snapshots.h; between a fine cell's exchange and the addition to the coarse one a count is in neither, for the packets that
 * look in these nanoseconds. */
#pragma once

#include "snapshots.h"

#define COARSE 4 /* windows */

/* after b = 4, R = 2, a stage each, since a stage has four arrays: userspace sets others */
REGISTERS(conquest_ct, 6, __u64, 1, COARSE, "conquest_ct0,conquest_ct1,conquest_ct2,conquest_ct3");
REGISTERS(conquest_c0, 7, __u64, 512, COARSE, "conquest_c0_0,conquest_c1_0,conquest_c2_0,conquest_c3_0");
REGISTERS(conquest_c1, 8, __u64, 512, COARSE, "conquest_c0_1,conquest_c1_1,conquest_c2_1,conquest_c3_1");

const volatile _Bool conquest_every = 0;    /* report every packet that waited tau */
const volatile __u32 conquest_coarse_columns = 512; /* of one queue's row, a power of two */

/* What is done in a coarse stage. */
struct fold {
	__u32 newest; /* window that is read, */
	__u64 many;   /* and so many before and with it: 0 for who does not ask */
	__u32 last;   /* the place of the oldest */
	__u32 look;
	__u32 slots;  /* COARSE - 1, which the verifier is not to know: what it concludes from it would keep paths apart */
	__u32 window; /* that something is added to */
	__u32 add;
	__u64 alpha;
};

/* Adds what was overwritten, unless the place is of a later window by now. */
static __always_inline void coarse_add(__u64 *cell, __u64 old, __u32 window, __u32 add)
{
	if ((__u32)(old >> 32) == window)
		reg_add(cell, add);
	else if (cell_age(old, window) <= ~0U - LATE_MOST)
		reg_cas(cell, old, (__u64)window << 32 | add);
}

/* A cell's part of the answer, without a branch: the verifier is to see one way through all of them. Who does not ask has 0 windows. */
static __always_inline void coarse_count(struct answer *a, const struct fold *f, int r, __u32 i, __u64 word, __u64 *sum, __u64 *limit)
{
	__u64 n = cell_read(word, f->newest, f->many), other = f->last ^ i;

	opaque(other);
	WRITE_ONCE(a->oldest[r], READ_ONCE(a->oldest[r]) | (n & (other - 1) >> 32));
	*sum += n;
	if (r == SUM_ALL)
		*limit += n * f->alpha >> 20;
}

/* own: the place that is added to, or COARSE. */
static __always_inline void coarse_turn(__u64 *cells, const struct fold *f, int r, __u32 own, struct answer *a)
{
	__u64 sum = READ_ONCE(a->sum[r]), limit = READ_ONCE(a->limit), word;

#pragma unroll
	for (__u32 i = 0; i < COARSE; i++)
		if (i != own)
			coarse_count(a, f, r, i, reg_load(&cells[i]), &sum, &limit);
	if (own < COARSE) {
		word = reg_load(&cells[own]);
		coarse_count(a, f, r, own, word, &sum, &limit);
		coarse_add(&cells[own], word, f->window, f->add);
	}
	WRITE_ONCE(a->sum[r], sum);
	if (r == SUM_ALL)
		WRITE_ONCE(a->limit, limit);
}

#define COARSE_OWN(i)                                                                                 \
	case i:                                                                                       \
		coarse_turn(cells, f, r, i, a);                                                       \
		break

static __always_inline void coarse_stage(__u64 *cells, const struct fold *f, int r, __u32 slot, struct answer *a)
{
	switch (slot) {
		COARSE_OWN(0);
		COARSE_OWN(1);
		COARSE_OWN(2);
		COARSE_OWN(3);
	default:
		coarse_turn(cells, f, r, COARSE, a);
	}
}

#define COARSE_STAGE(map, key, f, r, turned)                                                          \
	do {                                                                                          \
		__u64 was_ = turned;                                                                  \
		struct map##_t *cells_;                                                               \
		__u32 slot_;                                                                          \
		f.window = (__u32)(was_ >> 32) >> conquest_coarse;                                    \
		f.add = (__u32)was_;                                                                  \
		slot_ = COARSE;                                                                       \
		if (f.add)                                                                            \
			slot_ = f.window & f.slots;                                                   \
		else if (!f.look)                                                                     \
			break;                                                                        \
		opaque(slot_);                                                                        \
		cells_ = bpf_map_lookup_elem(&map, key);                                              \
		if (cells_)                                                                           \
			coarse_stage(cells_->of, &f, r, slot_, a);                                    \
	} while (0)

/* The limit when the oldest window is weighted: answer_weigh(). */
static __always_inline __u64 coarse_limit(const struct span *s, const struct answer *a)
{
	__u64 all = a->oldest[SUM_ALL];

	return READ_ONCE(a->limit) + (((all * s->edge >> 16) * conquest_alpha >> 20) - (all * conquest_alpha >> 20));
}

/* Folds what a packet has overwritten, and adds coarse windows to its answer if it asks for them. The second row is not asked if the first one has no more than
 * alpha: the smaller one counts, and it is small enough. */
static __always_inline void coarse_pass(const struct span *s, __u32 queue, __u64 hash, int asks, struct answer *a)
{
	struct fold f = {.look = asks, .last = COARSE, .slots = COARSE - 1, .alpha = conquest_alpha};
	__u32 columns = conquest_coarse_columns, column;

	forget(f.slots, hash);
	if (asks) {
		f.newest = s->epoch >> conquest_coarse;
		f.many = s->reach + 1;
		f.last = (f.newest - s->reach) & (COARSE - 1);
	}
	COARSE_STAGE(conquest_ct, &queue, f, SUM_ALL, READ_ONCE(a->turned[SUM_ALL]));
	if (!s->wide)
		return;
	column = queue * columns + ((__u32)hash & (columns - 1));
	COARSE_STAGE(conquest_c0, &column, f, 0, READ_ONCE(a->turned[0]));
	if (conquest_rows < 2)
		return;
	f.look = f.look && (conquest_every || READ_ONCE(a->sum[0]) > coarse_limit(s, a));
	column = queue * columns + ((__u32)(hash >> 32) & (columns - 1));
	COARSE_STAGE(conquest_c1, &column, f, 1, READ_ONCE(a->turned[1]));
}
