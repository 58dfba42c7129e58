// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 6: five arrays in a stage of four stateful ALUs. */
#include "program.h"

REGISTER(one, 3, __u32, ENTRIES);
REGISTER(two, 3, __u32, ENTRIES);
REGISTER(three, 3, __u32, ENTRIES);
REGISTER(four, 3, __u32, ENTRIES);
REGISTER(five, 3, __u32, ENTRIES);

#define COUNT(name)                                                                                   \
	do {                                                                                          \
		__u32 *e = reg_at(name, index_a(phv));                                                \
		if (e)                                                                                \
			reg_add(e, 1);                                                                \
	} while (0)

PROGRAM(five_in_a_stage)
{
	COUNT(one);
	COUNT(two);
	COUNT(three);
	COUNT(four);
	COUNT(five);
}
