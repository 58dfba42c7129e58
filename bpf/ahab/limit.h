/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The limit of a slice, and how it moves (dissertation, sections 6.5.1 to 6.5.3).
 *
 * What a limit T would let pass is estimated for three limits at once: T itself, T - step and T + step. Sums are taken of what passes
 * under the lower one (low), what the middle one lets pass beyond it (mid), what the upper one does (high), and what none of them does (over),
 * in 2^-4 bytes: a packet below all of them adds to the first alone.
 *
 * exact  counts what is expected to pass, len * min(1, T / R), and step is half of T.
 * table  counts whole packets by the slice's Weyl sequence, divides by a table of (i + .5) / (j + .5), and step is a power
 *        of two: what the P4 twin does, bit for bit. */
#pragma once

#include "bins.h"
#include "register.h"

#define LIMIT_LEAST 16 /* a byte in tau: a limit never is 0 */
#define RATIO_BITS 6
#define RATIO_SIZE (1 << RATIO_BITS)
#define RATIO_ONE (1 << 15)

/* ratio[i * RATIO_SIZE + j]: min(1, (i + .5) / (j + .5)) in 2^-15: shares of packets. move: the same for steps of the limit, a quarter of it below 1/4. */
TABLE(ahab_ratio, __u32, RATIO_SIZE * RATIO_SIZE);
TABLE(ahab_move, __u32, RATIO_SIZE * RATIO_SIZE);

enum ahab_moves { AHAB_INTERPOLATE = 0, AHAB_AIMD = 1 };

const volatile _Bool ahab_table = 0;
const volatile __u32 ahab_update = AHAB_INTERPOLATE;

/* Parts of a packet, in 2^-4 bytes. */
struct parts {
	__u32 low, mid, high, over;
};

static __always_inline __u32 limit_step(__u32 limit)
{
	if (ahab_table)
		return 1U << (bins_log2(limit | LIMIT_LEAST) - 1);
	return limit >> 1;
}

/* (numerator, denominator) by their RATIO_BITS bits below the denominator's highest one. */
static __always_inline __u32 ratio_index(__u32 n, __u32 d)
{
	__u32 log = bins_log2(d | 1), shift = log > RATIO_BITS - 1 ? log - (RATIO_BITS - 1) : 0;

	n >>= shift;
	if (n >= RATIO_SIZE)
		n = RATIO_SIZE - 1;
	return n * RATIO_SIZE + (d >> shift & (RATIO_SIZE - 1));
}

/* min(1, limit / rate) in 2^-15. */
static __always_inline __u32 ratio_of(__u32 limit, __u32 rate)
{
	__u32 *share = reg_at(ahab_ratio, ratio_index(limit, rate));

	return share ? *share : RATIO_ONE;
}

/* What each limit lets pass of a packet of a user with that rate. share: of the middle one, in 2^-15 (table form). */
static __always_inline void parts_expected(struct parts *p, __u32 amount, __u32 rate, __u32 limit)
{
	__u32 step = limit_step(limit);
	__u64 each, low = amount, mid = amount, high = amount;

	if (rate > limit - step) {
		each = ((__u64)amount << 32) / rate;
		low = each * (limit - step) >> 32;
		if (rate > limit)
			mid = each * limit >> 32;
		if (rate > (__u64)limit + step)
			high = each * (limit + step) >> 32;
	}
	p->low = low;
	p->mid = mid - low;
	p->high = high - mid;
	p->over = amount - high;
}

/* The same by a number that is equidistributed in 0 .. 2^15 - 1: all or nothing. */
static __always_inline __u32 parts_drawn(struct parts *p, __u32 amount, __u32 rate, __u32 limit, __u32 number)
{
	__u32 step = limit_step(limit), share = ratio_of(limit, rate);

	p->low = p->mid = p->high = p->over = 0;
	if (number < ratio_of(limit - step, rate))
		p->low = amount;
	else if (number < share)
		p->mid = amount;
	else if (number < ratio_of(limit + step, rate))
		p->high = amount;
	else
		p->over = amount;
	return share;
}

/* Part of step by which the limit moves. */
static __always_inline __u32 moved_exactly(__u32 step, __u32 n, __u32 d)
{
	__u32 by;

	if (n >= d)
		return step;
	by = (__u64)step * n / d;
	return n < d >> 2 ? by >> 2 : by; /* near the aim what is left is mostly noise */
}

static __always_inline __u32 moved(__u32 step, __u32 n, __u32 d)
{
	__u32 *share;

	if (!ahab_table)
		return moved_exactly(step, n, d);
	share = reg_at(ahab_move, ratio_index(n, d));
	if (!d || !share)
		return step;
	return (__u64)step * *share >> 15;
}

/* HCSFQ's way: a fixed step up, a fixed share down. most: the limit that a user with all of the capacity has. */
static __always_inline __u32 limit_aimd(__u32 limit, const struct parts *sum, __u32 aim, __u32 most)
{
	if (sum->low + sum->mid > aim)
		return limit - (limit >> 4);
	return limit + (most >> 7);
}

/* The limit for the next epoch: where the line through two of the three sums meets the aim, always from the middle one, and no farther than
 * the other one. */
static __always_inline __u32 limit_next(__u32 limit, const struct parts *sum, __u32 aim, __u32 most)
{
	__u32 step = limit_step(limit), mid = sum->low + sum->mid, next;

	if (ahab_update == AHAB_AIMD)
		next = limit_aimd(limit, sum, aim, most);
	else if (aim >= mid)
		next = limit + moved(step, aim - mid, sum->high);
	else
		next = limit - moved(step, mid - aim, sum->mid);
	if (next < limit && aim >= mid) /* more than 32 bits */
		next = ~0U;
	return next | LIMIT_LEAST;
}
