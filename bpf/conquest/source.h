/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where a packet's way through a queue is known from: arrival a and departure d (section 5.3.1).
 *
 * carried  The vector has both: the start of transmission of a host's own queue, or a switch's metadata in a replay.
 * tap      A packet is seen before the queue and after it (section 5.6). Its digest and arrival wait in an array, in one word of 32 + 32
 *          bits, until the second sighting takes them. A word is never overwritten unless it is older than the longest delay: its
 *          packet was dropped, or took another path. What is seen after the queue only (an untapped link, a taken slot) asks
 *          nothing, but counts as a departure. Two cores that write one slot at once: the later one stays, the other is unmatched.
 * model    The queue does not exist: packets of a capture go through one of a given rate and size, in one register that holds
 *          when its link is free. A packet's departure is known on arrival, and a FIFO queue's departures are in the order of
 *          arrivals, so that the snapshots see what they would see at its end. */
#pragma once

#include "base.h"
#include "phv.h"
#include "clock.h"
#include "hash.h"
#include "register.h"

enum conquest_source_kind { SOURCE_CARRIED, SOURCE_TAP, SOURCE_MODEL };

const volatile __u32 conquest_source = SOURCE_MODEL;
const volatile __u32 conquest_egress = 0;         /* tap: interface after the queue; 0: packets that leave this host */
const volatile __u64 conquest_longest = 1ULL << 26; /* tap: ns after which nobody arrives any more */
const volatile __u32 conquest_ns_per_byte = 52429; /* model: in 2^-16 */
const volatile __u64 conquest_room = 8000000;     /* model: ns that a full queue takes to drain */

#define TAP_TICK 4 /* a stored arrival counts 2^4 ns: 68 s */

/* {digest, arrival in ticks}; 0 is empty */
REGISTER(conquest_tap, 1, __u64, 1);
/* when the model's link is free, ns */
REGISTER(conquest_free, 1, __u64, 1);

enum conquest_fate {
	FATE_LEFT,      /* delay and departure are known */
	FATE_UNMATCHED, /* it left, its arrival is not known */
	FATE_WAITS,     /* it has arrived */
	FATE_BLOCKED,   /* ... and its slot is taken */
	FATE_AGAIN,     /* ... for the second time */
	FATE_EXPIRED,   /* ... in the place of one that has waited too long */
	FATE_DROPPED,   /* the model's queue is full */
	FATES
};

struct passage {
	__u64 departure; /* ns */
	__u64 delay;
};

/* What both sightings of a packet have in common and other packets of its flow do not: TCP's numbers, the IPv4 identification where the
 * sender counts it up, the beginning of the payload of what is no TCP. */
static __always_inline __u64 tap_digest(const struct phv *phv)
{
	__u64 h = hash_flow(phv, 0x7a90), numbers = 0, rest = phv->payload != 0;

	if (phv->valid & PHV_TCP)
		numbers = (__u64)phv->seq << 32 | phv->ack;
	else if (phv->valid & PHV_ICMP)
		numbers = phv->seq;
	else if (phv->valid & PHV_UDP)
		numbers = phv->begin;
	if (phv->valid & PHV_IPID)
		rest |= (__u64)phv->ipid << 8;
	return hash_mix(h ^ numbers * 0x9e3779b97f4a7c15ULL ^ rest);
}

static __always_inline int tap_enter(__u64 *slot, __u32 digest, __u32 now)
{
	__u64 word = reg_load(slot);
	__u32 age = now - (__u32)word + CLOCK_BEHIND; /* another core's clock may be ahead */

	if (word != 0 && age <= (__u32)(conquest_longest >> TAP_TICK) + CLOCK_BEHIND)
		return (__u32)(word >> 32) == digest ? FATE_AGAIN : FATE_BLOCKED;
	reg_store(slot, (__u64)digest << 32 | now);
	return word ? FATE_EXPIRED : FATE_WAITS;
}

static __always_inline int tap_leave(__u64 *slot, __u32 digest, __u32 now, struct passage *p)
{
	__u64 word = reg_load(slot);

	if ((__u32)(word >> 32) != digest)
		return FATE_UNMATCHED;
	reg_store(slot, 0);
	p->delay = (__u64)clock_since(now, (__u32)word) << TAP_TICK;
	return FATE_LEFT;
}

static __always_inline int tap(struct phv *phv, struct passage *p)
{
	__u64 digest = tap_digest(phv), *slot = reg_at(conquest_tap, (__u32)digest & (conquest_tap_entries - 1));
	__u32 tag = digest >> 32 | 1, now = clock_now(phv) >> TAP_TICK;

	if (!slot)
		return FATE_BLOCKED;
	if (conquest_egress ? phv->ifindex == conquest_egress : !!(phv->valid & PHV_EGRESS))
		return tap_leave(slot, tag, now, p);
	return tap_enter(slot, tag, now);
}

/* A packet leaves when its transmission begins. One that finds more waiting than there is room for is dropped. */
static __always_inline int model(struct phv *phv, struct passage *p)
{
	__u64 *word = reg_at(conquest_free, 0), now = clock_now(phv), begin, took = (__u64)phv->len * conquest_ns_per_byte >> 16;

	if (!word)
		return FATE_DROPPED;
	begin = reg_load(word);
	if (begin < now)
		begin = now;
	p->departure = begin;
	p->delay = begin - now;
	if (p->delay + took > conquest_room)
		return FATE_DROPPED;
	reg_store(word, begin + took);
	return FATE_LEFT;
}

static __always_inline int carried(struct phv *phv, struct passage *p)
{
	if (!phv->enqueued)
		return FATE_UNMATCHED;
	p->delay = p->departure > phv->enqueued ? p->departure - phv->enqueued : 0;
	return FATE_LEFT;
}

static __always_inline int passage_of(struct phv *phv, struct passage *p)
{
	p->departure = clock_now(phv);
	p->delay = 0;
	if (conquest_source == SOURCE_TAP)
		return tap(phv, p);
	if (conquest_source == SOURCE_MODEL)
		return model(phv, p);
	return carried(phv, p);
}
