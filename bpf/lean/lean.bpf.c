//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* lean: which flows suffer most, from latency, loss, reordering or retransmission, in 40 KB per statistic.
 *
 * Liu, Zhou, Rottenstreich, Braverman, Rexford, "Memory-Efficient Performance Monitoring on Programmable Switches with Lean
 * Algorithms", sections 3 to 5.
 *
 * A statistic's table turns packets into finished events (latency.h, loss.h, ooo.h, retrans.h). An event's value is added to
 * the statistic's Count Sketch, and when the flow's estimate has reached a share of all flows' sum, the flow is reported,
 * once per window: a Bloom filter records that it was. At the end of the window userspace reads the sketch for every reported flow.
 *
 * Only events are added to the sketch and tested: most packets access a table and nothing else.
 *
 * Many cores: sketches and filters are shared words with atomic operations; no event is lost. Tables are shared too, since a
 * flow may change its core, and each header describes the effect of a race. */
#include "frame.h"
#include "bits.h"
#include "latency.h"
#include "loss.h"
#include "ooo.h"
#include "retrans.h"
#include "rate.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define STATISTIC(name)                                                                               \
	REGISTER_BANKED(name##_sum, 4, __u64, 1);                                                     \
	SKETCH(name, 5, 6, 7, 8, 9, 1024);                                                            \
	BLOOM(name##_b, 10, 11, 256)
STATISTIC(lean_lat);
STATISTIC(lean_loss);
STATISTIC(lean_ooo);
STATISTIC(lean_ret);

/* What the tables store of a packet. */
struct tables {
	struct lean_flow flow;
	struct latency latency;
	struct loss loss;
	struct ooo ooo;
	struct retrans retrans;
};

/* All state between a packet and its reports. The part after the tables is cleared for an event, which few packets cause. */
struct lean {
	struct tables t;
	struct sketch_place at;      /* the packet's flow: loss, ooo, retrans */
	struct sketch_place back_at; /* latency's: mostly the opposite direction's */
	union {
		__s32 limit[STATS];
		struct { /* by rate: latency's sums before its word was taken */
			__u64 sums;
			__u64 squares;
		};
	};
	__u8 rows[STATS]; /* rows that have reached the limit */
};

#define EACH(DO, arg)                                                                                 \
	do {                                                                                          \
		DO(STAT_LATENCY, latency, lean_lat, back_at, arg);                                    \
		DO(STAT_LOSS, loss, lean_loss, at, arg);                                              \
		DO(STAT_OOO, ooo, lean_ooo, at, arg);                                                 \
		DO(STAT_RETRANS, retrans, lean_ret, at, arg);                                         \
	} while (0)

/* Packets are of two kinds, which exclude each other: those with TCP data, and all others. Latency only stores the time of a packet
 * with data, and never finishes a delay; ooo and retrans use only these. Each kind has its own copy of the following,
 * so that verifier and prover process the paths of at most three statistics. */
enum kind { BARE, DATA };

#define TAKES(kind, stat) (ON(stat) && ((kind) == DATA || (stat) <= STAT_LOSS))
#define FINISHES(kind, stat) (TAKES(kind, stat) && ((kind) == BARE || (stat) != STAT_LATENCY || lean_lat_signed))

#define LOOK(stat, name, reg, where, stage)                                                                  \
	if (TAKES(kind, stat))                                                                        \
		name##_##stage(&t->name, phv, &t->flow, count)

/* The tables, stage by stage. */
static __always_inline void ways(struct tables *t, struct phv *phv, struct lean_counts_t *count, const int kind)
{
	if (kind == DATA && (ON(STAT_OOO) || ON(STAT_RETRANS)))
		segment_0(&t->flow, phv);
	if (TAKES(kind, STAT_OOO))
		ooo_0(&t->ooo, phv, &t->flow, count);
	if (TAKES(kind, STAT_RETRANS))
		retrans_0(&t->retrans, phv, &t->flow, count);
	if (ON(STAT_LATENCY))
		latency_ask(&t->latency, phv, &t->flow, kind == DATA);
	EACH(LOOK, 1);
}

static __always_inline void records(struct tables *t, struct phv *phv, struct lean_counts_t *count, const int kind)
{
	EACH(LOOK, 2);
	EACH(LOOK, 3);
}

/* The same as a global function, which the kernel's verifier processes once and separately: the paths of several statistics
 * through all stages would multiply. A call costs 10 ns if the kernel mitigates returns, so a single statistic avoids it, and so do
 * packets without data. */
__noinline int several_records(struct tables *t, struct phv *phv, struct lean_counts_t *count)
{
	if (!t || !phv || !count)
		return 0;
	records(t, phv, count, DATA);
	return 0;
}

/* A struct from a member on, including padding. */
#define CLEAR_FROM(p, member) __builtin_memset(&(p)->member, 0, sizeof(*(p)) - __builtin_offsetof(typeof(*(p)), member))

/* Only for packets with data. */
static __always_inline void clear_data(struct tables *t)
{
	CLEAR_FROM(&t->flow, segment);
	CLEAR_FROM(t, ooo);
}

/* Returns whether an event has finished. */
static __always_inline int look(struct tables *t, struct phv *phv, struct lean_counts_t *count, const int kind)
{
	t->flow.hash = hash_flow(phv, LEAN_SALT);
	t->flow.reverse = 0;
	__builtin_memset(&t->latency, 0, sizeof(t->latency));
	__builtin_memset(&t->loss, 0, sizeof(t->loss));
	if (kind == DATA)
		clear_data(t);
	ways(t, phv, count, kind);
	if (kind == DATA && (lean_stats & (lean_stats - 1)))
		several_records(t, phv, count);
	else
		records(t, phv, count, kind);
	return t->latency.event.value || t->loss.event.value || (kind == DATA && (t->ooo.event.value || t->retrans.event.value));
}

/* Positions of the events' flows: hashed once for all statistics that use the packet's own direction. */
__noinline int place(struct lean *l, struct phv *phv)
{
	if (!l || !phv)
		return 0;
	if (ON(STAT_LATENCY) && l->t.latency.event.value)
		lean_place(&l->back_at, phv, &l->t.flow, l->t.latency.event.reverse);
	if ((ON(STAT_LOSS) && l->t.loss.event.value) || (ON(STAT_OOO) && l->t.ooo.event.value) ||
	    (ON(STAT_RETRANS) && l->t.retrans.event.value))
		lean_place(&l->at, phv, &l->t.flow, 0);
	return 0;
}

/* The limit of a flow: a share 2^-shift of the sum of all flows in this window, this event included (definition 2, l1
 * norm), so that at no time more than 2^shift flows are above. */
static __always_inline __s32 limit_of(__u32 stat, __s64 sum)
{
	__u32 *shift = bpf_map_lookup_elem(&lean_shift, &stat);

	sum >>= shift ? READ_ONCE(*shift) & 63 : 0;
	return sum < 1 ? 1 : sum > 0x7fffffff ? 0x7fffffff : sum;
}

static __always_inline __s32 magnitude(__s32 x)
{
	__s32 negative = x >> 31;

	return (x ^ negative) - negative;
}

/* Sums of all flows. */
static __always_inline void total(struct lean *l, struct phv *phv, const int kind)
{
	__u64 *sum;

#define TOTAL(stat, name, reg, where, arg)                                                            \
	if (FINISHES(kind, stat) && l->t.name.event.value) {                                            \
		__s64 value_ = l->t.name.event.value;                                                   \
		if (ABSOLUTE(stat))                                                                   \
			value_ = magnitude(l->t.name.event.value);                                      \
		sum = reg_bank(reg##_sum, phv, 0);                                                    \
		if (sum)                                                                              \
			l->limit[stat] = limit_of(stat, (__s64)reg_add(sum, (__u64)value_) + value_); \
	}
	EACH(TOTAL, 0);
}

static __always_inline int reaches(__u32 stat, __s32 estimate, __s32 limit)
{
	__s64 short_by = (__s64)limit - (ABSOLUTE(stat) ? magnitude(estimate) : estimate) - 1;

	opaque(short_by); /* which rows reach it nobody foresees: no branch */
	return (__u64)short_by >> 63;
}

/* The sketches, row by row. */
static __always_inline void add(struct lean *l, struct phv *phv, struct lean_counts_t *count, const int kind)
{
#define ADD(stat, name, reg, where, row)                                                                     \
	if (FINISHES(kind, stat) && l->t.name.event.value && !KEYED(stat))                              \
		l->rows[stat] += reaches(stat, SKETCH_ADD(reg, row, phv, &l->where, l->t.name.event.value), l->limit[stat]) & COUNTS(row)
/* The switch has no stage left for the fifth row: three of four. */
#define COUNTS(row) ((row) < 4 || !hash_crc)
#define KEYED(stat) ((stat) == STAT_OOO && lean_ooo_mg_on) /* counters with keys instead of a sketch */
	if (FINISHES(kind, STAT_OOO) && KEYED(STAT_OOO) && l->t.ooo.event.value &&
	    (__s32)ooo_tally(&l->t.ooo, phv, &l->at) >= l->limit[STAT_OOO])
		l->rows[STAT_OOO] = SKETCH_ROWS;
/* The second sketch of latency uses the rows of retrans, which then is off: four rows fill a stage of a switch. */
#define ROW(row)                                                                                      \
	EACH(ADD, row);                                                                               \
	if (FINISHES(kind, STAT_LATENCY) && lean_mean_on && l->t.latency.event.value)                   \
		SKETCH_ADD(lean_ret, row, phv, &l->back_at, (__s32)l->t.latency.stands)
	ROW(0);
	ROW(1);
	ROW(2);
	ROW(3);
	ROW(4);
#define COUNT(stat, name, reg, where, arg)                                                                   \
	if (FINISHES(kind, stat) && l->t.name.event.value) {                                            \
		count->c[LEAN_EVENTS + stat]++;                                                       \
		count->c[LEAN_TOTAL + stat] += (__s64)l->t.name.event.value;                            \
		if (l->t.name.event.open || (l->t.name.event.value < 0 && !ABSOLUTE(stat)))                                    \
			l->rows[stat] = 0;                                                            \
	}
	EACH(COUNT, 0);
}

/* By rate: the number of events in what a packet was, for statistics whose table has no packets to count. */
static __always_inline __s8 hits(__u32 stat, const struct lean_event *e)
{
	if (stat == STAT_LATENCY)
		return e->hit;
	if (stat == STAT_LOSS)
		return (e->value > 0) - (e->value < 0);
	return e->value < 127 ? e->value : 127;
}

/* By rate: does the packet count for its flow? */
static __always_inline int counts(const struct lean_event *e)
{
	return e->trial || e->value;
}

/* A flow that takes a word, and what it held. */
static __always_inline void send_rate(const struct phv *phv, const struct sketch_place *at, const struct lean_event *e, const struct lean *l,
				      __u32 stat, __u64 found, struct lean_counts_t *count)
{
	struct lean_rate_report s = {.rows = at->rows, .proto = phv->proto, .family = phv->family, .stat = stat | RATE_PLACE(found) << 4,
				     .bank = phv->bank, .word = RATE_BEFORE(found)};
	const __u32 *src = e->reverse ? phv->dst : phv->src, *dst = e->reverse ? phv->src : phv->dst;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		s.src[i] = src[i];
		s.dst[i] = dst[i];
	}
	s.sport = e->reverse ? phv->dport : phv->sport;
	s.dport = e->reverse ? phv->sport : phv->dport;
	if (stat == STAT_LATENCY) {
		s.sums = l->sums;
		s.squares = l->squares;
	}
	if (ring_send(lean_reports, &s))
		count->c[LEAN_REPORTED + stat]++;
	else
		count->c[LEAN_UNREPORTED + stat]++;
}

/* By rate: stages 5 to 8 instead of sketch and filter (rate.h). */
__noinline int rate(struct lean *l, struct phv *phv, struct lean_counts_t *count)
{
	struct lean_event *delay;
	__u64 found[STATS] = {}; /* RATE_FOUND; here, so that the other form's stack is no larger for it */

	if (!l || !phv || !count)
		return 0;
	delay = &l->t.latency.event;
	if (ON(STAT_LATENCY) && counts(delay))
		lean_rows(&l->back_at, phv, &l->t.flow, delay->reverse);
	if ((ON(STAT_LOSS) && counts(&l->t.loss.event)) || (ON(STAT_OOO) && counts(&l->t.ooo.event)) ||
	    (ON(STAT_RETRANS) && counts(&l->t.retrans.event)))
		lean_rows(&l->at, phv, &l->t.flow, 0);
#define RATE(stat, name, reg, where, n)                                                                      \
	if (ON(stat) && counts(&l->t.name.event) && ((n) == 0 || RATE_FATE(found[stat]) == RATE_ELSEWHERE)) { \
		l->t.name.event.hit = hits(stat, &l->t.name.event);                                   \
		RATE_WAY(reg, n, phv, &l->where, &l->t.name.event, (stat) == STAT_LATENCY && l->t.name.event.value, found[stat]); \
	}
	EACH(RATE, 0);
	EACH(RATE, 1);
	if (ON(STAT_LATENCY) && delay->value && RATE_FATE(found[STAT_LATENCY]) != RATE_ELSEWHERE) {
		__u64 length = l->t.latency.word, weight = l->t.latency.stands; /* latency_slow() */

		rate_add(reg_bank(lean_lat_sum_r, phv, rate_sums(&l->back_at, found[STAT_LATENCY])), (weight * length) << RATE_STANDS | weight,
			 RATE_FATE(found[STAT_LATENCY]), &l->sums);
		rate_add(reg_bank(lean_lat_sq_r, phv, rate_sums(&l->back_at, found[STAT_LATENCY])), weight * length * length,
			 RATE_FATE(found[STAT_LATENCY]), &l->squares);
	}
#define RATE_END(stat, name, reg, where, arg)                                                                \
	if (ON(stat)) {                                                                               \
		count->c[LEAN_EVENTS + stat] += l->t.name.event.value != 0;                           \
		count->c[LEAN_TOTAL + stat] += (__s64)l->t.name.event.value;                          \
		if (RATE_FATE(found[stat]) == RATE_TAKEN)                                                      \
			send_rate(phv, &l->where, &l->t.name.event, l, stat, found[stat], count);                  \
		else if (RATE_FATE(found[stat]) == RATE_ELSEWHERE && l->t.name.event.hit > 0)                  \
			count->c[LEAN_CROWDED + stat]++;                                              \
	}
	EACH(RATE_END, 0);
	return 0;
}

static __always_inline void send(const struct phv *phv, const struct sketch_place *at, const struct lean_event *e, __u32 stat,
				 struct lean_counts_t *count)
{
	struct lean_report r = {.at = *at, .proto = phv->proto, .family = phv->family, .stat = stat, .bank = phv->bank,
				.value = e->value};
	const __u32 *src = e->reverse ? phv->dst : phv->src, *dst = e->reverse ? phv->src : phv->dst;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		r.src[i] = src[i];
		r.dst[i] = dst[i];
	}
	r.sport = e->reverse ? phv->dport : phv->sport;
	r.dport = e->reverse ? phv->sport : phv->dport;
	if (ring_send(lean_reports, &r))
		count->c[LEAN_REPORTED + stat]++;
	else
		count->c[LEAN_UNREPORTED + stat]++;
}

/* The filters: each flow once. */
__noinline int report(struct lean *l, struct phv *phv, struct lean_counts_t *count)
{
	__u32 fresh[STATS] = {};
	int fate = FATE_OTHER;

	if (!l || !phv || !count)
		return 0;
#define BITS(stat, name, reg, where, arg)                                                                    \
	if (ON(stat) && l->t.name.event.value && !l->t.name.event.open)                                   \
		bits_add(phv, &l->where, &l->t.name.event, count)
	if (lean_bits_on) {
		EACH(BITS, 0);
		return 0;
	}
#define FILTER(stat, name, reg, where, i)                                                                    \
	if (ON(stat) && l->rows[stat] >= lean_agree && !LISTED(stat))                                 \
		fresh[stat] |= BLOOM_SET(reg##_b_##i, phv, BLOOM_BITS(&l->where, i))
#define LISTED(stat) ((stat) == STAT_RETRANS && lean_ret_distinct) /* a list of elephants instead of the filter */
	EACH(FILTER, 0);
	if (ON(STAT_RETRANS) && LISTED(STAT_RETRANS) && l->rows[STAT_RETRANS] >= lean_agree)
		fate = distinct_list(phv, &l->at, l->limit[STAT_RETRANS]);
	EACH(FILTER, 1);
	if (fate != FATE_OTHER)
		distinct_rank(phv, &l->at, l->t.retrans.item);
	if (fate == FATE_TAKEN)
		fresh[STAT_RETRANS] = 1;
#define SEND(stat, name, reg, where, arg)                                                                    \
	if (ON(stat) && fresh[stat])                                                                  \
		send(phv, &l->where, &l->t.name.event, stat, count)
	EACH(SEND, 0);
	return 0;
}

/* Does any statistic use this packet? Loss any with an identifier, latency TCP, the others TCP with data. */
static __always_inline int wanted(const struct phv *phv, int kind)
{
	if (ON(STAT_LOSS))
		return 1;
	return ON(STAT_LATENCY) ? phv_has(phv, PHV_TCP) : kind == DATA;
}

static __always_inline void run(struct phv *phv, struct lean_counts_t *count, const int kind)
{
	struct lean l;

	if (likely(!look(&l.t, phv, count, kind)) && !lean_rate_on)
		return;
	if (kind != DATA)
		clear_data(&l.t);
	CLEAR_FROM(&l, at);
	if (lean_rate_on) {
		if (counts(&l.t.latency.event) || counts(&l.t.loss.event) || counts(&l.t.ooo.event) || counts(&l.t.retrans.event))
			rate(&l, phv, count);
		return;
	}
	total(&l, phv, kind); /* first: after stage 4 the prover forgets which tables were touched, and has fewer cases to follow */
	place(&l, phv);
	add(&l, phv, count, kind);
	report(&l, phv, count);
}

ALGORITHM(lean)
{
	struct lean_counts_t *count;
	int kind;

	if (!phv_has(phv, PHV_IP) || phv->proto == 1 || phv->proto == 58)
		return;
	count = counters_of(lean_counts, phv);
	if (!count)
		return;
	count->c[LEAN_PACKETS]++;
	if (unlikely(phv->segs > 1))
		count->c[LEAN_AGGREGATES]++;
	kind = seg_has_data(phv) ? DATA : BARE;
	if (!wanted(phv, kind))
		return;
	if (kind == DATA)
		run(phv, count, DATA);
	else
		run(phv, count, BARE);
}
