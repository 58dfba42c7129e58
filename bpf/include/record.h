/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* {id, time} of a request in one 64-bit word, so that no core ever reads the id of one request with the time of another.
 *
 * id has 24 bits, time the low 40 bits of the clock in ticks: 19 hours of 64 ns. Delays are binned by 32 bits; the eight
 * bits above them distinguish a longer delay (275 s) from a short one, so that it is counted instead of measured
 * wrongly. Two requests are taken for one when they agree in slot and id: with 256 slots one pair in 2^32.
 *
 * A switch has the same word as two halves of 32 bits: id and the time's high byte, the time's low four bytes. Low bytes
 * that are all 0 mean that no request waits: an empty slot, or a record that was answered and keeps its id (a request
 * that started in such a tick, one in 2^32, is not found). */
#pragma once

#include "clock.h"

#define RECORD_TIME_BITS 40
#define RECORD_TIME_MASK ((1ULL << RECORD_TIME_BITS) - 1)

/* The id, never 0, from a hash: its high 24 bits, which are also the switch's. */
static __always_inline __u32 record_id(__u32 hash)
{
	__u32 id = hash >> 8;

	return id | (id == 0);
}

static __always_inline __u64 record_word(__u32 id, __u64 ticks)
{
	return (__u64)id << RECORD_TIME_BITS | (ticks & RECORD_TIME_MASK);
}

static __always_inline int record_of(__u64 word, __u32 id)
{
	return word >> RECORD_TIME_BITS == id;
}

/* Does a request wait for an answer in this slot? */
static __always_inline int record_waits(__u64 word)
{
	return (__u32)word != 0;
}

/* Ticks since the record was written, with the tolerance of clock_since. */
static __always_inline __u64 record_age(__u64 now, __u64 word)
{
	__u64 ticks = (now - word) & RECORD_TIME_MASK;

	return ticks > RECORD_TIME_MASK - CLOCK_BEHIND ? 0 : ticks;
}

/* Is a delay longer than 32 bits? */
static __always_inline int record_too_long(__u64 ticks)
{
	return ticks >> 32 != 0;
}
