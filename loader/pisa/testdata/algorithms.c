// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two algorithms of one chain, each compiled for both hooks. Whole collection. */
#include "program.h"

REGISTER(first_table, 0, __u64, ENTRIES);
REGISTER_BANKED(first_sum, 1, __u32, ENTRIES);
REGISTER(second_table, 0, __u32, ENTRIES);
COUNTERS(counts, 4);

ALGORITHM(first)
{
	__u64 *t = reg_at(first_table, index_a(phv));
	__u32 *s;

	if (!t || reg_swap(t, phv->ep_dst) == phv->ep_dst)
		return;
	s = reg_bank(first_sum, phv, index_a(phv));
	if (s)
		reg_add(s, phv->len);
}

ALGORITHM_RECIRC(second)
{
	__u32 *t = reg_at(second_table, index_a(phv));

	if (!t)
		return 0;
	if (second_pass(phv)) {
		reg_store(t, (__u32)phv->carry[0]);
		return 0;
	}
	if (reg_load(t) == phv->seq)
		return 0;
	phv->carry[0] = phv->seq;
	return 1;
}
