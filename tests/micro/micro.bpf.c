//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Yardsticks for the benchmark: algorithms that do one thing each, and what one writes first on a host: maps of flows and the
 * naive RTT matcher. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "coin.h"
#include "hash.h"
#include "key.h"
#include "bins.h"
#include "prefix.h"
#include "trace.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ENTRIES 65536
#define TALLIES 32768 /* a bank */

/* A slot of the chain with nothing in it. */
ALGORITHM(nothing)
{
}

ALGORITHM(clock)
{
	clock_now(phv);
}

ALGORITHM(coin)
{
	phv->carry[0] = coin_flip(phv);
}

/* What the TC program does for a queue, but for the words of the packet's control block, which XDP does not have. */
ALGORITHM(carry)
{
	__u64 now = clock_now(phv);
	__u32 words[3];

	carry_pack(words, now, carry_flow(phv), phv->ifindex);
	phv->carry[0] = words[1];
	phv->carry[1] = (__u64)words[2] << 32 | words[0];
}

/* What the start of transmission knows of a packet that waited 8 ms, its flow hash too: in front of an algorithm that reads it. */
ALGORITHM(waited)
{
	phv->enqueued = clock_now(phv) - 8000000;
	phv->flow = carry_flow(phv);
}

ALGORITHM(spread)
{
	phv->carry[0] = hash_spread(carry_flow(phv));
}

ALGORITHM(flowhash)
{
	phv->carry[0] = hash_flow(phv, 0);
}

ALGORITHM(keyhash)
{
	struct key key;

	if (key_of(phv, &key))
		phv->carry[0] = key_hash(&key);
}

REGISTER(micro_one, 1, __u64, ENTRIES);
REGISTER(micro_two, 2, __u64, ENTRIES);
REGISTER(micro_three, 3, __u64, ENTRIES);
TALLY(micro_tally, 1, __u64, TALLIES);

#define SWAP(array, hash)                                                                             \
	({                                                                                            \
		__u64 *word_ = reg_at(array, (hash) & (ENTRIES - 1));                                 \
		if (!word_)                                                                           \
			return;                                                                       \
		reg_swap(word_, hash);                                                                \
	})

/* Registers of 65,536 words of 64 bits, each exchanged at an index of its own. */
ALGORITHM(one_register)
{
	__u64 h = hash_flow(phv, 0);

	SWAP(micro_one, h);
}

ALGORITHM(two_registers)
{
	__u64 h = hash_flow(phv, 0);

	SWAP(micro_one, h);
	SWAP(micro_two, h >> 16);
}

ALGORITHM(three_registers)
{
	__u64 h = hash_flow(phv, 0);

	SWAP(micro_one, h);
	SWAP(micro_two, h >> 16);
	SWAP(micro_three, h >> 32);
}

/* The same per CPU, with plain words. */
ALGORITHM(one_tally)
{
	__u64 *word = reg_bank(micro_tally, phv, hash_flow(phv, 0) & (TALLIES - 1));

	if (word)
		*word += 1;
}

/* ---- longest prefix match ---- */

/* The client's address, which counts up from 10.0.0.0 from flow to flow. */
static __always_inline __u32 client(const struct phv *phv)
{
	__u32 src = bpf_ntohl(phv->src[3]), dst = bpf_ntohl(phv->dst[3]);

	return src < dst ? src : dst;
}

/* The same, scattered over all addresses that there are. */
static __always_inline __u32 scattered(const struct phv *phv)
{
	return client(phv) * 0x9e3779b1U;
}

/* What the two below do beside their lookup. */
ALGORITHM(scatter)
{
	phv->carry[0] = scattered(phv);
}

/* One word of a MiB at an index from the address: the minimum cost of any lookup among 100,000 scattered values. */
TABLE(micro_words, __u64, 1 << 17);

ALGORITHM(scatter_word)
{
	__u64 *word = reg_at(micro_words, scattered(phv) >> 15);

	if (word)
		phv->carry[0] = *word;
}

/* Two words, of which the first is the index of the second: the minimum cost of a lookup of two steps. */
TABLE(micro_more, __u64, 1 << 17);

ALGORITHM(scatter_words)
{
	__u64 *word = reg_at(micro_words, scattered(phv) >> 15);

	if (word)
		word = reg_at(micro_more, ((__u32)*word + scattered(phv)) * 0x85ebca6bU >> 15);
	if (word)
		phv->carry[0] = *word;
}

PREFIX_TABLE(micro_prefixes, 5 << 20);

ALGORITHM(prefix_table)
{
	phv->carry[0] = prefix_find(&micro_prefixes, prefix_head(&micro_prefixes), 0, (__u64)scattered(phv) << 32, 0);
}

/* Clients in order of arrival. */
ALGORITHM(prefix_near)
{
	phv->carry[0] = prefix_find(&micro_prefixes, prefix_head(&micro_prefixes), 2, (__u64)client(phv) << 32, 0);
}

/* The scattered ones with 128 bits. */
ALGORITHM(prefix_table6)
{
	phv->carry[0] = prefix_find(&micro_prefixes, prefix_head(&micro_prefixes), 1, 0x20010db800000000ULL | scattered(phv),
				    (__u64)scattered(phv) << 32);
}

struct lpm_key {
	__u32 bits, addr;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct lpm_key);
	__type(value, __u64);
	__uint(max_entries, 1 << 18);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} micro_lpm SEC(".maps");

static __always_inline void lpm_find(struct phv *phv, __u32 addr)
{
	struct lpm_key key = {32, bpf_htonl(addr)};
	__u64 *value = bpf_map_lookup_elem(&micro_lpm, &key);

	if (value)
		phv->carry[0] = *value;
}

ALGORITHM(lpm_map)
{
	lpm_find(phv, scattered(phv));
}

ALGORITHM(lpm_near)
{
	lpm_find(phv, client(phv));
}

/* ---- what one writes first: a hash map of open handshakes ---- */

struct handshake {
	__u32 client[4], server[4];
	__u16 cport, sport;
	__u32 isn;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct handshake);
	__type(value, __u64);
	__uint(max_entries, 262144);
} naive_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 64);
} naive_histogram SEC(".maps");

static __always_inline void naive_key(struct handshake *k, const __u32 *client, const __u32 *server, __u16 cport,
				      __u16 sport, __u32 isn)
{
	__builtin_memcpy(k->client, client, 16);
	__builtin_memcpy(k->server, server, 16);
	k->cport = cport;
	k->sport = sport;
	k->isn = isn;
}

ALGORITHM(naive)
{
	__u8 flags = phv->tcp_flags & (TCP_SYN | TCP_ACK);
	struct handshake k;
	__u64 now, *then, *sum;
	__u32 bin;

	if (!(phv->valid & PHV_TCP) || !(flags & TCP_SYN))
		return;
	if (flags == TCP_SYN) {
		now = clock_now(phv);
		naive_key(&k, phv->src, phv->dst, phv->sport, phv->dport, phv->seq + 1);
		bpf_map_update_elem(&naive_open, &k, &now, BPF_ANY);
		return;
	}
	naive_key(&k, phv->dst, phv->src, phv->dport, phv->sport, phv->ack);
	then = bpf_map_lookup_elem(&naive_open, &k);
	if (!then)
		return;
	bin = bins_log2((clock_now(phv) - *then) >> 6 | 1) & 63;
	bpf_map_delete_elem(&naive_open, &k);
	sum = bpf_map_lookup_elem(&naive_histogram, &bin);
	if (sum)
		*sum += 1;
}

/* ---- what one writes first: a hash map of flows ---- */

struct flow_key {
	__u32 src[4], dst[4];
	__u16 sport, dport;
	__u32 proto;
};

struct flow_value {
	__u64 packets, bytes;
};

/* Room for every flow of the benchmark: what does not fit is not counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct flow_key);
	__type(value, struct flow_value);
	__uint(max_entries, 262144);
} naive_flow_map SEC(".maps");

/* A bound on memory: the entry that was unused for longest is replaced. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct flow_value);
	__uint(max_entries, 65536);
} naive_flow_lru SEC(".maps");

/* Packets and bytes of the packet's flow in a map that all cores share. */
static __always_inline void count_flow(const struct phv *phv, void *map)
{
	struct flow_value first = {phv->segs, phv->len}, *v;
	struct flow_key k = {.sport = phv->sport, .dport = phv->dport, .proto = phv->proto};

	if (!phv_has(phv, PHV_IP))
		return;
	__builtin_memcpy(k.src, phv->src, 16);
	__builtin_memcpy(k.dst, phv->dst, 16);
	v = bpf_map_lookup_elem(map, &k);
	if (!v) {
		bpf_map_update_elem(map, &k, &first, BPF_NOEXIST);
		return;
	}
	__sync_fetch_and_add(&v->packets, first.packets);
	__sync_fetch_and_add(&v->bytes, first.bytes);
}

ALGORITHM(flow_map)
{
	count_flow(phv, &naive_flow_map);
}

ALGORITHM(flow_lru)
{
	count_flow(phv, &naive_flow_lru);
}

/* ---- what one writes first against users who send too much: a token bucket a user ---- */

struct bucket {
	__u64 tokens; /* bytes */
	__u64 last;   /* ns */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct bucket);
	__uint(max_entries, 65536);
} naive_buckets SEC(".maps");

#define BUCKET_BURST 100000
#define BUCKET_RATE 12500000ULL /* bytes a second */

ALGORITHM(buckets)
{
	__u64 now = clock_now(phv), filled;
	struct bucket first = {BUCKET_BURST, now}, *b;
	struct flow_key k = {.sport = phv->sport, .dport = phv->dport, .proto = phv->proto};

	if (!phv_has(phv, PHV_IP))
		return;
	__builtin_memcpy(k.src, phv->src, 16);
	__builtin_memcpy(k.dst, phv->dst, 16);
	b = bpf_map_lookup_elem(&naive_buckets, &k);
	if (!b) {
		bpf_map_update_elem(&naive_buckets, &k, &first, BPF_NOEXIST);
		return;
	}
	filled = b->tokens + (now - b->last) * BUCKET_RATE / 1000000000;
	if (filled > BUCKET_BURST)
		filled = BUCKET_BURST;
	b->last = now;
	if (filled < phv->len) {
		verdict_raise(phv, VERDICT_DROP);
		b->tokens = filled;
		return;
	}
	b->tokens = filled - phv->len;
}
