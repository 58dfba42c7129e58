// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 3, of arrays that stand side by side: each has a word of 64 bits. */
#include "program.h"

struct thirds {
	__u32 first, second, third;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct thirds);
	__uint(max_entries, ENTRIES);
} thirds SEC(".maps") TAG("pisa:register") TAG("pisa:stage=0") TAG("pisa:arrays=third_a,third_b,third_c");

PROGRAM(words_too_narrow)
{
	struct thirds *t = reg_at(thirds, index_a(phv)); /* want: 3 element-width thirds */

	if (t)
		reg_store(&t->third, phv->seq);
}
