// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory that this packet has not written: what an earlier one left there would be state without a register. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);
REGISTER(later, 1, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__type(value, __u32);
	__uint(max_entries, 16);
} queue SEC(".maps") TAG("pisa:table");

/* A word of the stack that nobody has written, as the compiler never lets C read it. */
#define unwritten(off)                                                                                \
	({                                                                                            \
		__u32 word_;                                                                          \
		asm volatile("%0 = *(u32 *)(r10 - " #off ")" : "=r"(word_));                          \
		word_;                                                                                \
	})

PROGRAM(old_packet_at_a_bad_offset)
{
	__u32 word;

	bpf_xdp_load_bytes(ctx, 1 << 20, &word, sizeof(word));
	if (word == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(old_packet_as_an_index)
{
	__u32 word, *f;

	bpf_xdp_load_bytes(ctx, phv->len, &word, sizeof(word));
	f = reg_at(flows, word & (ENTRIES - 1)); /* want: 1 flow-state - */
	if (f)
		reg_add(f, 1);
}

PROGRAM(old_packet_where_it_failed)
{
	__u32 word;

	if (bpf_xdp_load_bytes(ctx, phv->len, &word, sizeof(word)) && word == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(old_packet_into_a_register)
{
	__u32 word, *f = reg_at(flows, index_a(phv));

	bpf_xdp_load_bytes(ctx, phv->len, &word, sizeof(word));
	if (f)
		reg_store(f, word); /* want: 1 flow-state - */
}

PROGRAM(more_than_was_loaded)
{
	__u32 words[2];

	if (bpf_xdp_load_bytes(ctx, 0, words, 4))
		return;
	if (READ_ONCE(words[1]) == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(as_much_as_the_packet_says)
{
	__u32 words[4], size = phv->payload & 15;

	if (bpf_xdp_load_bytes(ctx, 0, words, size))
		return;
	if (READ_ONCE(words[3]) == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(loaded_on_one_path)
{
	__u32 word;

	if (phv->len > 100 && bpf_xdp_load_bytes(ctx, 0, &word, sizeof(word)))
		return;
	opaque(phv);
	if (READ_ONCE(word) == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(head_of_an_empty_queue)
{
	__u32 head;

	bpf_map_peek_elem(&queue, &head);
	if (head == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(stack_decides)
{
	if (unwritten(200) == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(whole_word_of_the_stack_decides)
{
	__u64 word;

	asm volatile("%0 = *(u64 *)(r10 - 200)" : "=r"(word));
	if (word & 1) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(stack_as_an_index)
{
	__u32 *f = reg_at(flows, unwritten(200) & (ENTRIES - 1)); /* want: 1 flow-state - */

	if (f)
		reg_add(f, 1);
}

PROGRAM(stack_into_the_vector)
{
	phv->verdict = unwritten(200); /* want: 1 flow-state - */
}

PROGRAM(stack_into_the_packet)
{
	__u32 word = unwritten(200);

	bpf_xdp_store_bytes(ctx, 0, &word, sizeof(word)); /* want: 1 flow-state - */
}

PROGRAM(stack_into_a_register)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (f)
		reg_store(f, unwritten(200)); /* want: 1 flow-state - */
}

PROGRAM(stack_through_a_checksum)
{
	__u64 at;

	asm volatile("%0 = r10\n\t%0 += -200" : "=r"(at));
	if (bpf_csum_diff(0, 0, (void *)at, 16, 0) == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(stack_as_the_value_of_an_update)
{
	__u32 key = index_a(phv);
	__u64 at;

	asm volatile("%0 = r10\n\t%0 += -200" : "=r"(at));
	bpf_map_update_elem(&flows, &key, (void *)at, BPF_ANY); /* want: 1 flow-state - */
}

PROGRAM(stack_as_rounds)
{
	__u32 n = unwritten(200) & 7, sum = 0;

#pragma nounroll
	for (__u32 i = 0; i < n; i++) /* want: 1 flow-state - */
		sum = (sum << 1) ^ i;
	phv->ep_src = sum;
}

PROGRAM(record_decides)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0);

	if (!r)
		return;
	if (*r == phv->seq) /* want: 1 flow-state reports */
		r[1] = 1;
	bpf_ringbuf_submit(r, 0);
}

PROGRAM(record_through_a_checksum)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0), sum;

	if (!r)
		return;
	sum = bpf_csum_diff(0, 0, r, 64, 0); /* want: 1 flow-state reports */
	bpf_ringbuf_discard(r, 0);
	phv->ep_src = sum;
}

PROGRAM(record_as_the_value_of_an_update)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0), key = 0;

	if (!r)
		return;
	bpf_map_update_elem(&flows, &key, r, BPF_ANY); /* want: 1 flow-state reports */
	bpf_ringbuf_discard(r, 0);
}

PROGRAM(record_into_the_packet)
{
	__u32 *r = bpf_ringbuf_reserve(&reports, 64, 0);

	if (!r)
		return;
	bpf_xdp_store_bytes(ctx, 0, r, 16); /* want: 1 flow-state reports */
	bpf_ringbuf_discard(r, 0);
}

/* A word that the packet writes itself is its own again. Accepted. */
PROGRAM(written_before)
{
	__u32 word = 0;

	bpf_xdp_load_bytes(ctx, phv->len, &word, sizeof(word));
	if (word == phv->seq)
		phv->verdict = VERDICT_DROP;
}
