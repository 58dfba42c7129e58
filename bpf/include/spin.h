/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random numbers for programs that draw a coin for nearly every packet: bpf_get_prandom_u32 costs 15 ns, a step of a
 * local generator 4.
 *
 * Live, every CPU has a xorshift32 generator (Marsaglia 2003), finished by a multiplication. It is seeded from the kernel's
 * generator, and again after 256 draws on average: a new seed is due when the low byte is 0, so also
 * when the state is 0, as it is initially and must not stay. In a replay it is the packet's seeded coin (coin.h).
 *
 * The state is no memory of the algorithm: it replaces the random number generator of a switch. loader/pisa proves that
 * only its own output and that of bpf_get_prandom_u32 are stored in it. */
#pragma once

#include "coin.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} spin_state SEC(".maps") TAG("pisa:random");

/* Uniform 32 bits. */
static __always_inline __u32 coin_spin(struct phv *phv)
{
	__u32 zero = 0, *state, x;

	if (coin_seeded)
		return coin_flip(phv);
	state = bpf_map_lookup_elem(&spin_state, &zero);
	if (!state)
		return bpf_get_prandom_u32();
	x = *state;
	if (unlikely((x & 0xff) == 0))
		x = bpf_get_prandom_u32();
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x * 0x9e3779b1U;
}
