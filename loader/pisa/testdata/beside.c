// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arrays that stand side by side in one map: each keeps rules 1 to 4 by itself. */
#include "program.h"

REGISTERS(quads, 1, __u64, ENTRIES, 4, "quad_a,quad_b,quad_c,quad_d");
REGISTER(late, 2, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

PROGRAM(each_by_itself)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u64 b;

	if (!q)
		return;
	reg_add(&q->of[0], 1);
	b = reg_load(&q->of[1]);
	if (b != phv->seq)
		reg_store(&q->of[1], phv->seq);
	reg_swap(&q->of[2], phv->ack);
}

/* What all of them hold is known behind their stage. */
PROGRAM(sum_for_the_next_stage)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u32 *l;

	if (!q)
		return;
	l = reg_at(late, (reg_load(&q->of[0]) + reg_load(&q->of[1]) + reg_load(&q->of[3])) & (ENTRIES - 1));
	if (l)
		reg_add(l, 1);
}

/* They are four arrays: a packet may ask them at different places. */
PROGRAM(at_two_places)
{
	struct quads_t *q = reg_at(quads, index_a(phv)), *r = reg_at(quads, index_b(phv));

	if (!q || !r)
		return;
	reg_add(&q->of[0], 1);
	reg_add(&r->of[1], 1);
}

/* On paths that exclude each other, another one is written. */
PROGRAM(one_of_them_by_the_packet)
{
	struct quads_t *q = reg_at(quads, index_a(phv));

	if (!q)
		return;
	if (phv->len > 200)
		reg_add(&q->of[0], 1);
	else
		reg_store(&q->of[3], phv->seq);
}

PROGRAM(second_element_of_one)
{
	struct quads_t *q = reg_at(quads, index_a(phv)), *r = reg_at(quads, index_b(phv));

	if (!q || !r)
		return;
	reg_add(&q->of[1], 1);
	reg_add(&r->of[1], 1); /* want: 2 second-access quad_b */
}

/* When the first pointer is gone, and its ways have met. */
PROGRAM(second_element_of_one_later)
{
	struct quads_t *q = reg_at(quads, phv->seq);

	if (q)
		reg_add(&q->of[1], 1);
	q = reg_at(quads, phv->ack);
	if (q)
		reg_add(&q->of[1], 1); /* want: 2 second-access quad_b */
}

PROGRAM(written_twice)
{
	struct quads_t *q = reg_at(quads, index_a(phv));

	if (!q)
		return;
	reg_store(&q->of[2], phv->seq);
	reg_add(&q->of[3], 1);
	reg_add(&q->of[2], 1); /* want: 2 second-access quad_c */
}

PROGRAM(value_from_the_neighbour)
{
	struct quads_t *q = reg_at(quads, index_a(phv));

	if (q)
		reg_store(&q->of[1], reg_load(&q->of[0]) + 1); /* want: 1 same-stage quad_b */
}

PROGRAM(decision_of_the_neighbour)
{
	struct quads_t *q = reg_at(quads, index_a(phv));

	if (q && reg_load(&q->of[3]) == phv->seq)
		reg_add(&q->of[0], 1); /* want: 1 same-stage quad_a */
}

PROGRAM(index_from_the_neighbour)
{
	struct quads_t *q = reg_at(quads, index_a(phv)), *r;

	if (!q)
		return;
	r = reg_at(quads, reg_load(&q->of[0]) & (ENTRIES - 1));
	if (r)
		reg_add(&r->of[2], 1); /* want: 1 same-stage quad_c */
}

PROGRAM(behind_a_later_stage)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u32 *l = reg_at(late, index_a(phv));

	if (!q || !l)
		return;
	reg_add(&q->of[0], 1);
	reg_add(l, 1);
	reg_add(&q->of[1], 1); /* want: 1 stage-order quad_b */
}

/* Four arrays are no array with four places. */
PROGRAM(chosen_by_the_packet)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u32 at = phv->len & 3;

	opaque(at);
	if (q)
		reg_add(&q->of[at & 3], 1); /* want: 2 unfollowed quad_a */
}

PROGRAM(pointer_to_one_or_the_other)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u64 *word;

	if (!q)
		return;
	word = phv->len > 200 ? &q->of[0] : &q->of[1];
	opaque(word);
	reg_add(word, 1); /* want: 2 unfollowed quad_a */
}

PROGRAM(all_at_once)
{
	__u32 key = index_a(phv);
	struct quads_t all = {{phv->seq, 1, 2, 3}};

	bpf_map_update_elem(&quads, &key, &all, 0); /* want: 2 second-access quad_a */
}

PROGRAM(all_into_a_report)
{
	struct quads_t *q = reg_at(quads, index_a(phv));

	if (q)
		bpf_ringbuf_output(&reports, q, sizeof(*q), 0); /* want: 2 unfollowed quad_a */
}

/* Three conditions on one of them; those on another are not its own, but they lie in between. */
PROGRAM(conditions_in_between)
{
	struct quads_t *q = reg_at(quads, index_a(phv));
	__u64 a;

	if (!q)
		return;
	a = reg_load(&q->of[0]);
	if (phv->len > 100)
		reg_add(&q->of[1], 1);
	if (phv->seq > 100)
		reg_add(&q->of[2], 1);
	if (phv->ack > 100)
		reg_store(&q->of[0], a + 1); /* want: 4 conditions quad_a */
}
