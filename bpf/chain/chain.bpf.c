//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The entry programs: parse once, count, and pass the vector to the chain of algorithms.
 *
 * One is loaded per interface and hook, with that interface's constants; all of them share the maps
 * of their instance. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "parse.h"
#include "qname.h"
#include "chain.h"
#include "clock.h"
#include "recirc.h"
#include "replay.h"
#include "trace.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Constants of one interface. */
const volatile _Bool entry_replay = 0;  /* time, length and link are in front of the packet */
const volatile _Bool entry_l3_only = 0; /* no Ethernet header */
const volatile _Bool entry_egress = 0;
const volatile _Bool entry_frags = 0;   /* bpf_xdp_get_buff_len exists and buffers may have fragments */
const volatile _Bool entry_load = 0;    /* bpf_xdp_load_bytes exists */
const volatile __u8 entry_carry = 0;    /* TC egress: enum carry_form */
const volatile __u32 entry_mtu = 0;     /* IP bytes above which an XDP buffer is an aggregate; 0: never */

enum chain_count {
	COUNT_REASON = 0, /* .. + PARSE_REASONS: packets by what stopped the parser; PARSED is 0 */
	COUNT_BYTES = 8,  /* on the wire */
	COUNT_AGGREGATES, /* packets of several segments */
	COUNT_SEGMENTS,   /* ... and their segments */
	COUNT_PULLED,     /* TC: headers had to be pulled into the linear part */
	COUNT_CARRIED,    /* TC egress: segments that were handed to the queue with their words: trace.h */
	COUNT_CARRIED_BYTES,
	CHAIN_COUNTS = 16
};
_Static_assert((int)PARSE_REASONS <= (int)COUNT_BYTES, "reasons have their own counters");

COUNTERS(chain_counters, CHAIN_COUNTS);

/* bpf2go exports these to Go. */
const enum parse_reason *unused_reason __attribute__((unused));
const enum chain_count *unused_count __attribute__((unused));
const enum carry_form *unused_form __attribute__((unused));

static __always_inline struct phv *begin(void)
{
	struct phv *phv = phv_get();

	if (!phv)
		return NULL;
	chain_begin(phv, chain_word());
	parse_reset(phv);
	if (entry_carry)
		parse_reset_addresses(phv);
	return phv;
}

/* Counts the packet and completes the vector; NULL if there is nothing for an algorithm to process, else the counters. */
static __always_inline struct chain_counters_t *finish(struct phv *phv, int reason)
{
	struct chain_counters_t *counters = counters_of(chain_counters, phv);

	if (!counters)
		return NULL;
	counters->c[reason & 7]++;
	counters->c[COUNT_BYTES] += phv->len;
	if (unlikely(phv->valid & PHV_AGGREGATE)) {
		counters->c[COUNT_AGGREGATES]++;
		counters->c[COUNT_SEGMENTS] += phv->segs;
	}
	if (unlikely(!(phv->valid & PHV_IP)))
		return NULL;
	if (entry_egress)
		phv->valid |= PHV_EGRESS;
	return counters;
}

/* A capture's time, length and link, written in front of the packet by the replay driver. */
static __always_inline int replay_begin(struct xdp_md *ctx, struct phv *phv, struct packet *pkt, int *l3_only)
{
	struct replay_meta *meta = (void *)(long)ctx->data_meta;

	if ((void *)(meta + 1) > pkt->data)
		return 0;
	phv->now = meta->time;
	phv->coin = meta->coin;
	phv->ifindex = meta->ifindex;
	phv->enqueued = meta->enqueued;
	phv->queue = meta->queue;
	pkt->size = meta->len;
	pkt->frags = NULL;
	*l3_only = !!(meta->shape & REPLAY_IP);
	if (meta->shape & REPLAY_EGRESS)
		phv->valid |= PHV_EGRESS;
	return (meta->shape & REPLAY_CAPTURED) >= (*l3_only ? 1 : 14);
}

/* The packet consists of segments of that many payload bytes; each repeats the headers. */
static __always_inline void split(struct phv *phv, const struct packet *pkt, __u32 bytes)
{
	if (phv->payload <= bytes)
		return;
	phv->segs = (phv->payload + bytes - 1) / bytes;
	phv->len += (phv->segs - 1) * pkt->off;
	phv->valid |= PHV_AGGREGATE;
}

/* Generic XDP receives what GRO has merged as one buffer; the number of segments is not recorded. */
static __always_inline void guess_segments(struct phv *phv, const struct packet *pkt)
{
	__u32 ip = phv->len - pkt->l3, headers = pkt->off - pkt->l3;

	if (entry_mtu && ip > entry_mtu && entry_mtu > headers)
		split(phv, pkt, entry_mtu - headers);
}

#define NEED_MESSAGE (NEED_DNS | NEED_NTP | NEED_RTP | NEED_BEGIN)

/* A message that a chain requests and that the parser could not read: it is not, or not all, in the linear part. */
static __always_inline int message_cut(const struct phv *phv, __u32 linear)
{
	__u32 asked;

	if (!requested(phv, NEED_MESSAGE) || !phv_has(phv, PHV_UDP))
		return 0;
	asked = begin_asked(phv);
	if (asked && phv->qname + asked > linear)
		return 1;
	asked = ntp_asked(phv);
	if (!asked)
		asked = dns_asked(phv);
	if (!asked)
		asked = rtp_asked(phv);
	return asked && phv->qname + asked > linear;
}

static __always_inline void message_xdp(struct xdp_md *ctx, struct phv *phv)
{
	__u64 message[NTP_MESSAGE / 8];
	__u32 at = phv->qname;

	if (dns_asked(phv) && !bpf_xdp_load_bytes(ctx, at, message, DNS_HEADER))
		parse_dns(phv, (void *)message);
	if (rtp_asked(phv) && !bpf_xdp_load_bytes(ctx, at, message, RTP_HEADER))
		parse_rtp(phv, (void *)message);
	if (ntp_asked(phv) && !bpf_xdp_load_bytes(ctx, at, message, NTP_MESSAGE))
		parse_ntp(phv, (void *)message);
	if (begin_asked(phv) == BEGIN_LONG && !bpf_xdp_load_bytes(ctx, at, message, BEGIN_LONG))
		parse_begin(phv, (void *)message, 1);
	if (begin_asked(phv) == BEGIN_SHORT && !bpf_xdp_load_bytes(ctx, at, message, BEGIN_SHORT))
		parse_begin(phv, (void *)message, 0);
}

static __always_inline void qname_xdp(struct xdp_md *ctx, struct phv *phv, __u32 linear)
{
	__u32 at = phv->qname, whole = entry_frags && !entry_replay ? bpf_xdp_get_buff_len(ctx) : linear;
	__u32 bytes = qname_room(phv, at, whole);
	__u64 size = qname_fetch(bytes);
	struct qname name = {};

	if (size && !bpf_xdp_load_bytes(ctx, at + DNS_HEADER - QNAME_COUNTS, &name, size))
		qname_set(phv, &name, bytes);
}

SEC("xdp.frags") int chain_xdp_entry(struct xdp_md *ctx)
{
	struct packet pkt = {
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	int reason, l3_only = entry_l3_only, whole = 1;
	__u32 linear;
	struct phv *phv = begin();

	if (!phv)
		return XDP_PASS;
	phv->ifindex = ctx->ingress_ifindex;
	pkt.size = pkt.end - pkt.data;
	if (entry_frags)
		pkt.frags = ctx;
	if (entry_replay)
		whole = replay_begin(ctx, phv, &pkt, &l3_only);
	if (whole)
		reason = parse(phv, &pkt, l3_only);
	else
		reason = PARSE_TRUNCATED, phv->len = pkt.size;
	if (reason == PARSED)
		guess_segments(phv, &pkt);
	forget(reason, phv->needs); /* one state, as for TC below */
	linear = (void *)(long)ctx->data_end - (void *)(long)ctx->data;
	if (entry_load && unlikely(message_cut(phv, linear)))
		message_xdp(ctx, phv);
	if (unlikely(options_left(phv)))
		parse_options(phv, (void *)(long)ctx->data, (void *)(long)ctx->data_end);
	if (entry_load && unlikely(requested(phv, NEED_QNAME)) && phv_has(phv, PHV_UDP))
		qname_xdp(ctx, phv, linear);
	if (finish(phv, reason))
		chain_next(ctx, phv, &chain_xdp);
	return xdp_verdict(phv);
}

#define PULL_BYTES 256 /* more than any header stack that the parser follows in practice */

/* cut: a header, or its options, did not fit into the linear part */
static __always_inline int parse_skb(struct __sk_buff *skb, struct phv *phv, int *cut)
{
	struct packet pkt = {
		.data = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.size = skb->len,
	};
	int reason;

	phv->ifindex = skb->ifindex;
	phv->mark = skb->mark;
	if (skb->gso_segs > 1)
		phv->segs = skb->gso_segs;
	if (skb->vlan_present)
		set_vlan(phv, skb->vlan_tci);
	reason = parse(phv, &pkt, entry_l3_only);
	*cut = reason == PARSE_TRUNCATED || pkt.data + pkt.off > pkt.end;
	if (unlikely(skb->gso_size) && phv->segs == 1 && reason == PARSED) /* from a guest: not counted yet */
		split(phv, &pkt, skb->gso_size);
	if (skb->vlan_present) /* on the wire the tag is in front of every segment */
		phv->len += phv->segs * sizeof(struct vlan_hdr);
	forget(*cut, pkt.any); /* one state, or what follows is walked for each way through the parser */
	forget(reason, pkt.any);
	return reason;
}

static __always_inline void qname_skb(struct __sk_buff *skb, struct phv *phv)
{
	__u32 at = phv->qname, bytes = qname_room(phv, at, skb->len);
	__u64 size = qname_fetch(bytes);
	struct qname name = {};

	if (size && !bpf_skb_load_bytes(skb, at + DNS_HEADER - QNAME_COUNTS, &name, size))
		qname_set(phv, &name, bytes);
}

/* Headers after the linear part of the buffer are pulled, once, and the packet is parsed again. */
static __always_inline int pull(struct __sk_buff *skb, struct phv *phv)
{
	struct chain_counters_t *counters = counters_of(chain_counters, phv);
	__u32 linear = (__u32)(skb->data_end - skb->data);

	if (!counters || linear >= skb->len || linear >= PULL_BYTES)
		return 0;
	if (bpf_skb_pull_data(skb, skb->len < PULL_BYTES ? skb->len : PULL_BYTES))
		return 0;
	counters->c[COUNT_PULLED]++;
	return 1;
}

/* The packet itself carries the time of enqueueing and its flow: trace.h. */
static __always_inline void carry(struct __sk_buff *skb, struct phv *phv, struct chain_counters_t *counters)
{
	__u64 now = clock_now(phv);
	__u32 words[3];

	phv->flow = carry_flow(phv);
	if (entry_carry == CARRY_TICK) {
		skb->cb[CARRY_AT + 2] = carry_pack_tick(now, phv->ifindex);
	} else {
		carry_pack(words, now, phv->flow, phv->ifindex);
		skb->cb[CARRY_AT] = words[0];
		skb->cb[CARRY_AT + 1] = words[1];
		skb->cb[CARRY_AT + 2] = words[2];
	}
	counters->c[COUNT_CARRIED] += phv->segs;
	counters->c[COUNT_CARRIED_BYTES] += phv->len;
}

SEC("tc") int chain_tc_entry(struct __sk_buff *skb)
{
	struct chain_counters_t *counters;
	struct phv *phv = begin();
	int reason, cut;

	if (!phv)
		return TC_NEXT;
	reason = parse_skb(skb, phv, &cut);
	if (unlikely(cut || message_cut(phv, (__u32)(skb->data_end - skb->data))) && pull(skb, phv)) {
		parse_reset(phv); /* the packet starts again; nothing has counted it yet */
		reason = parse_skb(skb, phv, &cut);
	}
	if (unlikely(options_left(phv)))
		parse_options(phv, (void *)(long)skb->data, (void *)(long)skb->data_end);
	if (unlikely(requested(phv, NEED_QNAME)) && phv_has(phv, PHV_UDP))
		qname_skb(skb, phv);
	counters = finish(phv, reason);
	if (!counters)
		return tc_verdict(phv);
	if (entry_carry && requested(phv, NEED_QUEUE))
		carry(skb, phv, counters);
	chain_next(skb, phv, &chain_tc);
	return tc_verdict(phv);
}
