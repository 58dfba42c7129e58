// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The vector between programs: what the second pass finds, what the chain goes on with, and who may write what. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);
REGISTER_BANKED(sums, 1, __u32, ENTRIES); /* who has a bank chooses none: bank.c */

static __always_inline int granted(struct phv *phv)
{
	struct recirc_budget_t *b = reg_at(recirc_budget, (phv->next - 1) & (CHAIN_SLOTS - 1));

	if (phv->pass != 0 || !b || b->left == 0)
		return 0;
	b->left--;
	return 1;
}

#define AGAIN() bpf_tail_call(ctx, &recirc_xdp, phv->next - 1)

PROGRAM(carry_that_nobody_wrote)
{
	if (second_pass(phv)) {
		phv->verdict = phv->carry[0]; /* want: 1 flow-state phv_scratch */
		return;
	}
	if (!granted(phv))
		return;
	phv->pass = 1;
	AGAIN();
}

PROGRAM(carry_written_in_half)
{
	if (second_pass(phv)) {
		phv->ep_src = phv->carry[0]; /* want: 1 flow-state phv_scratch */
		return;
	}
	if (!granted(phv))
		return;
	*(__u32 *)&phv->carry[0] = phv->seq;
	phv->pass = 1;
	AGAIN();
}

PROGRAM(other_word_of_carry)
{
	if (second_pass(phv)) {
		phv->ep_src = phv->carry[1]; /* want: 1 flow-state phv_scratch */
		return;
	}
	if (!granted(phv))
		return;
	phv->carry[0] = phv->seq;
	phv->pass = 1;
	AGAIN();
}

PROGRAM(carry_written_for_some)
{
	if (second_pass(phv)) {
		phv->ep_src = phv->carry[0]; /* want: 1 flow-state phv_scratch */
		return;
	}
	if (!granted(phv))
		return;
	if (phv->len > 100)
		phv->carry[0] = phv->seq;
	phv->pass = 1;
	AGAIN();
}

PROGRAM(carry_of_another_algorithm)
{
	if (phv->pass == 2)
		phv->verdict = phv->carry[0]; /* want: 1 flow-state phv_scratch */
}

PROGRAM(second_pass_that_is_none)
{
	phv->pass = 1;
	NEXT(); /* want: 5 recirculation chain_xdp */
}

/* The next algorithm would take the packet round once more. */
PROGRAM(pass_forgotten)
{
	if (!second_pass(phv) && granted(phv)) {
		phv->pass = 1;
		AGAIN();
	}
	phv->pass = 0;
	NEXT(); /* want: 5 recirculation chain_xdp */
}

PROGRAM(pass_left_as_it_is)
{
	if (!second_pass(phv) && granted(phv)) {
		phv->pass = 1;
		AGAIN();
	}
	NEXT(); /* want: 5 recirculation chain_xdp */
}

/* In its second pass the chain would begin anew. */
PROGRAM(next_taken_back)
{
	__u32 slot = phv->next - 1;
	struct recirc_budget_t *b = reg_at(recirc_budget, slot & (CHAIN_SLOTS - 1));

	phv->next = 0;
	if (phv->pass != 0 || !b || b->left == 0)
		return;
	b->left--;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, slot); /* want: 5 recirculation recirc_xdp */
}

/* Reading the control word does not make an entry program. */
PROGRAM(privileges_of_an_entry)
{
	__u32 zero = 0;
	__u64 *control = bpf_map_lookup_elem(&chain_control, &zero);

	if (control && *control && phv->tsval == phv->seq)
		phv->verdict = VERDICT_DROP;
	phv->tsval = phv->seq; /* want: 1 flow-state phv_scratch */
}

PROGRAM(chain_as_an_entry)
{
	__u32 zero = 0;
	__u64 *control = bpf_map_lookup_elem(&chain_control, &zero);

	if (!control)
		return;
	phv->next = 1;
	bpf_tail_call(ctx, &chain_xdp, 0); /* want: 5 chain chain_xdp */
}

PROGRAM(own_slot_behind_the_second_half)
{
	phv->next = phv->next;
	bpf_tail_call(ctx, &chain_xdp, phv->next + 255); /* want: 5 chain chain_xdp */
}

PROGRAM(chain_of_another_hook)
{
	__u32 slot = phv->next;

	phv->next = slot + 1;
	bpf_tail_call(ctx, &chain_tc, slot); /* want: 5 chain chain_tc */
}

PROGRAM(second_pass_of_another_hook)
{
	__u32 slot = phv->next - 1;

	if (!granted(phv))
		return;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_tc, slot); /* want: 5 chain recirc_tc */
}

PROGRAM(bank_of_the_packet)
{
	phv->bank ^= 1; /* want: 1 flow-state phv_scratch */
}

PROGRAM(end_of_the_chain)
{
	phv->end = phv->seq; /* want: 1 flow-state phv_scratch */
}

PROGRAM(coin_of_a_replay)
{
	phv->coin = phv->coin + 1; /* want: 1 flow-state phv_scratch */
}

PROGRAM(word_across_two_fields)
{
	*(__u64 *)&phv->bank = phv->seq; /* want: 1 flow-state phv_scratch */
}

/* The slice is for whoever knows it to write; what lies in front of it is not. */
PROGRAM(slice_and_what_is_before)
{
	*(__u32 *)&phv->queue = phv->seq; /* want: 1 flow-state phv_scratch */
}
