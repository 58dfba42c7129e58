/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Latency: total delay between a flow's segments and their acknowledgements (section 4.1).
 *
 * matched  A segment leaves its time in a small fridge (Zheng et al., "Unbiased Delay Measurement in the Data Plane"), the
 *          ACK of its last byte takes it out, and the finished delay goes into the sketch, weighted by p^-1 (1 - 1/M)^-x:
 *          with that probability its like was evicted in the meantime. A segment that nobody acknowledges leaves nothing.
 * signed   Algorithm 1 with the signs of the text: a segment adds minus its time, an ACK its time. One segment without an
 *          ACK leaves its whole time in five cells (docs/lean.md has the variance).
 *
 * A record is one word of 32 bits, {signature 15, time 17}: written and read whole, so no core sees half of one. Time
 * counts ticks of 2^16 ns and wraps at 8.6 s; a record is good for half of that, 4.3 s. Sums of coarse ticks are
 * not biased: where in a tick a segment lies is chance. A segment that is sent again finds its own record and leaves it:
 * its clock started when the user began to wait.
 *
 * x is not stored. The insertion counter's value is written down once a tick of 2^20 ns, and the record's time says where
 * to look: 256 words instead of one beside every record. Delays of more than 268 ms read a younger word, and count
 * with too small a weight; under a load at which that matters, no record lives that long.
 *
 * Log and exponential are tables, so that a switch can do the product too: value = exp(log delay + log weight). */
#pragma once

#include "frame.h"
#include "match.h"

#define LAT_TIME 17
#define LAT_TIME_MASK ((1U << LAT_TIME) - 1)
#define LAT_TICK 16
#define LAT_OLD (1U << (LAT_TIME - 1)) /* a record's largest age, in ticks */
#define LAT_EARLY 16                   /* ticks by which another core's record may be younger than the packet */
#define LAT_HISTORY_TICK 4             /* a word of the history covers 2^4 ticks */
#define LAT_MANTISSA 5
#define LAT_LOG_BINS BINS(LAT_TIME, LAT_MANTISSA)
#define LAT_WEIGHT_BINS BINS(24, LAT_MANTISSA)
#define LAT_EXP_BINS 2048 /* logarithms in 2^-6 */

const volatile _Bool lean_lat_signed = 0;

/* stage 1: {signature, time}; stage 2: insertions so far; stage 3: what that was at a time */
REGISTER(lean_lat_fr, 1, __u32, 2048);
REGISTER(lean_lat_ins, 2, __u32, 1);
REGISTER(lean_lat_hist, 3, __u32, 256);

/* p in 2^-16, and -log2 p in 2^-6. Userspace follows the load with it: a change weighs the few requests wrong that wait for
 * their ACK while p rises. */
struct lean_chance {
	__u32 admit;
	__u32 log;
};
TABLE(lean_lat_p, struct lean_chance, 1);
TABLE(lean_lat_log, __u32, LAT_LOG_BINS);       /* by bin of the delay in ticks: log2 in 2^-6 */
TABLE(lean_lat_weight, __u32, LAT_WEIGHT_BINS); /* by bin of x: log2 of (1 - 1/M)^-x in 2^-6 */
TABLE(lean_lat_exp, __u32, LAT_EXP_BINS);       /* 2^(index / 64) */

struct latency {
	struct lean_event event;
	__u8 asked;    /* enum role: what the packet is */
	__u8 role;     /* enum role, ROLE_NONE from the stage on at which nothing more is to be done */
	__u32 slot;
	__u32 word;    /* what the record is or would be */
	__u32 then;    /* a response's record: its time */
	__u32 delay;   /* ticks */
	__u32 inserts; /* the counter, at this packet */
	__u32 log;     /* -log2 p */
};

static __always_inline __u32 lat_ticks(struct phv *phv)
{
	return (__u32)(clock_now(phv) >> LAT_TICK);
}

/* Algorithm 1: the whole 32 bits of time; what overflows cancels modulo 2^32. */
static __always_inline void latency_signed(struct latency *s, struct phv *phv, const struct question *q)
{
	s->event.value = q->role == ROLE_REQUEST ? -(__s32)lat_ticks(phv) : (__s32)lat_ticks(phv);
	s->event.open = q->role == ROLE_REQUEST;
	s->event.reverse = q->reverse;
}

/* Where the record lies; false when the coin lets this segment and its ACK go. */
static __always_inline int latency_locate(struct latency *s, const struct phv *phv, const struct lean_flow *f,
					  const struct question *q)
{
	struct hash_input in;
	__u32 id, luck, zero = 0;
	struct lean_chance *chance = bpf_map_lookup_elem(&lean_lat_p, &zero);
	__u64 mixed;

	if (!chance)
		return 0;
	s->log = READ_ONCE(chance->log);
	if (hash_crc) {
		hash_fields(&in, phv, q->reverse, q->disc);
		id = hash_crc32(&in, 0);
		s->slot = hash_crc32(&in, 1);
		luck = hash_crc32(&in, 2);
	} else {
		mixed = q->reverse ? hash_reverse(phv, LEAN_SALT) : f->hash;
		mixed = hash_mix(mixed ^ q->disc * 0x9e3779b97f4a7c15ULL);
		id = mixed;
		luck = mixed >> 16;
		s->slot = mixed >> 32;
	}
	id >>= LAT_TIME; /* the high 15 bits; luck below takes others */
	s->word = (id + !id) << LAT_TIME;
	s->slot &= lean_lat_fr_entries - 1;
	return (luck & 0xffff) < READ_ONCE(chance->admit);
}

/* A segment: its record, unless it is there already. */
static __always_inline void latency_insert(struct latency *s, struct phv *phv, struct lean_counts_t *count)
{
	__u32 now = lat_ticks(phv), old, *entry = reg_at(lean_lat_fr, s->slot);

	s->then = now;
	if (!entry)
		return;
	old = reg_load(entry);
	if ((old ^ s->word) >> LAT_TIME || ((now - old) & LAT_TIME_MASK) > LAT_OLD) {
		reg_store(entry, s->word | (now & LAT_TIME_MASK));
		count->c[LEAN_INSERTED]++;
		count->c[LEAN_EVICTED] += old != 0;
		return;
	}
	count->c[LEAN_REPEATED]++;
	s->role = ROLE_NONE;
}

/* An ACK: takes its segment's record. */
static __always_inline void latency_take(struct latency *s, struct phv *phv, struct lean_counts_t *count)
{
	__u32 now = lat_ticks(phv), old, *entry = reg_at(lean_lat_fr, s->slot);

	s->role = ROLE_NONE;
	if (!entry)
		return;
	old = reg_load(entry);
	if ((old ^ s->word) >> LAT_TIME || reg_cas(entry, old, 0) != old)
		return;
	s->delay = (now - old) & LAT_TIME_MASK;
	if (s->delay > LAT_TIME_MASK - LAT_EARLY)
		s->delay = 0;
	if (s->delay > LAT_OLD) {
		count->c[LEAN_STALE]++;
		return;
	}
	s->then = now - s->delay;
	s->role = ROLE_RESPONSE;
}

/* What the packet is to the fridge, before its stage: it asks, it answers, or neither. data: a packet that asks for sure. */
static __always_inline void latency_ask(struct latency *s, struct phv *phv, const struct lean_flow *f, const int data)
{
	struct question q = {};

	s->role = ROLE_NONE;
	if (data)
		ask(&q, ROLE_REQUEST, 0, phv->seq + phv->payload + (phv->tcp_flags & TCP_FIN));
	else
		ask_data(&q, phv);
	s->asked = q.role;
	if (q.role == ROLE_NONE)
		return;
	s->event.reverse = q.reverse;
	if (lean_lat_signed)
		latency_signed(s, phv, &q);
	else if (latency_locate(s, phv, f, &q))
		s->role = q.role;
}

static __always_inline void latency_1(struct latency *s, struct phv *phv, const struct lean_flow *f,
				      struct lean_counts_t *count)
{
	count->c[LEAN_REQUESTS] += s->asked == ROLE_REQUEST;
	count->c[LEAN_RESPONSES] += s->asked == ROLE_RESPONSE;
	count->c[LEAN_UNLUCKY] += s->asked == ROLE_REQUEST && s->role == ROLE_NONE;
	if (s->role == ROLE_REQUEST)
		latency_insert(s, phv, count);
	else if (s->role == ROLE_RESPONSE)
		latency_take(s, phv, count);
}

static __always_inline void latency_2(struct latency *s, struct phv *phv, const struct lean_flow *f,
				      struct lean_counts_t *count)
{
	__u32 *inserts;

	if (s->role == ROLE_NONE)
		return;
	inserts = reg_at(lean_lat_ins, 0);
	if (!inserts)
		return;
	s->inserts = s->role == ROLE_REQUEST ? reg_add(inserts, 1) + 1 : reg_load(inserts);
}

static __always_inline __u32 latency_value(__u32 delay, __u32 x, __u32 p)
{
	__u32 bin = bins_index(delay, LAT_MANTISSA), *log, *weight, *exp, sum;

	if (x >> 24) /* from the future: another core's */
		x = 0;
	log = bpf_map_lookup_elem(&lean_lat_log, &bin);
	bin = bins_index(x, LAT_MANTISSA);
	weight = bpf_map_lookup_elem(&lean_lat_weight, &bin);
	if (!log || !weight || !delay)
		return 0;
	sum = *log + *weight + p;
	exp = bpf_map_lookup_elem(&lean_lat_exp, &sum);
	return exp ? *exp : 0;
}

static __always_inline void latency_3(struct latency *s, struct phv *phv, const struct lean_flow *f,
				      struct lean_counts_t *count)
{
	__u32 *history;

	if (s->role == ROLE_NONE)
		return;
	history = reg_at(lean_lat_hist, (s->then >> LAT_HISTORY_TICK) & (lean_lat_hist_entries - 1));
	if (!history)
		return;
	if (s->role == ROLE_REQUEST)
		reg_store(history, s->inserts);
	else
		s->event.value = latency_value(s->delay, s->inserts - reg_load(history), s->log);
}
