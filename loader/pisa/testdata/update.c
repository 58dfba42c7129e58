// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 4: what a stateful unit can calculate between reading and writing. */
#include "program.h"

struct pair {
	__u32 key, time;
};

REGISTER(flows, 0, struct pair, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} filters SEC(".maps") TAG("pisa:register") TAG("pisa:stage=1") TAG("pisa:lpf");

PROGRAM(three_conditions)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 key, time;

	if (!p)
		return;
	key = reg_load(&p->key);
	time = reg_load(&p->time);
	if (key == 0 || (phv->ack - time > 1000 && key != phv->seq))
		reg_store(&p->key, phv->seq); /* want: 4 conditions flows */
}

/* One on the short way to the write, three on the long one, whichever the compiler puts first. */
PROGRAM(three_conditions_on_the_long_way)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 time, mark = 0;

	if (!p)
		return;
	time = reg_load(&p->time);
	if (phv->len > 100) {
		if (phv->sport > 1000 && phv->dport > 1000)
			mark = 1;
		opaque(mark);
	}
	phv->carry[0] = mark;
	reg_store(&p->time, time + 1); /* want: 4 conditions flows */
}

PROGRAM(three_conditions_on_the_other_way)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 time, mark = 0;

	if (!p)
		return;
	time = reg_load(&p->time);
	if (phv->len <= 100) {
		opaque(mark);
	} else {
		if (phv->sport > 1000 && phv->dport > 1000)
			mark = 1;
		opaque(mark);
	}
	phv->carry[0] = mark;
	reg_store(&p->time, time + 1); /* want: 4 conditions flows */
}

/* Two on each path, three in the whole operation. */
PROGRAM(three_conditions_on_two_paths)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 key;

	if (!p)
		return;
	key = reg_load(&p->key);
	if (key > phv->seq) {
		if (key & 0x10000)
			reg_store(&p->key, phv->seq);
	} else {
		if (key & 0x20)
			reg_store(&p->key, phv->ack); /* want: 4 conditions flows */
	}
}

PROGRAM(product)
{
	struct pair *p = reg_at(flows, index_a(phv));

	if (p)
		reg_store(&p->time, reg_load(&p->time) * 7 + phv->len); /* want: 4 arithmetic flows */
}

PROGRAM(quotient)
{
	struct pair *p = reg_at(flows, index_a(phv));

	if (p)
		reg_store(&p->time, reg_load(&p->time) / (phv->len | 1)); /* want: 4 arithmetic flows */
}

PROGRAM(product_in_a_condition)
{
	struct pair *p = reg_at(flows, index_a(phv));

	if (p && reg_load(&p->time) * phv->len > 1000000)
		reg_store(&p->time, 0); /* want: 4 arithmetic flows */
}

/* Accepted: the low-pass filter is a primitive of the switch. */
PROGRAM(low_pass)
{
	__u32 *f = reg_at(filters, index_a(phv));
	__u32 old;

	if (!f)
		return;
	old = reg_load(f);
	reg_store(f, old + phv->len - old * 3 / 16);
}

/* Accepted: the product is calculated behind the write. */
PROGRAM(product_behind_the_write)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 old;

	if (!p)
		return;
	old = reg_load(&p->time);
	reg_store(&p->time, old + phv->len);
	if (old * phv->len > 1000000)
		phv->verdict = VERDICT_DROP;
}

/* Accepted: three conditions, one of them in front of the access. */
PROGRAM(condition_in_front)
{
	struct pair *p = reg_at(flows, index_a(phv));
	__u32 key;

	if (!p || phv->len < 100)
		return;
	key = reg_load(&p->key);
	if (key == 0 || phv->ack - key > 1000)
		reg_store(&p->key, phv->seq);
}
