// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Programs that keep all rules. */
#include "program.h"

struct pair {
	__u32 key, count;
};

struct report {
	__u64 time;
	__u32 key, count;
};

REGISTER(single, 0, __u64, ENTRIES);
REGISTER(beside, 0, __u32, ENTRIES);
REGISTER(pairs, 1, struct pair, ENTRIES);
REGISTER_BANKED(banked, 2, __u32, ENTRIES);
REGISTER_BANKED(banked_too, 2, __u32, ENTRIES);
TALLY(tally, 3, __u32, 64);
TALLY(tally_too, 3, __u64, 64);
COUNTERS(counts, 8);
TABLE(rules, __u32, 256);

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} targets SEC(".maps") TAG("pisa:table");

struct notes {
	__u32 words[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct notes);
	__uint(max_entries, 1);
} notes SEC(".maps") TAG("pisa:scratch");

const volatile _Bool forbidden = 0;
const volatile __u32 rounds = 1;

PROGRAM(one_exchange)
{
	__u64 *e = reg_at(single, index_a(phv));

	if (e && reg_cas(e, 0, phv->ep_src) != 0)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(load_and_store)
{
	__u64 *e = reg_at(single, index_a(phv));
	__u64 old;

	if (!e)
		return;
	old = reg_load(e);
	if (old < phv->ep_dst)
		reg_store(e, phv->ep_dst);
}

PROGRAM(words_of_a_pair)
{
	struct pair *p = reg_at(pairs, index_a(phv));
	__u32 key;

	if (!p)
		return;
	key = reg_load(&p->key);
	if (key == phv->seq) {
		reg_add(&p->count, 1);
	} else if (key == 0) {
		reg_store(&p->key, phv->seq);
		reg_store(&p->count, 1);
	}
}

/* A request writes, a response reads: exclusive accesses to one array. */
PROGRAM(either_way)
{
	__u32 request = phv->tcp_flags & TCP_SYN;
	struct pair *p;

	if (request) {
		p = reg_at(pairs, index_a(phv));
		if (p)
			reg_store(&p->key, phv->seq);
	}
	phv->verdict = VERDICT_PASS;
	if (!request) {
		p = reg_at(pairs, index_b(phv));
		if (p && reg_load(&p->key) == phv->ack)
			reg_store(&p->key, 0);
	}
}

/* The same, with the decision made anew each time. */
PROGRAM(either_way_by_the_vector)
{
	struct pair *p;
	__u64 *e = reg_at(single, index_a(phv));

	if (e)
		reg_store(e, phv->ep_src);
	if (phv_has(phv, PHV_TCP)) {
		p = reg_at(pairs, index_a(phv));
		if (p)
			reg_store(&p->key, phv->seq);
	}
	if (!phv_has(phv, PHV_TCP)) {
		p = reg_at(pairs, index_b(phv));
		if (p)
			reg_store(&p->key, 0);
	}
}

/* Independent arrays of one stage; the later one gets what the earlier ones gave. */
PROGRAM(three_stages)
{
	__u64 *s = reg_at(single, index_a(phv));
	__u32 *b = reg_at(beside, index_b(phv)), *n;
	struct pair *p;
	__u64 old;

	if (!s || !b)
		return;
	old = reg_swap(s, phv->ep_src);
	reg_add(b, 1);
	p = reg_at(pairs, old & (ENTRIES - 1));
	if (!p || reg_load(&p->key) == (__u32)old)
		return;
	n = reg_bank(banked, phv, index_a(phv));
	if (n)
		reg_add(n, phv->len);
	n = reg_bank(banked_too, phv, index_b(phv));
	if (n)
		reg_add(n, phv->len);
}

PROGRAM(sums)
{
	struct counts_t *c = counters_of(counts, phv);
	__u32 *t = reg_bank(tally, phv, phv->len & 63);
	__u64 *u;

	if (!c || !t)
		return;
	(*t)++;
	u = reg_bank(tally_too, phv, phv->len & 63);
	if (u)
		*u += phv->len;
	c->c[phv->proto & 7]++;
	c->c[1] += phv->valid & PHV_TCP ? phv->payload : 3;
}

static __noinline __u32 exchange(__u32 *element, __u32 with)
{
	return element ? reg_swap(element, with) : 0;
}

PROGRAM(subprogram)
{
	__u32 old = exchange(reg_at(beside, index_a(phv)), phv->seq);

	if (old == phv->ack)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(spill)
{
	__u32 *volatile kept = reg_at(beside, index_a(phv));
	__u64 now = clock_now(phv);
	__u32 *p = kept;

	if (p)
		reg_store(p, (__u32)(now >> 10));
}

static long count_rules(__u64 i, __u32 *sum)
{
	__u32 *r = reg_at(rules, (__u32)i & 255);

	if (r)
		*sum += *r;
	return 0;
}

/* Loops over tables and packets are no concern of a register. */
PROGRAM(loops)
{
	__u32 sum = 0, *b;

	bpf_loop(16, count_rules, &sum, 0);
#pragma nounroll
	for (__u32 i = 0; i < phv->segs && i < 40; i++)
		sum = (sum << 1) ^ i;
	b = reg_at(beside, sum & (ENTRIES - 1));
	if (b)
		reg_add(b, 1);
}

PROGRAM(report)
{
	struct pair *p = reg_at(pairs, index_a(phv));
	struct report *r;
	__u32 count;

	if (!p)
		return;
	count = reg_add(&p->count, 1);
	if (count != 1000)
		return;
	r = bpf_ringbuf_reserve(&reports, sizeof(*r), 0);
	if (!r)
		return;
	r->time = clock_now(phv);
	r->key = phv->seq;
	r->count = count;
	bpf_ringbuf_submit(r, 0);
}

PROGRAM(own_scratch)
{
	__u32 zero = 0, sum = 0, *b;
	struct notes *n = bpf_map_lookup_elem(&notes, &zero);
	__u32 *target = bpf_map_lookup_elem(&targets, &phv->src[3]);

	if (!n || !target)
		return;
	WRITE_ONCE(n->words[0], phv->seq);
	WRITE_ONCE(n->words[1], *target);
	if (phv->len > 100)
		WRITE_ONCE(n->words[0], phv->ack);
	sum = READ_ONCE(n->words[0]) ^ READ_ONCE(n->words[1]);
	b = reg_at(beside, sum & (ENTRIES - 1));
	if (b)
		reg_add(b, 1);
}

/* A generator goes on from its own state, and starts from the kernel's. */
PROGRAM(generator_of_its_own)
{
	__u32 *x = reg_at(generator, 0), *b, next;

	if (!x)
		return;
	next = *x;
	if ((next & 0xff) == 0)
		next = bpf_get_prandom_u32();
	next ^= next << 13;
	*x = next;
	b = reg_at(beside, next & (ENTRIES - 1));
	if (b)
		reg_add(b, 1);
}

/* Accepted as long as the constant says that it never happens. */
PROGRAM(dead_under_its_constant)
{
	__u32 *b = reg_at(beside, index_a(phv));

	if (!b)
		return;
	reg_add(b, 1);
	if (forbidden) {
		b = reg_at(beside, index_b(phv));
		if (b)
			reg_add(b, 1); /* want: 2 second-access beside if:forbidden */
	}
}

PROGRAM(rounds_under_their_constant)
{
	__u32 *b;

#pragma nounroll
	for (__u32 i = 0; i < rounds; i++) {
		b = reg_at(beside, (index_a(phv) + i) & (ENTRIES - 1));
		if (b)
			reg_add(b, 1); /* want: 2 second-access beside if:rounds */
	}
}

/* Whose share of a link a packet takes, for the algorithms behind. */
PROGRAM(slice_of_the_packet)
{
	phv->slice = phv->seq & 0xff;
}
