/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Latency: total delay between a flow's segments and their acknowledgements (section 4.1).
 *
 * matched  A segment stores its time in a small fridge (Zheng et al., "Unbiased Delay Measurement in the Data Plane"), the
 *          ACK of its last byte removes it, and the finished delay is added to the sketch, weighted by p^-1 (1 - 1/M)^-x:
 *          with that probability a segment like it was evicted in the meantime. A segment without an ACK adds nothing.
 * signed   Algorithm 1 with the signs of the text: a segment adds minus its time, an ACK its time. One segment without an
 *          ACK leaves its whole time in five cells (docs/lean.md has the variance).
 *
 * A record is one word of 32 bits, {signature 12, time 20}: written and read whole, so no core reads half of one. Time
 * counts ticks of 2^13 ns and wraps at 8.6 s; a record is good for half of that, 4.3 s. Sums of ticks are
 * not biased: the position of a segment within a tick is random. A signature of 12 bits matches another segment's record once in
 * 4,096 times that it finds one. A retransmitted segment finds its own record and leaves it:
 * its clock started when the user started to wait.
 *
 * x is not stored: it is the rate of insertions times the delay, and userspace measures the rate anyway to choose p.
 * So the whole correction is one table from the delay to its weighted value, which userspace rewrites when the load
 * changes; a register for the counter and one for each record's x would need four more stages of a switch. A rate that
 * changes within a delay makes that delay's weight wrong, by as much as the rate changed. */
#pragma once

#include "frame.h"
#include "match.h"

#define LAT_TIME 20
#define LAT_TIME_MASK ((1U << LAT_TIME) - 1)
#define LAT_TICK 13
#define LAT_OLD (1U << (LAT_TIME - 1)) /* a record's largest age, in ticks */
#define LAT_EARLY 128                  /* ticks by which another core's record may be younger than the packet: 1 ms */
#define LAT_MANTISSA 5
#define LAT_BINS BINS(LAT_TIME, LAT_MANTISSA)

const volatile _Bool lean_lat_signed = 0;
const volatile _Bool lean_mean_on = 0; /* a second sketch counts the delays, so that a flow's mean is known */

/* stage 1: {signature, time} */
REGISTER(lean_lat_fr, 1, __u32, 2048);

/* The weighted value of a finished delay, by bin of its ticks: what its weight adds to it (nothing, if all segments are sampled and none
 * is evicted: then sums are exact to the tick), and the weight in sixteenths; and the square of the whole in 2^8, which is added to
 * the counters only, for the standard error. */
struct lean_worth {
	__u32 more;
	__u32 stands;
	__u64 square;
};
TABLE(lean_lat_worth, struct lean_worth, LAT_BINS);
TABLE(lean_lat_p, __u32, 1); /* p in 2^-16 */
TABLE(lean_slow, __u32, 1);  /* by rate: ticks from which on a delay is an event */

struct latency {
	struct lean_event event;
	__u8 asked;    /* enum role: what the packet is */
	__u8 role;     /* ... and of those that the coin admits */
	__u32 slot;
	__u32 word;    /* the record's signature */
	__u32 stands;  /* how many delays a finished one represents, in sixteenths */
};

static __always_inline __u32 lat_ticks(struct phv *phv)
{
	return (__u32)(clock_now(phv) >> LAT_TICK);
}

/* Algorithm 1: the whole 32 bits of time; overflows cancel modulo 2^32. */
static __always_inline void latency_signed(struct latency *s, struct phv *phv, const struct question *q)
{
	s->event.value = q->role == ROLE_REQUEST ? -(__s32)lat_ticks(phv) : (__s32)lat_ticks(phv);
	s->event.open = q->role == ROLE_REQUEST;
	s->event.reverse = q->reverse;
}

/* Position of the record; false if the coin skips this segment and its ACK. */
static __always_inline int latency_locate(struct latency *s, const struct phv *phv, struct lean_flow *f,
					  const struct question *q)
{
	struct hash_input in;
	__u32 id, luck, zero = 0;
	__u32 *chance = bpf_map_lookup_elem(&lean_lat_p, &zero);
	__u64 mixed;

	if (!chance)
		return 0;
	if (hash_crc) {
		hash_fields(&in, phv, q->reverse, q->disc);
		id = hash_crc32(&in, 0);
		s->slot = hash_crc32(&in, 1);
	} else {
		mixed = q->reverse ? lean_reverse(phv, f) : f->hash;
		mixed = hash_mix(mixed ^ q->disc * 0x9e3779b97f4a7c15ULL);
		id = mixed;
		s->slot = mixed >> 32;
	}
	luck = id; /* its low 16 bits; the signature has the high 12 */
	id >>= LAT_TIME;
	s->word = (hash_crc ? id | 1 : id + !id) << LAT_TIME; /* never an empty record's; a switch sets a bit for that */
	s->slot &= lean_lat_fr_entries - 1;
	return (luck & 0xffff) < READ_ONCE(*chance);
}

/* A segment: writes its record, unless it is already there. */
static __always_inline void latency_insert(struct latency *s, struct phv *phv, struct lean_counts_t *count)
{
	__u32 now = lat_ticks(phv), old, *entry = reg_at(lean_lat_fr, s->slot);

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
}

/* Is a delay an event? */
static __always_inline void latency_slow(struct latency *s, __u32 delay, struct lean_counts_t *count)
{
	__u32 zero = 0, *least = bpf_map_lookup_elem(&lean_slow, &zero);

	s->word = delay; /* of no more use as a signature */
	s->event.hit = least && delay >= READ_ONCE(*least);
	count->c[LEAN_SLOW] += s->event.hit;
}

/* What a delay adds to the sketches. */
static __always_inline void latency_worth(struct latency *s, __u32 delay, struct lean_counts_t *count)
{
	__u32 bin = bins_index(delay, LAT_MANTISSA);
	struct lean_worth *worth = bpf_map_lookup_elem(&lean_lat_worth, &bin);

	if (!worth)
		return;
	s->event.value = delay + worth->more;
	s->stands = worth->stands;
	count->c[LEAN_SQUARES] += worth->square;
	if (lean_rate_on)
		latency_slow(s, delay, count);
}

/* An ACK: removes its segment's record. */
static __always_inline void latency_take(struct latency *s, struct phv *phv, struct lean_counts_t *count)
{
	__u32 now = lat_ticks(phv), old, delay, *entry = reg_at(lean_lat_fr, s->slot);

	if (!entry)
		return;
	old = reg_load(entry);
	if ((old ^ s->word) >> LAT_TIME)
		return;
	if (hash_crc && ((now - old) & LAT_TIME_MASK) > LAT_OLD) { /* a switch lets it lie: the next segment overwrites it */
		count->c[LEAN_STALE]++;
		return;
	}
	if (reg_cas(entry, old, 0) != old)
		return;
	delay = (now - old) & LAT_TIME_MASK;
	if (delay > LAT_TIME_MASK - LAT_EARLY)
		delay = 0;
	if (delay > LAT_OLD) {
		count->c[LEAN_STALE]++;
		return;
	}
	count->c[LEAN_DELAY] += delay;
	latency_worth(s, delay, count);
}

/* The packet's role for the fridge, before its stage: request, response, or neither. data: a packet that is certainly a request. */
static __always_inline void latency_ask(struct latency *s, struct phv *phv, struct lean_flow *f, const int data)
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
	if (s->asked == ROLE_REQUEST) {
		count->c[LEAN_REQUESTS]++;
		lean_trial(&s->event, phv);
		if (s->role == ROLE_REQUEST)
			latency_insert(s, phv, count);
		else
			count->c[LEAN_UNLUCKY]++;
	} else if (s->asked == ROLE_RESPONSE) {
		count->c[LEAN_RESPONSES]++;
		if (s->role == ROLE_RESPONSE)
			latency_take(s, phv, count);
	}
}

static __always_inline void latency_2(struct latency *s, struct phv *phv, const struct lean_flow *f,
				      struct lean_counts_t *count) {}
static __always_inline void latency_3(struct latency *s, struct phv *phv, const struct lean_flow *f,
				      struct lean_counts_t *count) {}
