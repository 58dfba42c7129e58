//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Traffic for measurements and races. Each run of one of these programs (BPF_PROG_TEST_RUN repeats them) rewrites the
 * packet that is in the buffer and tail-calls the program under test, so that a hundred thousand flows rotate where
 * a repeated packet would find everything in the first-level cache. What was sent is counted here, before the
 * program under test sees it. */
#include "base.h"
#include "hash.h"
#include "parse.h"
#include "replay.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum traffic {
	TRAFFIC_REQUESTS,  /* SYN of the next flow */
	TRAFFIC_RESPONSES, /* SYN-ACK to the oldest SYN that has none */
	TRAFFIC_MIXED,     /* SYN, SYN-ACK, SYN, ... */
	TRAFFIC_HANDSHAKES, /* SYN, SYN-ACK, ACK, SYN, ... */
	TRAFFIC_BURSTS,    /* BURST SYN, BURST SYN-ACK to them, ...; each burst is timed */
	TRAFFIC_DATA,      /* segments with payload; UDP has nothing else */
};

#define BURST 16384

enum kind { KIND_SYN, KIND_SYNACK, KIND_FINAL, KIND_DATA, KINDS };

/* Where in the rotation: the round makes sequence numbers new. */
struct cursor {
	__u32 flow;
	__u32 round;
};

/* One a CPU; written by userspace between runs. */
struct mutator_state {
	__u32 traffic; /* enum traffic */
	__u32 flows;   /* below 2^22 */
	__u32 turn;    /* of MIXED and HANDSHAKES */
	__u32 core;    /* flows of different cores differ, unless it is the same everywhere */
	__u32 frozen;  /* sequence numbers come again with each round */
	__u32 pad;
	struct cursor ask, answer, close;
	__u64 sent[KINDS];
	__u64 failed;  /* the tail call was not made */
	__u64 began;   /* ns: when this burst did */
	__u32 left;    /* packets of this burst */
	__u32 bursts;  /* ended */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct mutator_state);
	__uint(max_entries, 1);
} mutator_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} mutator_target SEC(".maps");

/* The same for programs of TC: a program array holds one type. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} mutator_tc SEC(".maps");

/* Durations of the last bursts in ns, those of requests at even places. */
#define BURSTS 512

struct burst_times {
	__u64 ns[BURSTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct burst_times);
	__uint(max_entries, 1);
} mutator_bursts SEC(".maps");

const enum traffic *unused_traffic __attribute__((unused));
const enum kind *unused_kind __attribute__((unused));
const struct mutator_state *unused_state __attribute__((unused));

/* What the packet becomes. */
struct step {
	__u32 flow;
	__u32 isn; /* the client's first sequence number */
	__u32 kind;
};

static __always_inline void advance(struct cursor *c, __u32 flows)
{
	if (++c->flow < flows)
		return;
	c->flow = 0;
	c->round++;
}

static __always_inline void take_step(struct step *step, struct cursor *c, __u32 kind, struct mutator_state *state)
{
	step->kind = kind;
	step->flow = c->flow | state->core << 22;
	step->isn = c->flow * 0x9e3779b1U + (state->frozen ? 0 : c->round);
	advance(c, state->flows);
}

static __always_inline void end_burst(struct mutator_state *state)
{
	__u64 now = bpf_ktime_get_ns();
	struct burst_times *times;
	__u32 zero = 0;

	times = bpf_map_lookup_elem(&mutator_bursts, &zero);
	if (!times)
		return;
	if (state->began)
		times->ns[state->bursts++ & (BURSTS - 1)] = now - state->began;
	state->began = now;
	state->left = BURST;
}

static __always_inline void burst_step(struct step *step, struct mutator_state *state)
{
	if (state->left == 0)
		end_burst(state);
	state->left--;
	if (state->bursts & 1)
		take_step(step, &state->answer, KIND_SYNACK, state);
	else
		take_step(step, &state->ask, KIND_SYN, state);
}

static __always_inline void next_step(struct step *step, struct mutator_state *state)
{
	__u32 kinds = state->traffic == TRAFFIC_MIXED ? 2 : 3;

	if (state->traffic == TRAFFIC_DATA)
		return take_step(step, &state->ask, KIND_DATA, state);
	if (state->traffic == TRAFFIC_BURSTS)
		return burst_step(step, state);
	if (state->traffic == TRAFFIC_REQUESTS)
		return take_step(step, &state->ask, KIND_SYN, state);
	if (state->traffic == TRAFFIC_RESPONSES)
		return take_step(step, &state->answer, KIND_SYNACK, state);
	if (state->turn == 0)
		take_step(step, &state->ask, KIND_SYN, state);
	else if (state->turn == 1)
		take_step(step, &state->answer, KIND_SYNACK, state);
	else
		take_step(step, &state->close, KIND_FINAL, state);
	state->turn = state->turn + 1 < kinds ? state->turn + 1 : 0;
}

static __always_inline void write_ports(__be16 *ports, const struct step *step, int reverse)
{
	ports[reverse] = bpf_htons(1024 + (step->flow & 0x7fff));
	ports[!reverse] = bpf_htons(443);
}

static __always_inline void write_tcp(struct tcp_hdr *tcp, const struct step *step, int reverse)
{
	write_ports(&tcp->sport, step, reverse);
	tcp->seq = bpf_htonl(step->kind == KIND_SYN ? step->isn : reverse ? ~step->isn : step->isn + 1);
	tcp->ack = bpf_htonl(step->kind == KIND_SYN ? 0 : reverse ? step->isn + 1 : ~step->isn + 1);
	tcp->flags = step->kind == KIND_SYN ? TCP_SYN : step->kind == KIND_SYNACK ? TCP_SYN | TCP_ACK :
		     step->kind == KIND_FINAL ? TCP_ACK : TCP_ACK | TCP_PSH;
}

/* The packet in the buffer is Ethernet, IPv4 or IPv6 without options, TCP or UDP. */
static __always_inline int rewrite(void *data, void *end, const struct step *step)
{
	__u32 client = bpf_htonl(0x0a000000 | (step->flow & 0xffffff)), server = bpf_htonl(0xc6336400 | (step->flow & 0xff));
	int reverse = step->kind == KIND_SYNACK;
	struct ipv4_hdr *ip4 = data + 14;
	struct ipv6_hdr *ip6 = data + 14;
	__u32 *from, *to;
	void *l4;
	__u8 proto;

	if (data + 14 + 40 + 20 > end)
		return 0;
	if (ip4->vihl == 0x45) {
		from = &ip4->src;
		to = &ip4->dst;
		proto = ip4->protocol;
		l4 = ip4 + 1;
	} else {
		from = &ip6->src[3];
		to = &ip6->dst[3];
		proto = ip6->next;
		l4 = ip6 + 1;
	}
	*from = reverse ? server : client;
	*to = reverse ? client : server;
	if (proto == IPP_TCP)
		write_tcp(l4, step, reverse);
	else
		write_ports(l4, step, reverse);
	return 1;
}

/* The next packet, counted. */
static __always_inline struct mutator_state *mutated(void *data, void *end)
{
	struct mutator_state *state;
	struct step step = {};
	__u32 zero = 0;

	state = bpf_map_lookup_elem(&mutator_states, &zero);
	if (!state)
		return NULL;
	next_step(&step, state);
	if (!rewrite(data, end, &step))
		return NULL;
	state->sent[step.kind & 3]++;
	return state;
}

SEC("xdp.frags") int mutate(struct xdp_md *ctx)
{
	struct mutator_state *state = mutated((void *)(long)ctx->data, (void *)(long)ctx->data_end);

	if (!state)
		return XDP_ABORTED;
	bpf_tail_call(ctx, &mutator_target, 0);
	state->failed++;
	return XDP_ABORTED;
}

#define TC_ABORTED 0
#define TC_NEXT (-1)

SEC("tc") int mutate_tc(struct __sk_buff *skb)
{
	struct mutator_state *state = mutated((void *)(long)skb->data, (void *)(long)skb->data_end);

	if (!state)
		return TC_ABORTED;
	bpf_tail_call(skb, &mutator_tc, 0);
	state->failed++;
	return TC_ABORTED;
}

/* The program after the mutator when the mutator itself is measured. */
SEC("xdp.frags") int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("tc") int pass_tc(struct __sk_buff *skb)
{
	return TC_NEXT;
}

/* ---- all cores on one sequence of packets, with a virtual clock ---- */

/* Packet n of all cores together has the time start + n * gap. Even packets are requests 0, 1, 2, ...; odd packets are
 * responses to requests that lie back by lag - 2^spread to lag + 2^spread, each answered once. Who runs which packet
 * is the cores' race; what should come out is not. */
const volatile __u64 hammer_start = 1000000000;
const volatile __u32 hammer_gap = 1000; /* ns */
const volatile __u32 hammer_lag = 16384;
const volatile __u32 hammer_spread = 12;
const volatile __u32 hammer_flows = 256; /* a power of two */

struct hammer_sequence {
	__u64 next;
	__u64 last;    /* core of the last packet, about */
	__u64 turns;   /* how often the cores took turns, about */
	__u64 pad[13]; /* cache lines of its own */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct hammer_sequence);
	__uint(max_entries, 1);
} hammer_sequences SEC(".maps");

/* The request that response k answers: within its block of 2^spread the order is turned over. */
static __always_inline __u64 answered(__u64 k)
{
	__u64 j = k - hammer_lag, block = j >> hammer_spread;

	return j ^ (hash_mix(block) & ((1ULL << hammer_spread) - 1));
}

SEC("xdp.frags") int hammer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct replay_meta *meta = (void *)(long)ctx->data_meta;
	struct hammer_sequence *sequence;
	struct mutator_state *state;
	struct step step = {};
	__u64 n, k, request;
	__u32 zero = 0, cpu;

	sequence = bpf_map_lookup_elem(&hammer_sequences, &zero);
	state = bpf_map_lookup_elem(&mutator_states, &zero);
	if (!sequence || !state || (void *)(meta + 1) > data)
		return XDP_ABORTED;
	n = __sync_fetch_and_add(&sequence->next, 1);
	cpu = bpf_get_smp_processor_id();
	if (sequence->last != cpu) {
		sequence->last = cpu;
		sequence->turns++;
	}
	k = n >> 1;
	request = n & 1 ? k < hammer_lag ? k : answered(k) : k;
	step.kind = !(n & 1) ? KIND_SYN : k < hammer_lag ? KIND_DATA : KIND_SYNACK;
	step.flow = request & (hammer_flows - 1);
	step.isn = step.kind == KIND_DATA ? ~(__u32)request : request; /* the first responses' places: of no handshake */
	if (!rewrite(data, end, &step))
		return XDP_ABORTED;
	meta->time = hammer_start + n * hammer_gap;
	meta->len = end - data;
	meta->shape = end - data;
	meta->coin = (__u32)n * 0x9e3779b1U | 1;
	meta->ifindex = 1;
	state->sent[step.kind & 3]++;
	bpf_tail_call(ctx, &mutator_target, 0);
	state->failed++;
	return XDP_ABORTED;
}
