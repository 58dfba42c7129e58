// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 1: stages in increasing order, and nothing from one array into another of its stage. */
#include "program.h"

REGISTER(early, 1, __u32, ENTRIES);
REGISTER(beside, 1, __u32, ENTRIES);
REGISTER(late, 2, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} targets SEC(".maps") TAG("pisa:table");

PROGRAM(out_of_stage_order)
{
	__u32 *l = reg_at(late, index_a(phv)), *e;

	if (!l)
		return;
	reg_add(l, 1);
	e = reg_at(early, index_a(phv));
	if (e)
		reg_add(e, 1); /* want: 1 stage-order early */
}

/* Only packets of one kind take the wrong way. */
PROGRAM(out_of_order_on_one_path)
{
	__u32 *l = reg_at(late, index_a(phv)), *e = reg_at(early, index_a(phv));

	if (!l || !e)
		return;
	if (phv->tcp_flags & TCP_SYN)
		reg_add(l, 1);
	if (phv->len > 200)
		reg_add(e, 1); /* want: 1 stage-order early */
}

PROGRAM(index_from_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b;

	if (!e)
		return;
	b = reg_at(beside, reg_load(e) & (ENTRIES - 1));
	if (b)
		reg_add(b, 1); /* want: 1 same-stage beside */
}

PROGRAM(value_from_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));

	if (e && b)
		reg_store(b, reg_load(e) + 1); /* want: 1 same-stage beside */
}

PROGRAM(decision_in_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));

	if (!e || !b)
		return;
	if (reg_load(e) == phv->seq)
		reg_add(b, 1); /* want: 1 same-stage beside */
}

/* The number that is added is a constant on either side; which one it is, is what was read. */
PROGRAM(number_chosen_in_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 by = 1;

	if (!e || !b)
		return;
	if (reg_load(e) == phv->seq)
		by = 7;
	opaque(by);
	reg_add(b, by); /* want: 1 same-stage beside */
}

/* The same through memory, and with an early end on one side. */
PROGRAM(number_chosen_through_the_vector)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));

	if (!e || !b)
		return;
	phv->verdict = 0;
	if (reg_load(e) == phv->seq)
		phv->verdict = 1;
	opaque(b);
	reg_add(b, READ_ONCE(phv->verdict)); /* want: 1 same-stage beside */
}

PROGRAM(read_by_a_decision_in_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));

	if (!e || !b)
		return;
	if (reg_load(e) == phv->seq)
		phv->verdict = reg_load(b); /* want: 1 same-stage beside */
}

/* What was found out is remembered, where the paths have something else to tell them apart. */
PROGRAM(decision_remembered)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), *l = NULL;
	__u32 hit = 0;

	if (!e || !b)
		return;
	if (reg_load(e) == phv->seq) {
		hit = 1;
		l = reg_at(late, index_a(phv));
	}
	opaque(hit);
	if (!hit)
		phv->verdict = reg_load(b); /* want: 1 same-stage beside */
	if (l)
		reg_add(l, 1);
}

/* The same in the vector ... */
PROGRAM(decision_kept_in_the_vector)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), *l = NULL;

	if (!e || !b)
		return;
	WRITE_ONCE(phv->verdict, 0);
	if (reg_load(e) == phv->seq) {
		WRITE_ONCE(phv->verdict, 1);
		l = reg_at(late, index_a(phv));
	}
	if (!READ_ONCE(phv->verdict))
		phv->carry[0] = reg_load(b); /* want: 1 same-stage beside */
	if (l)
		reg_add(l, 1);
}

/* ... and in a pointer that is there or not. */
PROGRAM(decision_kept_in_a_pointer)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), *l = NULL;

	if (!e || !b)
		return;
	if (reg_load(e) == phv->seq)
		l = reg_at(late, index_a(phv));
	opaque(l);
	if (l)
		phv->verdict = reg_load(b); /* want: 1 same-stage beside */
}

PROGRAM(decision_by_what_is_configured)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 old;

	if (!e || !b)
		return;
	old = reg_load(e);
	if (bpf_map_lookup_elem(&targets, &old))
		reg_add(b, 1); /* want: 1 same-stage beside */
}

PROGRAM(number_read_on_one_path)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 by;

	if (!e || !b)
		return;
	by = reg_load(e);
	opaque(by);
	if (phv->len > 100)
		by = 1;
	opaque(by);
	reg_add(b, by); /* want: 1 same-stage beside */
}

PROGRAM(number_read_on_the_other_path)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 by = 1, old;

	if (!e || !b)
		return;
	old = reg_load(e);
	opaque(by);
	if (phv->len > 100)
		by = old;
	opaque(by);
	reg_add(b, by); /* want: 1 same-stage beside */
}

/* Accepted: what was read decides what happens one stage later, and an independent array is counted. */
PROGRAM(decision_for_the_next_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), *l;
	__u32 old;

	if (!e || !b)
		return;
	old = reg_load(e);
	if (old < phv->seq)
		reg_store(e, phv->seq);
	reg_add(b, 1);
	l = reg_at(late, old & (ENTRIES - 1));
	if (l && old != phv->seq)
		reg_add(l, old);
}

static __noinline __u32 classify(__u32 old)
{
	if (old > 1000)
		return 3;
	return old == 7;
}

/* Accepted: what a function has decided is over when it returns. */
PROGRAM(decision_inside_of_a_function)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), len = phv->len;
	__u32 class;

	if (!e || !b)
		return;
	class = classify(reg_load(e));
	reg_add(b, len);
	phv->verdict = class;
}

PROGRAM(result_of_a_function)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));

	if (e && b)
		reg_add(b, classify(reg_load(e))); /* want: 1 same-stage beside */
}

/* Through the packet, and through a checksum. */
PROGRAM(number_sent_through_the_packet)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 old, back = 0;

	if (!e || !b)
		return;
	old = reg_load(e);
	bpf_xdp_store_bytes(ctx, 0, &old, sizeof(old));
	bpf_xdp_load_bytes(ctx, 0, &back, sizeof(back));
	reg_add(b, back); /* want: 1 same-stage beside */
}

PROGRAM(number_sent_through_a_checksum)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 old;

	if (!e || !b)
		return;
	old = reg_load(e);
	reg_add(b, (__u32)bpf_csum_diff(0, 0, &old, sizeof(old), 0)); /* want: 1 same-stage beside */
}

static long stop_at(__u64 i, __u32 *old)
{
	return i > *old;
}

/* Only how often the callback was called depends on what was read. */
PROGRAM(rounds_decided_in_the_same_stage)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv));
	__u32 old;

	if (!e || !b)
		return;
	old = reg_load(e);
	reg_add(b, bpf_loop(100, stop_at, &old, 0)); /* want: 1 same-stage beside */
}
