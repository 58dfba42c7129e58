// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What packets share without a register: room in a ring, passes in the budget. Their answers decide nothing else. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);
TABLE(rules, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

static __always_inline struct recirc_budget_t *budget_of(struct phv *phv)
{
	return reg_at(recirc_budget, (phv->next - 1) & (CHAIN_SLOTS - 1));
}

PROGRAM(full_ring_is_the_verdict)
{
	if (bpf_ringbuf_output(&reports, &phv->len, 4, 0))
		phv->verdict = VERDICT_DROP; /* want: 1 flow-state reports */
}

PROGRAM_TC(full_ring_drops) /* want: 1 flow-state reports */
{
	__u32 word = phv->seq;

	if (bpf_ringbuf_output(&reports, &word, 4, 0))
		return TC_DROP;
	return TC_NEXT;
}

PROGRAM(full_ring_is_counted_in_a_register)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (f && bpf_ringbuf_output(&reports, &phv->len, 4, 0))
		reg_add(f, 1); /* want: 1 flow-state reports */
}

PROGRAM(full_ring_as_an_index)
{
	__u32 *f = reg_at(flows, bpf_ringbuf_output(&reports, &phv->len, 4, 0) & 1);

	if (f)
		reg_add(f, 1); /* want: 1 flow-state reports */
}

PROGRAM(no_record_ends_the_chain)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0);

	if (!r)
		return;
	r[0] = phv->seq;
	bpf_ringbuf_submit(r, 0);
	NEXT(); /* want: 1 flow-state reports */
}

PROGRAM(no_record_into_the_packet)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0), one = 1;

	if (!r)
		return;
	bpf_ringbuf_discard(r, 0);
	bpf_xdp_store_bytes(ctx, 0, &one, 4); /* want: 1 flow-state reports */
}

PROGRAM(budget_is_the_verdict)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b && b->left & 1)
		phv->verdict = VERDICT_DROP; /* want: 1 flow-state recirc_budget */
}

PROGRAM(budget_as_a_number)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		phv->now = b->left; /* want: 1 flow-state recirc_budget */
}

PROGRAM(budget_decides_an_access)
{
	struct recirc_budget_t *b = budget_of(phv);
	__u32 *f = reg_at(flows, index_a(phv));

	if (b && f && b->refused > 100)
		reg_add(f, 1); /* want: 1 flow-state recirc_budget */
}

PROGRAM(budget_as_an_index)
{
	struct recirc_budget_t *b = budget_of(phv);
	__u32 *f;

	if (!b)
		return;
	f = reg_at(flows, b->left & (ENTRIES - 1));
	if (f)
		reg_add(f, 1); /* want: 1 flow-state recirc_budget */
}

PROGRAM(budget_into_the_packet)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		bpf_xdp_store_bytes(ctx, 0, b, 8); /* want: 1 flow-state recirc_budget */
}

PROGRAM(budget_ends_the_chain)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (!b || b->left < 4)
		return;
	NEXT(); /* want: 1 flow-state recirc_budget */
}

/* A budget for every flow is a Bloom filter. */
PROGRAM(budget_of_the_flow)
{
	struct recirc_budget_t *b = reg_at(recirc_budget, phv->seq & (CHAIN_SLOTS - 1)); /* want: 1 flow-state recirc_budget */

	if (b)
		b->left += b->earn;
}

PROGRAM(budget_of_another_slot)
{
	struct recirc_budget_t *b = reg_at(recirc_budget, phv->next & (CHAIN_SLOTS - 1)); /* want: 1 flow-state recirc_budget */

	if (b)
		b->left += b->earn;
}

PROGRAM(share_of_the_budget)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		b->earn = b->left; /* want: 1 flow-state recirc_budget */
}

PROGRAM(granted_is_set)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		b->granted = b->left; /* want: 1 flow-state recirc_budget */
}

PROGRAM(flow_in_what_is_left)
{
	struct recirc_budget_t *b = budget_of(phv);

	if (b)
		b->left = phv->seq; /* want: 1 flow-state recirc_budget */
}

PROGRAM(table_in_what_is_left)
{
	struct recirc_budget_t *b = budget_of(phv);
	__u32 *r = reg_at(rules, index_a(phv));

	if (b && r)
		b->left -= *r; /* want: 1 flow-state recirc_budget */
}

PROGRAM(register_in_what_is_left)
{
	struct recirc_budget_t *b = budget_of(phv);
	__u32 *f = reg_at(flows, index_a(phv));

	if (b && f)
		b->left -= reg_load(f); /* want: 1 flow-state recirc_budget */
}
