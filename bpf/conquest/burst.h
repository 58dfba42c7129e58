/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A queue's bursts: from the first packet that waited tau to the first that waited less than half of it. Two words a transmit queue, which
 * the packet that ends a burst reads and clears.
 *
 * Many cores on one queue: words are exchanged whole. A packet that loses the exchange leaves its time or its peak to the winner's. */
#pragma once

#include "base.h"
#include "register.h"

#define BURST_TICK 10 /* a stored time counts 2^10 ns: 73 minutes */

const volatile __u64 conquest_tau = 1000000; /* ns */

/* stages behind b = 4 snapshots of two rows: userspace sets others */
REGISTER(conquest_burst, 6, __u64, 1); /* {begin, last packet that waited tau}, in ticks; 0: no burst */
REGISTER(conquest_peak, 7, __u64, 1);  /* longest delay of the burst, ns */

enum burst_edge { BURST_NONE, BURST_GOES_ON, BURST_BEGINS, BURST_ENDS };

struct burst {
	__u64 word; /* of one that ended */
	__u64 peak;
};

static __always_inline __u32 burst_ticks(__u64 now)
{
	__u32 ticks = now >> BURST_TICK;

	return ticks | !ticks;
}

/* A packet that waited tau. */
static __always_inline int burst_hot(__u64 *word, __u32 now, struct burst *b)
{
	__u64 old = reg_load(word), begin = old ? old : (__u64)now << 32, next = begin >> 32 << 32 | now;

	b->word = old;
	if (next == old) /* within the tick of the packet before */
		return BURST_GOES_ON;
	return reg_cas(word, old, next) == old && !old ? BURST_BEGINS : BURST_GOES_ON;
}

/* One that waited less than half of it. */
static __always_inline int burst_calm(__u64 *word, struct burst *b)
{
	__u64 old = reg_load(word);

	b->word = old;
	return old && reg_cas(word, old, 0) == old ? BURST_ENDS : BURST_NONE;
}

/* The longest delay; the end of a burst takes it away. */
static __always_inline void burst_peak(__u64 *peak, __u64 delay, int edge, struct burst *b)
{
	if (edge == BURST_ENDS) {
		b->peak = reg_swap(peak, 0);
		return;
	}
	b->peak = reg_load(peak);
	if (b->peak < delay)
		reg_store(peak, delay);
}

/* What this packet is to the burst of its queue. */
static __always_inline int burst_pass(__u32 queue, __u64 departure, __u64 delay, struct burst *b)
{
	__u64 *word = reg_at(conquest_burst, queue), *peak;
	int edge;

	if (!word)
		return BURST_NONE;
	if (delay >= conquest_tau)
		edge = burst_hot(word, burst_ticks(departure), b);
	else if (delay < conquest_tau / 2)
		edge = burst_calm(word, b);
	else
		return BURST_NONE;
	if (edge == BURST_NONE)
		return edge;
	peak = reg_at(conquest_peak, queue);
	if (peak)
		burst_peak(peak, delay, edge, b);
	return edge;
}
