// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Elements that are handed to helpers are touched, and what they hold goes where the helper puts it. */
#include "program.h"

REGISTER(early, 1, __u32, ENTRIES);
REGISTER(beside, 1, __u32, ENTRIES);
REGISTER(late, 2, __u32, ENTRIES);
TALLY(sums, 3, __u32, ENTRIES);
REGISTER(last, 4, __u32, ENTRIES);
COUNTERS(counts, 4);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

PROGRAM(value_of_an_update)
{
	__u32 *e = reg_at(early, index_a(phv)), key = index_a(phv);

	if (e)
		bpf_map_update_elem(&beside, &key, e, BPF_ANY); /* want: 1 same-stage beside */
}

PROGRAM(value_of_an_update_as_a_second_access)
{
	__u32 *e = reg_at(early, index_a(phv)), *f = reg_at(early, index_b(phv)), key = index_a(phv);

	if (!e || !f)
		return;
	reg_add(e, 1);
	bpf_map_update_elem(&late, &key, f, BPF_ANY); /* want: 2 second-access early */
}

PROGRAM(value_of_an_update_behind_its_write)
{
	__u32 *e = reg_at(early, index_a(phv)), key = index_a(phv);

	if (!e)
		return;
	reg_add(e, 1);
	bpf_map_update_elem(&late, &key, e, BPF_ANY); /* want: 2 second-access early */
}

PROGRAM(value_of_an_update_out_of_order)
{
	__u32 *e = reg_at(early, index_a(phv)), *l = reg_at(late, index_a(phv)), key = index_a(phv);

	if (!e || !l)
		return;
	reg_add(l, 1);
	bpf_map_update_elem(&sums, &key, e, BPF_ANY); /* want: 1 stage-order early */
}

PROGRAM(key_of_an_update)
{
	__u32 *e = reg_at(early, index_a(phv)), one = 1;

	if (e)
		bpf_map_update_elem(&beside, e, &one, BPF_ANY); /* want: 1 same-stage beside */
}

PROGRAM(flags_of_an_update)
{
	__u32 *e = reg_at(early, index_a(phv)), key = index_a(phv), one = 1;

	if (e)
		bpf_map_update_elem(&beside, &key, &one, reg_load(e) & 1); /* want: 1 same-stage beside */
}

PROGRAM(tally_as_the_value_of_an_update)
{
	__u32 *s = reg_bank(sums, phv, index_a(phv)), key = index_a(phv);

	if (s)
		bpf_map_update_elem(&last, &key, s, BPF_ANY); /* want: 1 flow-state sums */
}

PROGRAM(counter_as_the_value_of_an_update)
{
	struct counts_t *c = counters_of(counts, phv);
	__u32 key = index_a(phv);

	if (c)
		bpf_map_update_elem(&late, &key, c, BPF_ANY); /* want: 1 flow-state counts */
}

PROGRAM(counter_through_a_checksum)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c && bpf_csum_diff(0, 0, (__be32 *)c, 16, 0) & 1) /* want: 1 flow-state counts */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(counter_into_the_packet)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		bpf_xdp_store_bytes(ctx, 0, c, 8); /* want: 1 flow-state counts */
}

PROGRAM(checksum_behind_a_write)
{
	__u32 *e = reg_at(early, index_a(phv));

	if (!e)
		return;
	reg_add(e, 1);
	phv->ep_src = bpf_csum_diff(0, 0, e, 4, 0); /* want: 2 second-access early */
}

PROGRAM(checksum_of_two)
{
	__u32 *e = reg_at(early, index_a(phv)), *f = reg_at(early, index_b(phv));

	if (e && f)
		phv->ep_src = bpf_csum_diff(e, 4, f, 4, 0); /* want: 2 second-access early */
}

PROGRAM(report_of_a_second_element)
{
	__u32 *e = reg_at(early, index_a(phv)), *f = reg_at(early, index_b(phv));

	if (!e || !f)
		return;
	reg_add(e, 1);
	bpf_ringbuf_output(&reports, f, 4, 0); /* want: 2 second-access early */
}

PROGRAM(element_through_the_packet)
{
	__u32 *e = reg_at(early, index_a(phv)), *b = reg_at(beside, index_a(phv)), back = 0;

	if (!e || !b)
		return;
	bpf_xdp_store_bytes(ctx, 0, e, 4);
	bpf_xdp_load_bytes(ctx, 0, &back, 4);
	reg_store(b, back); /* want: 1 same-stage beside */
}

PROGRAM(loaded_into_an_element)
{
	__u32 *e = reg_at(early, index_a(phv));

	if (e)
		bpf_xdp_load_bytes(ctx, 0, e, 4); /* want: 2 unfollowed early */
}

struct visit {
	__u32 *element;
};

static long add_one(__u32 i, struct visit *visit)
{
	if (visit->element)
		reg_add(visit->element, 1); /* want: 2 second-access early in:element_behind_a_callback */
	return 0;
}

/* The element goes to the callback behind a pointer. */
PROGRAM(element_behind_a_callback)
{
	struct visit visit = {.element = reg_at(early, index_a(phv))};

	bpf_loop(2, add_one, &visit, 0);
}
