//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* countmin: a Count-Min Sketch of packets by flow, of three rows: registers that add up when hosts are put together. For tests only. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "hash.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

REGISTER_BANKED(countmin_row0, 1, __u32, 1024);
REGISTER_BANKED(countmin_row1, 2, __u32, 1024);
REGISTER_BANKED(countmin_row2, 3, __u32, 1024);

#define ROW(i)                                                                                        \
	do {                                                                                          \
		__u32 *cell = reg_bank(countmin_row##i, phv, hash_flow(phv, 1 + i) & (countmin_row##i##_entries - 1)); \
		if (cell)                                                                             \
			reg_add(cell, 1);                                                             \
	} while (0)

ALGORITHM(countmin)
{
	if (!(phv->valid & PHV_IP))
		return;
	ROW(0);
	ROW(1);
	ROW(2);
}
