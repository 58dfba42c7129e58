// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 3. */
#include "program.h"

struct wide {
	__u32 key, first, last;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct wide);
	__uint(max_entries, ENTRIES);
} records SEC(".maps") TAG("pisa:register") TAG("pisa:stage=0");

PROGRAM(element_too_wide)
{
	struct wide *r = reg_at(records, index_a(phv)); /* want: 3 element-width records */

	if (r)
		reg_store(&r->last, phv->seq);
}
