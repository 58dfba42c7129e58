//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An algorithm that only counts what passes, in every kind of banked array. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "hash.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile _Bool witness_clock = 0; /* read the clock, so that algorithms behind this one find it read */
const volatile __u16 witness_port = 0;
const volatile __u32 witness_spin = 0; /* readings of the clock before anything is counted: a slow packet */

#define CELLS 256
#define SPINS 20000

enum witness_count {
	WITNESS_PACKETS,
	WITNESS_BYTES,
	WITNESS_PORT, /* UDP to witness_port */
	WITNESS_COUNTS
};

COUNTERS(witness_counts, WITNESS_COUNTS);
TALLY(witness_tally, 1, __u64, CELLS);
REGISTER_BANKED(witness_shared, 2, __u64, CELLS);

const enum witness_count *unused_count __attribute__((unused));

ALGORITHM(witness)
{
	struct witness_counts_t *counts = counters_of(witness_counts, phv);
	__u32 cell = hash_flow(phv, 0) & (CELLS - 1);
	__u64 *tally, *shared;

	if (!counts)
		return;
	if (witness_clock)
		clock_now(phv);
	for (__u32 i = 0; i < witness_spin && i < SPINS; i++)
		phv->carry[0] = bpf_ktime_get_ns();
	counts->c[WITNESS_PACKETS]++;
	counts->c[WITNESS_BYTES] += phv->len;
	counts->c[WITNESS_PORT] += phv_has(phv, PHV_UDP) && phv->dport == witness_port;
	tally = reg_bank(witness_tally, phv, cell);
	if (tally)
		*tally += 1;
	shared = reg_bank(witness_shared, phv, cell);
	if (shared)
		reg_add(shared, 1);
}
