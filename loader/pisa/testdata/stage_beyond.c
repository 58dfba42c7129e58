// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "program.h"

REGISTER(far, 20, __u32, ENTRIES);

PROGRAM(no_such_stage)
{
	__u32 *f = reg_at(far, index_a(phv)); /* want: 6 fit far */

	if (f)
		reg_add(f, 1);
}
