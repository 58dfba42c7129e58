// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rule 1, the other side: what outlives a packet is in a register array. */
#include "program.h"
#include "prefix.h"

REGISTER(flows, 0, __u32, ENTRIES);
TALLY(sums, 1, __u32, ENTRIES);
COUNTERS(counts, 4);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, ENTRIES);
} recent SEC(".maps");

struct notes {
	__u32 last, seen;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct notes);
	__uint(max_entries, 1);
} notes SEC(".maps") TAG("pisa:scratch");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} rules SEC(".maps") TAG("pisa:table");

PREFIX_TABLE(networks, ENTRIES);

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} inner SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, __u32);
	__uint(max_entries, 2);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { &inner } };

__u32 last_seq;

static __always_inline struct notes *notes_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&notes, &zero);
}

PROGRAM(update_of_a_hash)
{
	__u32 key = phv->seq;
	__u64 now = clock_now(phv);

	bpf_map_update_elem(&recent, &key, &now, BPF_ANY); /* want: 1 flow-state recent */
}

PROGRAM(write_into_a_hash)
{
	__u32 key = phv->seq;
	__u64 *t = bpf_map_lookup_elem(&recent, &key);

	if (t)
		*t = clock_now(phv); /* want: 1 flow-state recent */
}

PROGRAM(state_in_scratch)
{
	struct notes *n = notes_get();

	if (!n)
		return;
	if (READ_ONCE(n->last) == phv->seq) /* want: 1 flow-state notes */
		phv->verdict = VERDICT_DROP;
	WRITE_ONCE(n->last, phv->seq);
}

PROGRAM(state_in_scratch_on_one_path)
{
	struct notes *n = notes_get();

	if (!n)
		return;
	if (phv->len > 100)
		WRITE_ONCE(n->seen, phv->seq);
	opaque(n);
	if (READ_ONCE(n->seen) == phv->ack) /* want: 1 flow-state notes */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(branch_on_a_counter)
{
	struct counts_t *c = counters_of(counts, phv);

	if (!c)
		return;
	c->c[0]++;
	if (c->c[0] & 1) /* want: 1 flow-state counts */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(counter_as_an_index)
{
	struct counts_t *c = counters_of(counts, phv);
	__u32 *f;

	if (!c)
		return;
	f = reg_at(flows, c->c[1] & (ENTRIES - 1)); /* want: 1 flow-state counts */
	if (f)
		reg_add(f, 1);
}

PROGRAM(counter_that_is_set)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		c->c[2] = phv->seq; /* want: 1 flow-state counts */
}

PROGRAM(counter_set_to_another)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		c->c[2] = c->c[1] + 1; /* want: 1 flow-state counts */
}

PROGRAM(counter_added_to_another)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		c->c[2] += c->c[1]; /* want: 1 flow-state counts */
}

PROGRAM(counter_added_to_another_at_once)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		__sync_fetch_and_add(&c->c[2], c->c[1]); /* want: 1 flow-state counts */
}

PROGRAM(counter_set_on_one_path)
{
	struct counts_t *c = counters_of(counts, phv);
	__u64 n;

	if (!c)
		return;
	n = READ_ONCE(c->c[2]);
	if (phv->len > 100)
		n = phv->seq;
	opaque(n);
	WRITE_ONCE(c->c[2], n); /* want: 1 flow-state counts */
}

PROGRAM(counter_set_on_the_other_path)
{
	struct counts_t *c = counters_of(counts, phv);
	__u64 n = phv->seq, old;

	if (!c)
		return;
	old = READ_ONCE(c->c[2]);
	opaque(n);
	if (phv->len > 100)
		n = old;
	WRITE_ONCE(c->c[2], n); /* want: 1 flow-state counts */
}

PROGRAM(counter_into_the_vector)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		phv->carry[0] = c->c[3]; /* want: 1 flow-state counts */
}

PROGRAM(counter_as_the_verdict)
{
	struct counts_t *c = counters_of(counts, phv);

	if (c)
		phv->verdict = c->c[3]; /* want: 1 flow-state counts */
}

PROGRAM(decision_on_a_tally)
{
	__u32 *t = reg_bank(sums, phv, index_a(phv));

	if (t && *t > 100) /* want: 1 flow-state sums */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(global_variable)
{
	if (last_seq == phv->seq)
		phv->verdict = VERDICT_DROP;
	last_seq = phv->seq; /* want: 1 flow-state .bss */
}

PROGRAM(write_to_a_table)
{
	__u32 *r = reg_at(rules, index_a(phv));

	if (r)
		*r = phv->seq; /* want: 1 flow-state rules */
}

PROGRAM(update_of_a_table)
{
	__u32 key = index_a(phv), value = phv->seq;

	bpf_map_update_elem(&rules, &key, &value, BPF_ANY); /* want: 1 flow-state rules */
}

/* A word of a trie that a packet writes would be state. */
PROGRAM(write_to_a_prefix_table)
{
	__u64 *word = reg_at(networks, index_a(phv));

	if (word)
		*word = phv->seq; /* want: 1 flow-state networks */
}

PROGRAM(update_of_a_prefix_table)
{
	__u64 value = phv->seq;
	__u32 key = index_a(phv);

	bpf_map_update_elem(&networks, &key, &value, BPF_ANY); /* want: 1 flow-state networks */
}

PROGRAM(write_to_an_inner_map)
{
	__u32 zero = 0, key = index_a(phv), *v;
	void *map = bpf_map_lookup_elem(&outer, &zero);

	if (!map)
		return;
	v = bpf_map_lookup_elem(map, &key);
	if (v)
		*v = phv->seq; /* want: 1 flow-state outer */
}

/* The entry program does not set this word for every packet. */
PROGRAM(state_in_the_vector)
{
	if (phv->tsval == phv->seq)
		phv->verdict = VERDICT_DROP;
	phv->tsval = phv->seq; /* want: 1 flow-state phv_scratch */
}

PROGRAM(state_in_carry)
{
	if (phv->carry[0] == phv->seq) /* want: 1 flow-state phv_scratch */
		phv->verdict = VERDICT_DROP;
	phv->carry[0] = phv->seq;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} generator SEC(".maps") TAG("pisa:random");

/* A generator that remembers a packet would be state without a stage. */
PROGRAM(packet_in_a_generator)
{
	__u32 *x = reg_at(generator, 0);

	if (x)
		*x = *x * 69069 + phv->seq; /* want: 1 flow-state generator */
}

PROGRAM(register_in_a_generator)
{
	__u32 *x = reg_at(generator, 0), *b = reg_at(flows, index_a(phv));

	if (x && b)
		*x ^= *b; /* want: 1 flow-state generator */
}
