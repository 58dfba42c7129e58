// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arrays of several stages side by side in one map, the words of a record: each keeps rules 1 to 4 by itself. */
#include "program.h"

REGISTERS_PERCPU_BANKED(rows, __u64, ENTRIES, 3, "row_count@3,row_first@1,row_then@2");
REGISTERS_PERCPU_BANKED(others, __u64, ENTRIES, 2, "other_first@2,other_count@4");

#define ROW(map, index) ((__u64 *)reg_bank(map, phv, index))

/* Two records, each compared word by word in the order of stages, and counted behind. */
PROGRAM(words_in_their_order)
{
	__u64 *a = ROW(rows, index_a(phv)), *b = ROW(others, index_b(phv)), first, then, other;

	if (!a || !b)
		return;
	first = reg_load(&a[1]) ^ phv->seq;
	then = reg_load(&a[2]) ^ phv->ack;
	other = reg_load(&b[0]) ^ phv->seq;
	if (!(first | then))
		reg_store(&a[0], reg_load(&a[0]) + 1);
	else if (!other)
		reg_store(&b[1], reg_load(&b[1]) + 1);
}

/* A word of a later stage is written by what one of an earlier stage said. */
PROGRAM(value_from_the_stage_before)
{
	__u64 *a = ROW(rows, index_a(phv));

	if (a)
		reg_store(&a[2], reg_load(&a[1]) + 1);
}

/* Each word at a place of its own. */
PROGRAM(at_places_of_their_own)
{
	__u64 *a = ROW(rows, index_a(phv)), *b = ROW(rows, index_b(phv));

	if (!a || !b)
		return;
	reg_store(&a[1], phv->seq);
	reg_store(&b[2], phv->seq);
	reg_store(&a[0], phv->seq);
}

PROGRAM(count_before_the_key)
{
	__u64 *a = ROW(rows, index_a(phv));

	if (!a)
		return;
	reg_store(&a[0], reg_load(&a[0]) + 1);
	reg_store(&a[1], phv->seq); /* want: 1 stage-order row_first */
}

PROGRAM(key_goes_on_behind_the_count)
{
	__u64 *a = ROW(rows, index_a(phv)), first;

	if (!a)
		return;
	first = reg_load(&a[1]);
	reg_store(&a[0], first);
	reg_store(&a[1], phv->seq); /* want: 2 late-access row_first */
}

PROGRAM(same_word_of_two_records)
{
	__u64 *a = ROW(rows, index_a(phv)), *b = ROW(rows, index_b(phv));

	if (!a || !b)
		return;
	reg_store(&a[2], phv->seq);
	reg_store(&b[2], phv->seq); /* want: 2 second-access row_then */
}

/* The second record is looked up when the stage of the map's first array is over: it is the second nevertheless. */
PROGRAM(second_record_behind_a_stage)
{
	__u64 *a = ROW(others, index_a(phv)), *m = ROW(rows, index_a(phv)), *b;

	if (!a || !m)
		return;
	reg_store(&m[0], phv->seq);
	b = ROW(others, index_b(phv));
	if (!b)
		return;
	reg_load(&a[1]);
	reg_store(&b[1], 1); /* want: 2 second-access other_count */
}

/* ... and so when nothing of it was looked up before. */
PROGRAM(both_records_behind_a_stage)
{
	__u64 *m = ROW(rows, index_a(phv)), *a, *b;

	if (!m)
		return;
	reg_store(&m[0], phv->seq);
	a = ROW(others, index_a(phv));
	b = ROW(others, index_b(phv));
	if (!a || !b)
		return;
	reg_load(&a[1]);
	reg_store(&b[1], 1); /* want: 2 second-access other_count */
}

/* Whichever of them it was. */
PROGRAM(one_of_two_records)
{
	__u64 *a = ROW(others, index_a(phv)), *m = ROW(rows, index_a(phv)), *b, *which;

	if (!a || !m)
		return;
	reg_store(&m[0], phv->seq);
	b = ROW(others, index_b(phv));
	if (!b)
		return;
	which = phv->len > 200 ? a : b;
	opaque(which);
	reg_load(&which[1]);
	reg_store(&a[1], 1); /* want: 2 second-access other_count */
}

PROGRAM(second_record_by_branches)
{
	__u64 *a = ROW(rows, index_a(phv)), *b;

	if (!a)
		return;
	reg_store(&a[1], phv->seq);
	b = phv->len > 200 ? ROW(rows, index_b(phv)) : 0;
	if (b)
		reg_store(&b[2], 1);
	reg_store(&a[2], 1); /* want: 2 second-access row_then */
}

/* The stage of one word is no excuse for its neighbour in another map. */
PROGRAM(neighbour_of_the_same_stage)
{
	__u64 *a = ROW(rows, index_a(phv)), *b = ROW(others, index_b(phv));

	if (!a || !b)
		return;
	reg_store(&b[0], reg_load(&a[2])); /* want: 1 same-stage other_first */
}

PROGRAM(stages_of_two_records_mixed_up)
{
	__u64 *a = ROW(rows, index_a(phv)), *b = ROW(others, index_b(phv));

	if (!a || !b)
		return;
	reg_store(&b[1], phv->seq);
	reg_store(&a[0], phv->seq); /* want: 1 stage-order row_count */
}

PROGRAM(word_chosen_by_the_packet)
{
	__u64 *a = ROW(rows, index_a(phv));
	__u32 at = phv->len & 1;

	opaque(at);
	if (a)
		reg_store(&a[1 + (at & 1)], 1); /* want: 2 unfollowed row_count */
}

PROGRAM(conditions_of_a_word)
{
	__u64 *a = ROW(rows, index_a(phv)), first;

	if (!a)
		return;
	first = reg_load(&a[1]);
	if (phv->seq > 100 && phv->ack > 100 && phv->len > 100)
		reg_store(&a[1], first + 1); /* want: 4 conditions row_first */
}

PROGRAM(product_of_a_word)
{
	__u64 *a = ROW(rows, index_a(phv));

	if (a)
		reg_store(&a[2], reg_load(&a[2]) * phv->seq); /* want: 4 arithmetic row_then */
}
