// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 2: one read-modify-write of one element. */
#include "program.h"

struct pair {
	__u32 key, count;
};

REGISTER(flows, 1, __u32, ENTRIES);
REGISTER(pairs, 1, struct pair, ENTRIES);
REGISTER(later, 2, __u32, ENTRIES);

PROGRAM(second_in_a_branch)
{
	__u32 *a = reg_at(flows, index_a(phv)), *b;

	if (!a)
		return;
	reg_add(a, 1);
	if (phv->len > 1000) {
		b = reg_at(flows, index_a(phv) ^ 1);
		if (b)
			reg_add(b, 1); /* want: 2 second-access flows */
	}
}

PROGRAM(second_behind_a_loop)
{
	__u32 *a;

#pragma nounroll
	for (__u32 i = 0; i < phv->segs && i < 8; i++) {
		a = reg_at(flows, index_a(phv) + i);
		if (a)
			reg_add(a, 1); /* want: 2 second-access flows */
	}
}

PROGRAM(two_indices)
{
	__u32 *a = reg_at(flows, index_a(phv)), *b = reg_at(flows, index_b(phv));
	__u32 seen;

	if (!a || !b)
		return;
	seen = reg_load(a);
	reg_store(b, seen); /* want: 2 second-access flows */
}

PROGRAM(same_index_again)
{
	__u32 *a = reg_at(flows, index_a(phv)), *b;

	if (!a)
		return;
	reg_add(a, 1);
	b = reg_at(flows, index_a(phv));
	if (b && reg_load(b) > 5) /* want: 2 second-access flows */
		phv->verdict = VERDICT_DROP;
}

/* The pointers stay in memory: the proof has to follow them there. */
PROGRAM(behind_a_spilled_pointer)
{
	__u32 *volatile first = reg_at(flows, index_a(phv));
	__u32 *volatile second = reg_at(flows, index_b(phv));
	__u32 *p;

	p = first;
	if (!p)
		return;
	reg_add(p, 1);
	p = second;
	if (p)
		reg_add(p, 1); /* want: 2 second-access flows */
}

static __noinline void charge(__u32 *element, __u32 by)
{
	if (element)
		reg_add(element, by); /* want: 2 second-access flows in:in_a_subprogram */
}

PROGRAM(in_a_subprogram)
{
	charge(reg_at(flows, index_a(phv)), 1);
	charge(reg_at(flows, index_b(phv)), 1);
}

static long visit(__u64 i, void *ctx)
{
	__u32 *a = reg_at(flows, (__u32)i & (ENTRIES - 1));

	if (a)
		reg_add(a, 1); /* want: 2 second-access flows in:in_a_callback */
	return 0;
}

PROGRAM(in_a_callback)
{
	bpf_loop(4, visit, 0, 0);
}

static long visit_nothing(__u64 i, __u32 *sum)
{
	*sum += i;
	return 0;
}

PROGRAM(behind_a_callback)
{
	__u32 *a = reg_at(flows, index_a(phv));
	__u32 sum = 0;

	if (a)
		reg_add(a, 1);
	bpf_loop(4, visit_nothing, &sum, 0);
	a = reg_at(flows, sum & (ENTRIES - 1));
	if (a)
		reg_add(a, 1); /* want: 2 second-access flows */
}

static long visit_all(void *map, __u32 *key, __u32 *value, void *ctx)
{
	reg_store(value, 0); /* want: 2 second-access flows in:in_all_elements */
	return 0;
}

PROGRAM(in_all_elements)
{
	bpf_for_each_map_elem(&flows, visit_all, 0, 0);
}

PROGRAM(update_behind_an_access)
{
	__u32 key = index_a(phv), value = 1;
	__u32 *a = reg_at(flows, key);

	if (a && reg_load(a) == 0)
		bpf_map_update_elem(&flows, &key, &value, BPF_ANY); /* want: 2 second-access flows */
}

/* As HashPipe: whether the key is replaced is only known behind the counter of the next stage. */
PROGRAM(write_waits_for_a_later_stage)
{
	struct pair *p = reg_at(pairs, index_a(phv));
	__u32 *n = reg_at(later, index_a(phv));
	__u32 key;

	if (!p || !n)
		return;
	key = reg_load(&p->key);
	if (reg_load(n) < 2 && key != phv->seq)
		reg_store(&p->key, phv->seq); /* want: 2 late-access pairs */
}

PROGRAM(read_waits_for_a_later_stage)
{
	struct pair *p = reg_at(pairs, index_a(phv));
	__u32 *n = reg_at(later, index_a(phv));

	if (!p || !n || reg_load(&p->key) != phv->seq)
		return;
	reg_add(n, 1);
	if (reg_load(&p->count) > 9) /* want: 2 late-access pairs */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(word_written_twice)
{
	struct pair *p = reg_at(pairs, index_a(phv));

	if (!p)
		return;
	reg_store(&p->key, phv->seq);
	reg_store(&p->count, 1);
	if (phv->len > 100)
		reg_store(&p->count, 2); /* want: 2 second-access pairs */
}

PROGRAM(word_read_behind_its_write)
{
	__u32 *a = reg_at(flows, index_a(phv));

	if (!a)
		return;
	reg_add(a, phv->len);
	if (reg_load(a) > 100000) /* want: 2 second-access flows */
		phv->verdict = VERDICT_DROP;
}

/* The usual retry of a compare-and-exchange is a second access to the hardware. */
PROGRAM(retried_exchange)
{
	__u32 *a = reg_at(flows, index_a(phv));
	__u32 old;

	if (!a)
		return;
	old = reg_cas(a, 0, phv->seq);
	if (old != 0)
		reg_cas(a, old, phv->seq); /* want: 2 second-access flows */
}

PROGRAM(handed_to_a_helper)
{
	__u32 *a = reg_at(flows, index_a(phv));

	if (a)
		bpf_xdp_load_bytes(ctx, 0, a, 4); /* want: 2 unfollowed flows */
}

/* A pointer to one of two arrays is followed on each path. */
PROGRAM(array_chosen_by_the_packet)
{
	__u32 *a = phv->proto == 6 ? reg_at(flows, index_a(phv)) : (__u32 *)reg_at(later, index_a(phv));
	__u32 *b;

	if (!a)
		return;
	reg_add(a, 1);
	b = reg_at(later, index_b(phv));
	if (b)
		reg_add(b, 1); /* want: 2 second-access later */
}
