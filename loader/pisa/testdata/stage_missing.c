// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "program.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} nowhere SEC(".maps") TAG("pisa:register");

PROGRAM(no_stage)
{
	__u32 *n = reg_at(nowhere, index_a(phv)); /* want: 1 stage-missing nowhere */

	if (n)
		reg_add(n, 1);
}
