/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Low-pass filters: sums that decay with a time constant tau, so that a cell to which packet sizes are added reads tau times their rate
 * (Stoica, Shenker and Zhang, "Core-Stateless Fair Queueing", SIGCOMM 1998, section 3.3, uses the same average for rates).
 *
 * A switch has a separate extern for them (Lpf), with a product inside; TAG("pisa:lpf") marks it for the prover. Time is counted in ticks
 * of 2^lpf_shift ns, and decay is a table of powers of exp(-tick / tau) in 2^-16: 32 to 64 ticks make tau (61 with 4 ms), so a cell that is
 * read after a tick's end is at most 3 % (1.6) below one that is read before it, and all cells decay at the same moments. The table is
 * 1024 ticks long, after which the sum is 0 (exp(-16)).
 *
 * Many cores: within a tick, additions to a cell are atomic and none is lost. The first packet of a tick also
 * decays it, with one store of the whole word: what another core adds between its load and its store, some nanoseconds of 65,536,
 * is lost. That is at most one packet per core, cell and tick, and makes a rate read too low by less than their share of
 * a tick's packets; a compare-and-exchange would lose this packet instead, and costs three times as much as the rest of a row. A clock that
 * is behind the cell's by up to LPF_BEHIND ticks, about tau (another core's; a capture out of order) adds without a decay, so that a rate reads at most
 * twice too high. One that is older still was set back: the cell restarts, since it would stay constant until the clock had caught up. Ticks
 * wrap after 2^32 of them (78 hours): a cell that was not accessed for as long and is within LPF_BEHIND of it returns the old sum once. */
#pragma once

#include "register.h"

#define LPF_TICKS 1024
#define LPF_BEHIND 64

const volatile __u32 lpf_shift = 16; /* 2^16 ns: 61 ticks make 4 ms */

struct lpf_cell {
	__u32 value;
	__u32 tick;
};

/* decay[i] = 2^16 exp(-i 2^lpf_shift / tau), rounded: userspace fills it. */
TABLE(lpf_decay, __u32, LPF_TICKS);

/* name: at most 15 characters. n: a power of two. */
#define LPF(name, stage, n) REGISTER(name, stage, struct lpf_cell, n) TAG("pisa:lpf")

static __always_inline __u32 lpf_tick(__u64 now)
{
	return now >> lpf_shift;
}

/* Adds x to a cell and returns its new value. */
static __always_inline __u32 lpf_add(struct lpf_cell *cell, __u32 tick, __u32 x)
{
	__u64 *word = (__u64 *)cell, old = READ_ONCE(*word), value;
	__u32 since = tick - (__u32)(old >> 32), *decay;

	if (since - 1 >= ~0U - LPF_BEHIND)
		return reg_add(&cell->value, x) + x;
	decay = reg_at(lpf_decay, since < LPF_TICKS ? since : LPF_TICKS - 1);
	if (!decay)
		return 0;
	value = ((old & ~0U) * *decay >> 16) + x;
	value |= 0 - (value >> 32); /* saturates: bit 32 is the only one that can be set */
	reg_store(word, (__u64)tick << 32 | (__u32)value);
	return value;
}
