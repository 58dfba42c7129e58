// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A generator's state is one number that moves on by invertible linear steps from itself or the kernel's numbers. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);
TABLE(rules, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} generator SEC(".maps") TAG("pisa:random");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

static __always_inline __u32 *state(void)
{
	return reg_at(generator, 0);
}

PROGRAM(moved_on_by_a_full_ring)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = *x ? *x : bpf_get_prandom_u32();
	next ^= next << 13;
	if (bpf_ringbuf_output(&reports, &phv->len, 4, 0))
		*x = next; /* want: 1 flow-state reports */
}

/* Packets of one kind are counted, and every hundredth is dropped. */
PROGRAM(packets_are_counted)
{
	__u32 *x = state();

	if (!x || phv->proto != 17)
		return;
	*x += 1; /* want: 1 flow-state generator */
	if (*x % 100 == 0)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(counted_behind_a_renewal)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = *x;
	if (next == 0x7fffffff)
		next = bpf_get_prandom_u32();
	if (phv->proto == 17)
		next++;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(congruential)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = *x ? *x : bpf_get_prandom_u32();
	*x = next * 69069 + 1; /* want: 1 flow-state generator */
}

/* A bit a packet is shifted in: the last 32 packets are remembered. */
PROGRAM(shifted)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = (*x & 1) ? *x : bpf_get_prandom_u32();
	*x = next << 1; /* want: 1 flow-state generator */
}

/* The next packet sees whether there was one of this kind. */
PROGRAM(set_to_a_constant_or_renewed)
{
	__u32 *x = state(), next = 77;

	if (!x || phv->proto != 17)
		return;
	if (phv->len > 1000)
		next = bpf_get_prandom_u32();
	opaque(next);
	next ^= next << 13;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(set_from_a_table_or_renewed)
{
	__u32 *x = state(), *r = reg_at(rules, index_a(phv)), next;

	if (!x || !r)
		return;
	next = *r ? *r : bpf_get_prandom_u32();
	next ^= next << 13;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(half_of_it_is_forgotten)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = phv->len > 100 ? *x >> 16 : bpf_get_prandom_u32();
	opaque(next);
	next ^= next << 13;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(cleared)
{
	__u32 *x = state();

	if (x && phv->proto == 17)
		*x = 0; /* want: 1 flow-state generator */
}

PROGRAM(never_renewed)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = *x;
	next ^= next << 13;
	next ^= next >> 17;
	next ^= next << 5;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(one_byte_of_it)
{
	__u32 *x = state();

	if (x)
		*(__u8 *)x = bpf_get_prandom_u32(); /* want: 1 flow-state generator */
}

PROGRAM(chosen_by_a_register)
{
	__u32 *x = state(), *f = reg_at(flows, index_a(phv)), next;

	if (!x || !f)
		return;
	next = *x;
	if (reg_load(f) == phv->seq)
		next = bpf_get_prandom_u32();
	opaque(next);
	next ^= next << 13;
	*x = next; /* want: 1 flow-state generator */
}

PROGRAM(flow_exclusive_ored)
{
	__u32 *x = state(), next;

	if (!x)
		return;
	next = *x ? *x : bpf_get_prandom_u32();
	*x = next ^ phv->seq; /* want: 1 flow-state generator */
}
