/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random numbers: the kernel's generator live, a seeded one in a replay (which is pinned to one core, so that the
 * sequence, and every answer, is reproducible). Replay programs are loaded with coin_seeded = true. */
#pragma once

#include "phv.h"

const volatile _Bool coin_seeded = 0;

/* Uniform 32 bits. The seeded form is xorshift32 (Marsaglia 2003) finished by a multiplication; the entry
 * program seeds phv->coin from a counter, so that it never is 0. */
static __always_inline __u32 coin_flip(struct phv *phv)
{
	__u32 x;

	if (!coin_seeded)
		return bpf_get_prandom_u32();
	x = phv->coin;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	phv->coin = x;
	return x * 0x9e3779b1U;
}
