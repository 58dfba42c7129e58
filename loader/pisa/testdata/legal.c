// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Programs that keep all rules with what is on the lists: each entry is used by one of them at least. */
#include "program.h"
#include "prefix.h"

REGISTER(flows, 0, __u32, ENTRIES);
REGISTER(later, 1, __u64, ENTRIES);
REGISTER_PERCPU_BANKED(own, 1, __u64, ENTRIES);
TALLY(sums, 2, __u64, 64);
COUNTERS(counts, 8);

#define CONFIGURATION(name, kind, k, v)                                                               \
	struct {                                                                                      \
		__uint(type, kind);                                                                   \
		__type(key, k);                                                                       \
		__type(value, v);                                                                     \
		__uint(max_entries, ENTRIES);                                                         \
	} name SEC(".maps") TAG("pisa:table")

struct prefix {
	__u32 bits, address;
};

struct queued {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__type(value, __u32);
	__uint(max_entries, 16);
};

struct queued settings SEC(".maps") TAG("pisa:table");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__type(value, __u32);
	__uint(max_entries, 16);
} stacked SEC(".maps") TAG("pisa:table");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct prefix);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} prefixes SEC(".maps") TAG("pisa:table");

CONFIGURATION(targets, BPF_MAP_TYPE_HASH, __u32, __u32);
CONFIGURATION(targets_of_a_core, BPF_MAP_TYPE_PERCPU_HASH, __u32, __u32);
CONFIGURATION(rules_of_a_core, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u32);
TABLE(rules, __u32, 256);

/* A multi-bit trie: 8 bits a level; an entry is a leaf or the number of a node. */
TABLE(level_1, __u32, 256);
TABLE(level_2, __u32, 65536);
TABLE(level_3, __u32, 65536);
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
} halves SEC(".maps") TAG("pisa:table") = { .values = { &inner } };

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__type(key, __u32);
	__uint(max_entries, 2);
	__array(values, struct inner);
} tenants SEC(".maps") TAG("pisa:table");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} generator SEC(".maps") TAG("pisa:random");

struct bpf_iter_num;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

static __always_inline void touch(struct phv *phv, __u32 with)
{
	__u32 *f = reg_at(flows, with & (ENTRIES - 1));

	if (f)
		reg_add(f, 1);
}

PROGRAM(head_of_a_queue)
{
	__u32 head;

	if (!bpf_map_peek_elem(&settings, &head))
		touch(phv, head);
}

PROGRAM(head_of_a_queue_or_nothing)
{
	__u32 head = 0;

	bpf_map_peek_elem(&stacked, &head);
	touch(phv, head);
}

PROGRAM(iterator_without_accesses)
{
	__u64 it;
	__u32 sum = 0;
	int *i;

	bpf_iter_num_new((void *)&it, 0, 8);
	while ((i = bpf_iter_num_next((void *)&it)))
		sum = (sum << 1) ^ *i;
	bpf_iter_num_destroy((void *)&it);
	touch(phv, sum);
}

PROGRAM(iterator_over_a_table)
{
	__u32 sum = 0, *r;
	__u64 it;
	int *i;

	bpf_iter_num_new((void *)&it, 0, phv->segs);
	while ((i = bpf_iter_num_next((void *)&it))) {
		r = reg_at(rules, *i & 255);
		if (r)
			sum += *r;
	}
	bpf_iter_num_destroy((void *)&it);
	touch(phv, sum);
}

PROGRAM(bytes_of_the_packet)
{
	__u32 words[4];

	if (bpf_xdp_load_bytes(ctx, phv->len >> 1, words, sizeof(words)))
		return;
	touch(phv, words[0] ^ words[3]);
}

PROGRAM(bytes_as_many_as_there_are)
{
	__u32 words[4] = {}, size = phv->payload & 15;

	if (size)
		bpf_xdp_load_bytes(ctx, 0, words, size);
	touch(phv, words[0] ^ words[3]);
}

PROGRAM_TC(zeroes_where_there_are_none)
{
	__u32 word;

	bpf_skb_load_bytes(ctx, phv->len, &word, sizeof(word));
	touch(phv, word);
	return TC_NEXT;
}

PROGRAM_TC(pulled)
{
	__u32 *word;

	if (bpf_skb_pull_data(ctx, 64))
		return TC_NEXT;
	word = (void *)(long)ctx->data;
	if ((void *)(word + 1) <= (void *)(long)ctx->data_end)
		touch(phv, *word);
	return TC_NEXT;
}

PROGRAM(checksum_of_the_key)
{
	__u32 key[4] = {phv->src[0], phv->src[1], phv->src[2], phv->src[3]};

	touch(phv, bpf_csum_diff(0, 0, key, sizeof(key), phv->seq));
}

PROGRAM(checksum_is_the_touch)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (f)
		phv->ep_src = bpf_csum_diff(0, 0, f, sizeof(*f), 0);
}

PROGRAM(update_of_a_register)
{
	__u32 key = index_a(phv), value = phv->seq;

	bpf_map_update_elem(&flows, &key, &value, BPF_ANY);
}

PROGRAM(update_from_an_earlier_stage)
{
	__u32 *f = reg_at(flows, index_a(phv)), key = index_b(phv);
	__u64 value;

	if (!f)
		return;
	value = reg_add(f, 1);
	bpf_map_update_elem(&later, &key, &value, BPF_ANY);
}

PROGRAM(update_from_the_packet)
{
	__u64 *word = (void *)(long)ctx->data;
	__u32 key = index_b(phv);

	if ((void *)(word + 1) <= (void *)(long)ctx->data_end)
		bpf_map_update_elem(&later, &key, word, BPF_ANY);
}

PROGRAM(record_of_a_core)
{
	__u64 *o = reg_bank(own, phv, index_a(phv));

	if (o && *o < phv->ep_dst)
		*o = phv->ep_dst;
}

PROGRAM(longest_prefix)
{
	struct prefix key = {.bits = 32, .address = phv->src[3]};
	__u32 *value = bpf_map_lookup_elem(&prefixes, &key);

	if (value)
		touch(phv, *value);
}

PROGRAM(multi_bit_trie)
{
	__u32 address = phv->src[3], *entry;

	entry = reg_at(level_1, address & 255);
	if (entry && *entry >> 31)
		entry = reg_at(level_2, (*entry & 255) << 8 | (address >> 8 & 255));
	if (entry && *entry >> 31)
		entry = reg_at(level_3, (*entry & 255) << 8 | (address >> 16 & 255));
	if (entry)
		touch(phv, *entry);
}

/* Two addresses, each longest prefix match: the second in the trie that the first one's prefix names. */
PROGRAM(prefix_table)
{
	__u64 head = prefix_head(&networks);
	__u64 source = prefix_of(&networks, head, 0, phv->src, phv->family);

	touch(phv, prefix_of(&networks, head, source & 15, phv->dst, phv->family));
}

PROGRAM(configuration_of_a_core)
{
	__u32 key = phv->seq, *t = bpf_map_lookup_elem(&targets_of_a_core, &key), *r = reg_at(rules_of_a_core, key & 15);

	if (t && r)
		touch(phv, *t ^ *r);
}

PROGRAM(half_of_the_configuration)
{
	__u32 half = phv->bank, key = index_a(phv), *v;
	void *map = bpf_map_lookup_elem(&halves, &half);

	if (!map)
		return;
	v = bpf_map_lookup_elem(map, &key);
	if (v)
		touch(phv, *v);
}

PROGRAM(configuration_of_a_tenant)
{
	__u32 tenant = phv->vlan, key = index_a(phv), *v;
	void *map = bpf_map_lookup_elem(&tenants, &tenant);

	if (!map)
		return;
	v = bpf_map_lookup_elem(map, &key);
	if (v)
		touch(phv, *v);
}

static long sum_up(void *map, __u32 *key, __u32 *value, __u32 *sum)
{
	*sum += *key ^ *value;
	return 0;
}

PROGRAM(all_of_a_table)
{
	__u32 sum = 0;

	bpf_for_each_map_elem(&targets, sum_up, &sum, 0);
	touch(phv, sum);
}

PROGRAM(loss_is_counted)
{
	struct counts_t *c = counters_of(counts, phv);
	__u64 word = phv->ep_src;

	if (!c)
		return;
	if (bpf_ringbuf_output(&reports, &word, sizeof(word), BPF_RB_NO_WAKEUP))
		c->c[0]++;
	else
		c->c[1] += phv->len;
	touch(phv, phv->seq);
}

PROGRAM(loss_of_events_is_counted)
{
	struct counts_t *c = counters_of(counts, phv);
	__u64 word = phv->ep_src;

	if (c && bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &word, sizeof(word)))
		c->c[0]++;
}

PROGRAM(record_that_is_thrown_away)
{
	struct counts_t *c = counters_of(counts, phv);
	__u64 *r = bpf_ringbuf_reserve(&reports, 16, 0);

	if (!r) {
		if (c)
			c->c[0]++;
		return;
	}
	r[0] = clock_now(phv);
	if (phv->len < 100) {
		bpf_ringbuf_discard(r, 0);
		return;
	}
	r[1] = phv->seq;
	bpf_ringbuf_submit(r, 0);
}

PROGRAM(element_is_reported)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (f)
		bpf_ringbuf_output(&reports, f, sizeof(*f), 0);
}

PROGRAM(xorshift_of_64_bits)
{
	__u64 *x = reg_at(generator, 0), next;

	if (!x || phv->proto != 17)
		return;
	next = *x;
	if ((next & 0xff) == 0)
		next = bpf_get_prandom_u32();
	next ^= next << 13;
	next ^= next >> 7;
	next ^= next << 17;
	*x = next;
	touch(phv, next >> 32);
}

PROGRAM(core_of_the_packet)
{
	__u64 *s = reg_bank(sums, phv, bpf_get_smp_processor_id() & 63);

	if (s)
		*s += phv->len;
}

PROGRAM(length_of_the_buffer)
{
	__u64 *s = reg_bank(sums, phv, ctx->rx_queue_index & 63);

	if (s)
		*s += bpf_xdp_get_buff_len(ctx) + ctx->ingress_ifindex;
}

SEC("xdp.frags") int dropped_by_a_register(struct xdp_md *ctx)
{
	struct phv *phv = phv_get();
	__u32 *f;

	if (!phv || phv->len > 9000)
		return XDP_ABORTED;
	f = reg_at(flows, index_a(phv));
	return f && reg_add(f, 1) > 1000 ? XDP_DROP : XDP_PASS;
}

PROGRAM_TC(accepted_by_a_register)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (!f || phv->len > 9000)
		return 0; /* TC_ACT_OK */
	return reg_add(f, 1) > 1000 ? TC_DROP : TC_NEXT;
}

PROGRAM_TC(marked)
{
	__u32 *f = reg_at(flows, index_a(phv));

	if (f && reg_add(f, 1) > 1000)
		bpf_skb_ecn_set_ce(ctx);
	return TC_NEXT;
}

PROGRAM_TC(rewritten)
{
	__u16 old = 0, now = phv->seq;

	if (bpf_skb_load_bytes(ctx, 14, &old, sizeof(old)))
		return TC_NEXT;
	bpf_l3_csum_replace(ctx, 24, old, now, sizeof(now));
	bpf_l4_csum_replace(ctx, 40, old, now, sizeof(now));
	bpf_skb_store_bytes(ctx, 14, &now, sizeof(now), 0);
	return TC_NEXT;
}

PROGRAM(written_in_place)
{
	__u16 *word = (void *)(long)ctx->data;
	__u32 mark = phv->seq;

	if ((void *)(word + 1) <= (void *)(long)ctx->data_end)
		*word = mark;
	bpf_xdp_store_bytes(ctx, 8, &mark, sizeof(mark));
}

PROGRAM(metadata_of_the_driver)
{
	__u32 *meta = (void *)(long)ctx->data_meta;

	if ((void *)(meta + 1) <= (void *)(long)ctx->data)
		touch(phv, *meta);
}

PROGRAM_TC(time_written)
{
	ctx->tstamp = phv->now + 1000;
	return TC_NEXT;
}

PROGRAM_TC(all_that_a_buffer_tells)
{
	__u64 sum = ctx->len + ctx->pkt_type + ctx->mark + ctx->queue_mapping + ctx->protocol + ctx->vlan_present +
		    ctx->vlan_tci + ctx->vlan_proto + ctx->priority + ctx->ingress_ifindex + ctx->ifindex + ctx->hash +
		    ctx->tstamp + ctx->wire_len + ctx->gso_segs + ctx->gso_size;
	__u32 *meta = (void *)(long)ctx->data_meta;

	if ((void *)(meta + 1) <= (void *)(long)ctx->data)
		sum += *meta;
	touch(phv, sum);
	return TC_NEXT;
}

/* Both words travel, on every way that asks. */
PROGRAM(two_words_travel)
{
	struct recirc_budget_t *b = reg_at(recirc_budget, (phv->next - 1) & (CHAIN_SLOTS - 1));
	__u64 *l = reg_at(later, index_a(phv));

	if (second_pass(phv)) {
		if (l)
			reg_store(l, phv->carry[0] + phv->carry[1]);
		return;
	}
	phv->carry[1] = phv->len > 100 ? phv->seq : phv->ack;
	if (phv->pass != 0 || !b || b->left == 0) {
		if (b)
			b->refused++;
		return;
	}
	b->left--;
	b->granted++;
	phv->carry[0] = phv->ep_dst;
	phv->pass = 1;
	bpf_tail_call(ctx, &recirc_xdp, phv->next - 1);
}
