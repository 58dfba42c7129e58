/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which packets are requests, which are responses, and what both contain: the matching rules of the fridge and of its baselines.
 *
 * A request and its response have the same question: the flow in the direction of the request, and a
 * discriminator that only these two share. Zheng et al. (fridges, section 2.1) match handshakes; their data set
 * of section 5 matches data with the acknowledgement that it expects. The oracle that checks these rules from
 * the outside is userspace/fridge/delay. */
#pragma once

#include "phv.h"
#include "hash.h"

enum match_kind {
	MATCH_TCP_HANDSHAKE, /* SYN, SYN-ACK, and the ACK after it */
	MATCH_TCP_DATA,      /* a segment and the ACK of its last byte */
	MATCH_TCP_TIMESTAMP, /* TSval and TSecr */
	MATCH_DNS,
	MATCH_NTP,
	MATCH_ICMP_ECHO,
	MATCH_TCP_DURATION,  /* SYN and the first FIN or RST */
	MATCH_KINDS
};

/* Who sends requests in tcp-data and tcp-timestamp. */
enum match_side_kind {
	SIDE_ANY,     /* segments with payload are requests, those without are responses */
	SIDE_EGRESS,  /* what this host sends is a request, what it receives a response */
	SIDE_INGRESS, /* the opposite */
};

const volatile __u32 match_rule = MATCH_TCP_HANDSHAKE;
const volatile __u32 match_side = SIDE_ANY;
const volatile _Bool match_finals = 0; /* tcp-handshake: the ACK that ends a handshake is of interest too */

enum role { ROLE_NONE, ROLE_REQUEST, ROLE_RESPONSE, ROLE_FINAL, ROLE_UPDATE };

/* The role of a packet for a matching algorithm. */
struct question {
	__u64 disc; /* what distinguishes the requests of one flow */
	__u8 role;
	__u8 reverse; /* the request has the other direction */
};

/* Where a question is stored: independent bits, equal for a request and its response. */
struct match_hashes {
	__u32 id;   /* names the request; never 0 */
	__u32 slot;
	__u32 luck; /* coin and route */
};

static __always_inline void ask(struct question *q, __u8 role, __u8 reverse, __u64 disc)
{
	q->role = role;
	q->reverse = reverse;
	q->disc = disc;
}

/* SYN and SYN-ACK are identified by these two bits alone: ECN handshakes set further ones. */
static __always_inline void ask_handshake(struct question *q, const struct phv *phv)
{
	__u8 flags = phv->tcp_flags & (TCP_SYN | TCP_ACK);

	if (!(phv->valid & PHV_TCP))
		return;
	if (flags == TCP_SYN)
		ask(q, ROLE_REQUEST, 0, phv->seq + 1);
	else if (flags == (TCP_SYN | TCP_ACK))
		ask(q, ROLE_RESPONSE, 1, phv->ack);
	else if (match_finals && flags == TCP_ACK && !phv->payload && !(phv->tcp_flags & (TCP_FIN | TCP_RST)))
		ask(q, ROLE_FINAL, 0, phv->seq);
}

/* Is this packet a request, by direction or, if both directions are seen, by payload? */
static __always_inline int asks(const struct phv *phv)
{
	if (match_side == SIDE_ANY)
		return phv->payload != 0;
	return !(phv->valid & PHV_EGRESS) == (match_side == SIDE_INGRESS);
}

/* The expected ACK of section 5: sequence number plus payload, one more for SYN or FIN. Of an aggregate of segments it
 * is the last byte's. */
static __always_inline void ask_data(struct question *q, const struct phv *phv)
{
	__u32 syn = (phv->tcp_flags >> 1) & 1, fin = phv->tcp_flags & TCP_FIN, bytes = phv->payload + syn + fin;
	__u8 ack = phv->tcp_flags & TCP_ACK, any = match_side == SIDE_ANY;

	if (!(phv->valid & PHV_TCP) || (phv->tcp_flags & TCP_RST))
		return;
	if ((asks(phv) && bytes) || (any && syn && !ack))
		ask(q, ROLE_REQUEST, 0, phv->seq + bytes);
	else if (ack && (any || !asks(phv)))
		ask(q, ROLE_RESPONSE, 1, phv->ack);
}

static __always_inline void ask_timestamp(struct question *q, const struct phv *phv)
{
	if (!(phv->valid & PHV_TSOPT))
		return;
	if (asks(phv) && (phv->payload || (phv->tcp_flags & (TCP_SYN | TCP_FIN))))
		ask(q, ROLE_REQUEST, 0, phv->tsval);
	else if ((phv->tcp_flags & TCP_ACK) && (match_side == SIDE_ANY || !asks(phv)))
		ask(q, ROLE_RESPONSE, 1, phv->tsecr);
}

static __always_inline void ask_application(struct question *q, const struct phv *phv, __u16 port)
{
	if ((phv->valid & PHV_APP_REQUEST) && phv->dport == port)
		ask(q, ROLE_REQUEST, 0, phv->app_id);
	else if ((phv->valid & PHV_APP_RESPONSE) && phv->sport == port)
		ask(q, ROLE_RESPONSE, 1, phv->app_id);
}

static __always_inline void ask_echo(struct question *q, const struct phv *phv)
{
	if (!(phv->valid & PHV_ICMP))
		return;
	if (phv->icmp_type == 8 || phv->icmp_type == 128)
		ask(q, ROLE_REQUEST, 0, phv->seq);
	else
		ask(q, ROLE_RESPONSE, 1, phv->seq);
}

/* One question for a whole connection: the smaller endpoint hash is first. */
static __always_inline void ask_duration(struct question *q, const struct phv *phv)
{
	__u8 reverse;

	if (!(phv->valid & PHV_TCP))
		return;
	hash_endpoints(phv);
	reverse = phv->ep_src > phv->ep_dst;
	if ((phv->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		ask(q, ROLE_REQUEST, reverse, 0);
	else if (phv->tcp_flags & (TCP_FIN | TCP_RST))
		ask(q, ROLE_RESPONSE, reverse, 0);
	else
		ask(q, ROLE_UPDATE, reverse, 0);
}

static __always_inline void classify(struct question *q, const struct phv *phv)
{
	q->role = ROLE_NONE;
	if (match_rule == MATCH_TCP_HANDSHAKE)
		ask_handshake(q, phv);
	else if (match_rule == MATCH_TCP_DATA)
		ask_data(q, phv);
	else if (match_rule == MATCH_TCP_TIMESTAMP)
		ask_timestamp(q, phv);
	else if (match_rule == MATCH_DNS)
		ask_application(q, phv, 53);
	else if (match_rule == MATCH_NTP)
		ask_application(q, phv, 123);
	else if (match_rule == MATCH_ICMP_ECHO)
		ask_echo(q, phv);
	else
		ask_duration(q, phv);
}

/* lucky: the caller uses h->luck, which costs another mix. */
static __always_inline void match_hash(struct match_hashes *h, const struct phv *phv, const struct question *q, int lucky)
{
	struct hash_input in;
	__u64 mixed;

	if (hash_crc) {
		hash_fields(&in, phv, q->reverse, q->disc);
		h->id = hash_crc32(&in, 0);
		h->slot = hash_crc32(&in, 1);
		h->luck = hash_crc32(&in, 2);
	} else {
		mixed = q->reverse ? hash_reverse(phv, 0) : hash_flow(phv, 0);
		mixed = hash_mix(mixed ^ q->disc * 0x9e3779b97f4a7c15ULL);
		h->id = mixed;
		h->slot = mixed >> 32;
		h->luck = lucky ? hash_mix(mixed + 0x632be59bd9b4e019ULL) : 0;
	}
	h->id |= h->id == 0;
}
