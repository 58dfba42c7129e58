// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 5: where a tail call may go. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2 * CHAIN_SLOTS);
} elsewhere SEC(".maps");

static __always_inline struct recirc_budget_t *budget_of(struct phv *phv)
{
	return reg_at(recirc_budget, (phv->next - 1) & (CHAIN_SLOTS - 1));
}

/* Nothing ends this: each pass asks for the next. */
PROGRAM(unbounded)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (!b || b->left == 0)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

PROGRAM(not_marked)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b || b->left == 0)
		return;
	b->left--;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

PROGRAM(mark_taken_off_first)
{
	struct recirc_budget_t *b = budget_of(phv);

	WRITE_ONCE(phv->pass, 0);
	if (READ_ONCE(phv->pass) != 0 || !b || b->left == 0)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

PROGRAM(no_budget)
{
	if (phv->pass != 0)
		return;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

/* The budget is looked at, and what it says makes no difference. */
PROGRAM(budget_ignored)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b)
		return;
	if (b->left == 0)
		b->refused++;
	else
		b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

PROGRAM(budget_on_one_path)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b)
		return;
	if (phv->len > 100) {
		if (b->left == 0)
			return;
		b->left--;
	}
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

/* Two of the ways to the call have asked, the third has not. */
PROGRAM(budget_on_two_of_three_paths)
{
	struct recirc_budget_t *b = budget_of(phv);
	__u32 mark = 0;

	if (phv->pass != 0 || !b)
		return;
	if (phv->len > 100) {
		if (b->left == 0)
			return;
		b->left--;
		if (phv->len > 200)
			goto marked;
	}
	mark = phv->seq;
	opaque(mark);
	phv->carry[0] = mark;
marked:
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1); /* want: 5 recirculation recirc_xdp */
}

PROGRAM(another_slot)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b || b->left == 0)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, 0); /* want: 5 recirculation recirc_xdp */
}

/* A budget that remembers flows is a register without a stage. */
PROGRAM(flow_in_the_budget)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		b->refused = phv->seq; /* want: 1 flow-state recirc_budget */
}

PROGRAM(own_slot_of_the_chain)
{
	bpf_tail_call(ctx, &chain_xdp, phv->next - 1); /* want: 5 chain chain_xdp */
}

PROGRAM(next_not_moved)
{
	bpf_tail_call(ctx, &chain_xdp, phv->next); /* want: 5 chain chain_xdp */
}

PROGRAM(chain_from_the_start)
{
	phv->next = 1;
	bpf_tail_call(ctx, &chain_xdp, 0); /* want: 5 chain chain_xdp */
}

/* A constant slot is a direct jump; it has to be the one that phv->next was found to name. */
PROGRAM(constant_slot)
{
	phv->next = phv->next + 1;
	bpf_tail_call(ctx, &chain_xdp, 3); /* want: 5 chain chain_xdp */
}

PROGRAM(constant_slot_of_another)
{
	__u32 slot = phv->next;

	if (slot != 2)
		return;
	phv->next = slot + 1;
	bpf_tail_call(ctx, &chain_xdp, 3); /* want: 5 chain chain_xdp */
}

/* The slot is a constant, and not the one that phv->next was found to follow. */
PROGRAM(constant_pass_of_another)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b || b->left == 0 || phv->next != 3)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, 3); /* want: 5 recirculation recirc_xdp */
}

/* ... and nothing was found about phv->next. */
PROGRAM(constant_pass)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b || b->left == 0)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, 2); /* want: 5 recirculation recirc_xdp */
}

/* Accepted: the program's own slot. */
PROGRAM(constant_pass_of_its_own)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (phv->pass != 0 || !b || b->left == 0 || phv->next != 3)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, 2);
}

PROGRAM(other_programs)
{
	bpf_tail_call(ctx, &elsewhere, 3); /* want: 5 chain elsewhere */
}

/* Accepted. */
PROGRAM(constant_slot_that_was_named)
{
	__u32 slot = phv->next;

	if (slot != 2)
		return;
	phv->next = slot + 1;
	bpf_tail_call(ctx, &chain_xdp, 2);
}

/* Accepted. */
PROGRAM(bounded)
{
	__u32 *f = reg_at(flows, index_a(phv));
	int wanted = 0;

	if (!f)
		return;
	if (second_pass(phv)) {
		reg_store(f, (__u32)phv->carry[0]);
	} else {
		wanted = reg_load(f) != phv->seq;
		phv->carry[0] = phv->seq;
	}
	recirculate(ctx, phv, &recirc_xdp, wanted);
	if (phv->pass)
		phv->pass = 2;
	chain_next(ctx, phv, &chain_xdp);
}
