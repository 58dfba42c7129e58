/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the statistics of lean share: which are enabled, the flow, its positions in sketch and filter, counters, reports.
 *
 * A statistic has its own header. It has tables in stages 0 to 3 and turns a packet into a finished event of
 * some value for the flow that the packet's data belongs to. The program then adds the values of all statistics, stage by
 * stage: sums in stage 4, rows in stages 5 to 9, filters in stages 10 and 11. */
#pragma once

#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "coin.h"
#include "hash.h"
#include "bins.h"
#include "sketch.h"
#include "bloom.h"
#include "report.h"

enum lean_stat { STAT_LATENCY, STAT_LOSS, STAT_OOO, STAT_RETRANS, STATS };


const volatile __u32 lean_stats = 15;      /* one bit a statistic */
const volatile _Bool lean_pair = 0;        /* flows are source-destination pairs, else 5-tuples */
const volatile _Bool lean_bytes = 0;       /* events count payload bytes where they have any, else packets */
const volatile __u32 lean_absolute = 0;    /* one bit a statistic: estimates may be negative, their size counts */
const volatile __u32 lean_agree = 3;       /* rows that must reach the limit: 3 is the median */
const volatile _Bool lean_rate_on = 0;     /* events are counted beside the packets of their flow: rate.h */

#define ON(stat) (lean_stats >> (stat) & 1)
#define ABSOLUTE(stat) (lean_absolute >> (stat) & 1)
#define LEAN_SALT 0x6c65616e /* keeps flow hashes apart from other uses */

enum lean_counter {
	LEAN_PACKETS,  /* packets that any statistic looked at */
	LEAN_EVENTS,   /* [STATS] finished events */
	LEAN_REPORTED = LEAN_EVENTS + STATS,   /* [STATS] flows reported */
	LEAN_UNREPORTED = LEAN_REPORTED + STATS, /* [STATS] reports that the full ring refused */
	LEAN_TOTAL = LEAN_UNREPORTED + STATS,  /* [STATS] sum of the values added (modulo 2^64) */
	LEAN_AGGREGATES = LEAN_TOTAL + STATS,  /* packets of several segments (GSO, GRO) */
	LEAN_REQUESTS,   /* latency: segments that expect an ACK */
	LEAN_UNLUCKY,    /* ... not admitted (1 - p) */
	LEAN_REPEATED,   /* ... that found their own record: sent again */
	LEAN_INSERTED,   /* ... written */
	LEAN_EVICTED,    /* records overwritten before their ACK */
	LEAN_RESPONSES,  /* ACKs that were looked up */
	LEAN_STALE,      /* ... that found a record too old for its age to be known */
	LEAN_NUMBERED,   /* loss: packets with an identifier */
	LEAN_OWNED,      /* ... of the flow in memory */
	LEAN_TAKEN,      /* ... that took an entry */
	LEAN_REFUSED,    /* ... of a flow that another one keeps out */
	LEAN_JUMPS,      /* ... whose identifier did not advance by a small step */
	LEAN_GAPS,       /* steps of more than one */
	LEAN_GAP_SUM,    /* identifiers that were left out */
	LEAN_GIVEN_BACK, /* late packets that gave a gap back */
	LEAN_DELAY,      /* latency: sum of the finished delays, unweighted, in ticks */
	LEAN_SQUARES,    /* ... of the squares of what they added, in 2^8 */
	LEAN_NAMELESS,   /* keys from bits: events of IPv6 flows */
	LEAN_OOO = 36,      /* 7 counters of ooo.h */
	LEAN_CROWDED = 43,  /* [STATS] by rate: events of flows that found no place */
	LEAN_SLOW = 47,     /* by rate: delays that were long enough to be events */
	LEAN_COMPARED = 48, /* by rate: packets with an identifier that could have followed a loss */
	LEAN_RETRANS = 50,  /* 14 counters of retrans.h */
	LEAN_COUNTS = 64
};

COUNTERS(lean_counts, LEAN_COUNTS);

/* A flow whose estimate reached the limit, once per window. */
struct lean_report {
	struct sketch_place at;
	__u32 src[4]; /* of the data's direction */
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u8 stat;
	__u8 bank;
	__u64 value; /* of the event that reached it */
};

RING(lean_reports, 1 << 20);

/* By statistic: a flow is reported when it has 2^-shift of all flows' sum. Userspace adapts it to the number of reports. */
TABLE(lean_shift, __u32, STATS);

const enum lean_stat *unused_stat __attribute__((unused));
const enum lean_counter *unused_counter __attribute__((unused));
const struct lean_report *unused_report __attribute__((unused));

/* A packet with data, as input of ooo and retrans: segment.h. */
struct segment {
	__u8 data;   /* a data packet */
	__u8 copy;   /* ... that a mirror showed before */
	__u8 luck;   /* four bits that differ between packets: 0 with probability 1/16 */
	__u16 time;  /* ticks of 2^SEG_TICK ns */
	__u32 signature; /* of the flow; neither half is 0 */
	__u32 start; /* number of the first byte */
	__u32 end;   /* ... after the last one */
	__u32 way[2]; /* 32 bits of hash for a place in each way */
};

/* A packet's flow, hashed once for all statistics. */
struct lean_flow {
	__u64 hash;    /* directional 5-tuple, of the packet */
	__u64 reverse; /* of the opposite direction; 0 until it is used */
	struct segment segment;
};

/* A packet's event in a statistic. */
struct lean_event {
	__s32 value; /* 0: nothing finished */
	__u8 reverse; /* it belongs to the opposite direction's flow */
	__u8 open;    /* added, but not finished: the limit is not tested */
	__u8 trial;   /* by rate: packets that could have been one */
	__s8 hit;     /* ... and those that were; -1 takes one back */
};

/* By rate: a packet that could have been an event. */
static __always_inline void lean_trial(struct lean_event *e, const struct phv *phv)
{
	if (lean_rate_on)
		e->trial = phv->segs < 255 ? phv->segs : 255;
}

static __always_inline __u64 lean_reverse(const struct phv *phv, struct lean_flow *f)
{
	if (!f->reverse)
		f->reverse = hash_reverse(phv, LEAN_SALT);
	return f->reverse;
}

/* 64 bits that identify the flow by the configured key. */
static __always_inline __u64 lean_key(const struct phv *phv, struct lean_flow *f, int reverse)
{
	__u64 a, b;

	if (!lean_pair)
		return reverse ? lean_reverse(phv, f) : f->hash;
	a = hash_endpoint(phv->src, 0, 0, phv->family);
	b = hash_endpoint(phv->dst, 0, 0, phv->family);
	return reverse ? hash_pair(b, a, LEAN_SALT) : hash_pair(a, b, LEAN_SALT);
}

static __always_inline void lean_place_crc(struct sketch_place *at, const struct phv *phv, int reverse)
{
	struct hash_input in;

	hash_fields(&in, phv, reverse, 0);
	if (lean_pair)
		in.w[8] = 0;
	at->rows = hash_crc32(&in, 0) | (__u64)hash_crc32(&in, 1) << 32;
	at->rest = hash_crc32(&in, 2) | (__u64)hash_crc32(&in, 3) << 32;
}

/* Only the part of a place that tables by rate use. */
static __always_inline void lean_rows(struct sketch_place *at, const struct phv *phv, struct lean_flow *f, int reverse)
{
	if (hash_crc)
		lean_place_crc(at, phv, reverse);
	else
		at->rows = hash_mix(lean_key(phv, f, reverse) + 0x632be59bd9b4e019ULL);
}

static __always_inline void lean_place(struct sketch_place *at, const struct phv *phv, struct lean_flow *f, int reverse)
{
	__u64 key;

	if (hash_crc) {
		lean_place_crc(at, phv, reverse);
		return;
	}
	key = lean_key(phv, f, reverse);
	at->rows = hash_mix(key + 0x632be59bd9b4e019ULL);
	at->rest = hash_mix(key + 0x9e3779b97f4a7c15ULL);
}
