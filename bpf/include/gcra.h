/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A bound on a rate: virtual scheduling (GCRA, ITU-T I.371) with one 64-bit word of time.
 *
 * The word is the time, in ns, at which everything that has passed is paid for. A packet passes whole unless that time is ahead of the clock, and advances it by
 * the cost of its bytes; a packet larger than the remaining credit also passes, and later ones wait until its debt is paid. Unused time is stored for at most
 * `burst` ns; a caller may reserve a part of it for others (a smaller room). In any interval of t seconds, at most rate * (t + burst) bytes and one packet pass (an aggregate counts whole, by its bytes on the wire).
 * Debt is time, so a changed rate needs no conversion: existing debt lasts as long as before.
 *
 * No word is farther ahead of the clock than `most`, the time of GCRA_MOST bytes, which is more than the largest aggregate. If it is, it was written before the clock
 * was set back (or at a much lower rate), and restarts with a full burst. A clock set back by less than that keeps the bound closed for as long.
 *
 * Many cores: charging is one atomic addition, so none is lost. Cores that check at the same time may each pass one packet, so that a burst is larger
 * by one packet for every other core; the debt carries over, so the mean is exact. The first packet after a silence replaces the word by one compare-and-swap: a
 * core that loses it passes its packet uncharged, at most one packet per core and silence. */
#pragma once

#include "register.h"

#define GCRA_SHIFT 20 /* cost of a byte: ns, times 2^20; 64 bits hold 2^19 bytes at 1 kB a second */
#define GCRA_MOST_SHIFT 19

/* Cost of a packet in ns, rounded up. */
static __always_inline __u64 gcra_cost(__u32 len, __u64 byte)
{
	return (len * byte + (1 << GCRA_SHIFT) - 1) >> GCRA_SHIFT;
}

enum gcra_answer {
	GCRA_PASSES,
	GCRA_LOST,    /* passes uncharged: another core's compare-and-swap was first */
	GCRA_REFUSES,
};

/* Does the packet pass? Charges it if it does. byte: cost of a byte, not 0. room: how far the word may be ahead of now - burst, at most burst.
 * ahead: how far it was. */
static __always_inline enum gcra_answer gcra_ask(__u64 *word, __u64 now, __u64 cost, __u64 byte, __u64 burst, __u64 room, __u64 *ahead)
{
	__u64 from = now - burst, held = reg_load(word);

	*ahead = held - from;
	if (*ahead <= room) {
		reg_add(word, cost);
		return GCRA_PASSES;
	}
	if (*ahead <= burst + (byte >> (GCRA_SHIFT - GCRA_MOST_SHIFT)))
		return GCRA_REFUSES;
	*ahead = 0;
	return reg_cas(word, held, from + cost) == held ? GCRA_PASSES : GCRA_LOST;
}
