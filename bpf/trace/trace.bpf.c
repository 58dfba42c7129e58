//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The entry program at the start of transmission, and the accounting of packets that do not reach it.
 *
 * Trace points are global: every packet of every interface and namespace passes. Packets of other interfaces
 * leave after one lookup in a small table. The vector is that of the other entry programs, filled by the same parser,
 * which copies each header here instead of pointing into the packet: a trace point has no direct packet access. It does not read
 * beyond the linear part (TC egress has pulled missing headers), nor messages and options. */
#define PARSE_COPIES

#include "base.h"
#include "phv.h"
#include "register.h"
#include "parse.h"
#include "chain.h"
#include "trace.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum trace_count {
	TRACE_SENT,          /* segments that left their queue with their words */
	TRACE_SENT_BYTES,    /* ... on the wire */
	TRACE_DROPPED,       /* segments with words that were freed instead */
	TRACE_DROPPED_BYTES,
	TRACE_BARE,          /* packets that did not pass TC egress */
	TRACE_FOREIGN,       /* packets whose words others have written */
	TRACE_STALE,         /* packets whose words are too old */
	TRACE_UNPARSED,      /* packets with words whose headers could not be read */
	TRACE_COUNTS
};

COUNTERS(trace_counters, TRACE_COUNTS);

const enum trace_count *unused_count __attribute__((unused));

/* The measured interfaces, of all namespaces. */
struct trace_key {
	__u64 netns; /* cookie */
	__u32 ifindex;
	__u32 pad;
};

struct trace_interface {
	__u16 queue;   /* number of its first transmit queue */
	__u8 form;     /* enum carry_form */
	__u8 l3_only;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct trace_key);
	__type(value, struct trace_interface);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} trace_watched SEC(".maps") TAG("pisa:table");

#define NEAR_PLACES 256

/* Whether any of them is at an index: a lookup here takes a fraction of one in the table of all, and most packets stop here. */
TABLE(trace_near, __u8, NEAR_PLACES);

static __always_inline __u32 near_place(const struct trace_key *key)
{
	return ((__u32)key->netns * 31 + key->ifindex) & (NEAR_PLACES - 1);
}

static __always_inline struct trace_interface *watched(const struct net_device *dev)
{
	struct trace_key key = {.netns = dev->nd_net.net->net_cookie, .ifindex = dev->ifindex};
	__u8 *near = reg_at(trace_near, near_place(&key));

	if (likely(!near || !*near))
		return 0;
	return bpf_map_lookup_elem(&trace_watched, &key);
}

/* The words that a queueing discipline does not use, at the end of the control block. */
static __always_inline int words_of(const struct sk_buff *skb, __u32 *words)
{
	const struct qdisc_skb_cb *cb = (const void *)skb->cb;

	return bpf_probe_read_kernel(words, 12, &cb->data[4 * CARRY_AT]);
}

static __always_inline struct trace_counters_t *counters(__u64 word)
{
	return reg_at(trace_counters, CONTROL_BANK(word));
}

static __always_inline int account(struct trace_counters_t *counters, enum carry_found found)
{
	if (likely(found == CARRY_OURS))
		return 1;
	if (found == CARRY_BARE)
		counters->c[TRACE_BARE]++;
	else if (found == CARRY_FOREIGN)
		counters->c[TRACE_FOREIGN]++;
	else
		counters->c[TRACE_STALE]++;
	return 0;
}

static __always_inline int parse_sent(struct phv *phv, const struct sk_buff *skb, int l3_only)
{
	struct gso gso = gso_of(skb);
	struct packet pkt = {
		.data = skb->data,
		.size = skb->len,
	};
	int reason;

	pkt.end = pkt.data + (pkt.size - skb->data_len);
	phv->mark = skb->mark;
	if (gso.size && gso.segs > 1)
		phv->segs = gso.segs;
	/* Linux 6.1 and older mark in a bit of its own that a tag was removed: such a packet counts four bytes more */
	if (skb->vlan_proto)
		set_vlan(phv, skb->vlan_tci);
	reason = parse(phv, &pkt, l3_only);
	if (skb->vlan_proto)
		phv->len += phv->segs * sizeof(struct vlan_hdr);
	return reason;
}

/* When a packet started to wait for others: if pacing gave it an earliest departure time, then at that time. Receive timestamps are of another clock, which is ahead; a
 * queue that ignores the time lets packets leave earlier. */
static __always_inline __u64 waits_since(const struct sk_buff *skb, __u64 enqueued, __u64 now)
{
	__u64 due = skb->tstamp;

	return due > enqueued && due <= now ? due : enqueued;
}

SEC("tp_btf/net_dev_start_xmit") int chain_tp_entry(__u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];
	const struct net_device *dev = (const void *)ctx[1];
	struct trace_interface *interface = watched(dev);
	struct trace_counters_t *count;
	__u64 now, enqueued, word;
	__u32 words[3] = {};
	struct phv *phv;

	if (likely(!interface))
		return 0;
	word = chain_word();
	count = counters(word);
	now = bpf_ktime_get_ns();
	if (!count || words_of(skb, words) || !account(count, carry_unpack(words, interface->form, dev->ifindex, now, &enqueued)))
		return 0;
	phv = phv_get();
	if (!phv)
		return 0;
	chain_begin(phv, word);
	parse_reset(phv);
	parse_reset_addresses(phv);
	phv->now = now;
	phv->ifindex = dev->ifindex;
	parse_sent(phv, skb, interface->l3_only);
	count->c[TRACE_SENT] += phv->segs;
	count->c[TRACE_SENT_BYTES] += phv->len;
	if (unlikely(!(phv->valid & PHV_IP))) {
		count->c[TRACE_UNPARSED]++;
		return 0;
	}
	phv->valid |= PHV_EGRESS;
	phv->enqueued = waits_since(skb, enqueued, now);
	phv->queue = interface->queue + skb->queue_mapping;
	phv->flow = interface->form == CARRY_WORDS ? words[1] : carry_flow(phv);
	chain_next(ctx, phv, &chain_tp);
	return 0;
}

/* In the slots of algorithms without a program for transmissions. */
SEC("tp_btf/net_dev_start_xmit") int chain_tp_over(__u64 *ctx)
{
	struct phv *phv = phv_get();

	if (phv)
		chain_next(ctx, phv, &chain_tp);
	return 0;
}

/* A packet is freed without being consumed. It is ours while it belongs to a measured interface and has its words: one that
 * has been received belongs to another. */
SEC("tp_btf/kfree_skb") int chain_tp_dropped(__u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];
	const struct qdisc_skb_cb *cb = (const void *)skb->cb;
	const struct net_device *dev = skb->dev;
	struct trace_interface *interface;
	struct trace_counters_t *count;
	__u32 words[3] = {}, bytes = 0;
	__u64 enqueued;
	struct gso gso;

	interface = watched(dev);
	if (likely(!interface))
		return 0;
	count = counters(chain_word());
	if (!count || words_of(skb, words))
		return 0;
	if (carry_unpack(words, interface->form, dev->ifindex, bpf_ktime_get_ns(), &enqueued) != CARRY_OURS)
		return 0;
	gso = gso_of(skb);
	bpf_probe_read_kernel(&bytes, sizeof(bytes), &cb->pkt_len);
	count->c[TRACE_DROPPED] += gso.size && gso.segs ? gso.segs : 1;
	count->c[TRACE_DROPPED_BYTES] += bytes;
	return 0;
}
