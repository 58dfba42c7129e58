/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A queue's bursts: from the first packet that waited tau to the last one, after which for half of tau nobody waited tau and then somebody
 * waited less than half of it. Without that pause, packets that need not wait would cut the bursts of others into pieces: of another class or flow of
 * the same queue, or of a queue that shares these words. In a queue that is first in, first out, two bursts have it between them: who waits tau arrived
 * after the one that waited less than half of it. Two words a transmit queue, which the packet that ends a burst reads and clears.
 *
 * Many cores on one queue: a burst begins and ends by an exchange, and an open one is stored, since an exchange costs as much as a row. A
 * packet that stores while another core ends the burst brings it back: it ends twice, with the same beginning, and userspace puts both together.
 * A packet that loses an exchange leaves its time or its peak to the winner's. */
#pragma once

#include "base.h"
#include "register.h"

#define BURST_TICK 10 /* a stored time counts 2^10 ns: 73 minutes */

const volatile __u64 conquest_tau = 1000000; /* ns */
const volatile __u32 conquest_pause = 488;   /* ticks: half of tau */

/* stages after b = 4 snapshots of two rows: userspace sets others */
REGISTER(conquest_burst, 7, __u64, 1); /* {begin, last packet that waited tau}, in ticks; 0: no burst */
REGISTER(conquest_peak, 8, __u64, 1);  /* longest delay of the burst, ns */

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
	__u64 old = reg_load(word), next = old >> 32 << 32 | now, first = (__u64)now << 32;

	b->word = old;
	opaque(first); /* what follows would be a product */
	if (!old)
		return reg_cas(word, 0, first | now) == 0 ? BURST_BEGINS : BURST_GOES_ON;
	if (next != old) /* else within the tick of the packet before */
		reg_store(word, next);
	return BURST_GOES_ON;
}

/* One that waited less than half of it. Another core's packet may be ahead of this one's time. */
static __always_inline int burst_calm(__u64 *word, __u32 now, struct burst *b)
{
	__u64 old = reg_load(word);

	b->word = old;
	if (!old || (__s32)(now - (__u32)old) < (__s32)conquest_pause)
		return BURST_NONE;
	return reg_cas(word, old, 0) == old ? BURST_ENDS : BURST_NONE;
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
	__u32 now = burst_ticks(departure);
	__u64 *word, *peak;
	int edge;

	opaque(now); /* in front of the access */
	word = reg_at(conquest_burst, queue);
	if (!word)
		return BURST_NONE;
	if (delay >= conquest_tau)
		edge = burst_hot(word, now, b);
	else if (delay < conquest_tau / 2)
		edge = burst_calm(word, now, b);
	else
		return BURST_NONE;
	if (edge == BURST_NONE)
		return edge;
	peak = reg_at(conquest_peak, queue);
	if (peak)
		burst_peak(peak, delay, edge, b);
	return edge;
}
