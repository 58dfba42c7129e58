// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Scratch memory with an element for every flow. */
#include "program.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} scratch SEC(".maps") TAG("pisa:scratch");

PROGRAM(many_elements)
{
	__u32 *s = reg_at(scratch, index_a(phv)); /* want: 1 flow-state scratch */

	if (s)
		*s = phv->seq;
}
