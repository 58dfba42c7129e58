// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two programs of one chain that touch one array: a packet that meets both has two accesses. Whole collection. */
#include "program.h"

REGISTER(common, 0, __u32, ENTRIES);

PROGRAM(first)
{
	__u32 *c = reg_at(common, index_a(phv));

	if (c)
		reg_add(c, 1);
}

PROGRAM(second)
{
	__u32 *c = reg_at(common, index_b(phv)); /* want: 2 second-access common */

	if (c)
		reg_add(c, 1);
}
