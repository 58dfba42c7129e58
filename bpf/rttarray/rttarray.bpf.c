//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rtt-array: the baselines that the fridge is compared with. Without correction, so they are biased.
 *
 * overwrite  Zheng, Braverman, Chen, Rexford, "Unbiased Delay Measurement in the Data Plane", section 2.1: a request overwrites what is in its slot. Delays that are long against
 *            the time a slot stays unchanged are lost. With several stages a request takes the first free slot and
 *            overwrites in the last stage.
 * expiry     The array of Chen et al. that section 5.1 compares with: a request is written to the first stage whose slot is
 *            empty or contains one that is older than a threshold, else it is not measured.
 * cascade    Section 4.1: a request always enters the first stage, and what it evicts moves on to the next one, one swap
 *            per stage. It can be lost only in the last stage, so only the insertions x survived there are corrected
 *            for, by (1 - 1/M)^-x. Unbiased, and worse than one stage for long delays: all records are stored about
 *            equally long.
 *
 * Matching rules and hashes are the fridge's. A retransmitted request that finds its own record leaves it. A record is
 * {id, time} in one 64-bit word, as there (record.h); the index of a later stage is derived from the id, which is all that an evicted
 * record contains. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "hash.h"
#include "match.h"
#include "record.h"
#include "survival.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum rtt_evict_kind { EVICT_OVERWRITE, EVICT_EXPIRY, EVICT_CASCADE };

enum rtt_counter {
	RTT_REQUESTS = 0, /* packets that ask */
	RTT_REPEATED,     /* ... that found their own record */
	RTT_INSERTED,     /* ... written */
	RTT_REJECTED,     /* ... that found no slot (expiry) */
	RTT_EVICTED,      /* records lost to a newer request */
	RTT_EXPIRED,      /* ... of them because they were old (expiry) */
	RTT_RESPONSES,    /* packets that answer */
	RTT_MATCHED,      /* ... that found their request */
	RTT_TOO_LONG,     /* ... that is older than can be measured */
	RTT_COUNTS
};

const volatile __u32 rtt_evict = EVICT_OVERWRITE;
const volatile __u32 rtt_stages = 1;   /* 1 to 4 */
const volatile __u32 rtt_bits = 16;    /* log2 of the slots of a stage */
const volatile __u32 rtt_expiry = ~0U; /* ticks after which a record may be replaced */
const volatile __u32 rtt_tick = 6;     /* a stored time counts 2^tick ns */
const volatile __u32 rtt_mantissa = 5; /* delay bins an octave: 2^mantissa */

#define DELAY_BITS 32

/* stages 1 to 4: {id, time}: id in the high word; 0 is an empty slot */
REGISTER(rtt_stage1, 1, __u64, 65536);
REGISTER(rtt_stage2, 2, __u64, 1);
REGISTER(rtt_stage3, 3, __u64, 1);
REGISTER(rtt_stage4, 4, __u64, 1);
/* cascade: insertions into the last stage, and their number when a record entered it */
REGISTER(rtt_inserts, 5, __u32, 1);
REGISTER(rtt_survived, 6, __u32, 1);
/* read by userspace only. [delay]; cascade: [survival][delay], cells of survival.h */
TALLY(rtt_hist, 7, __u64, 896);

COUNTERS(rtt_counters, RTT_COUNTS);

const enum rtt_counter *unused_counter __attribute__((unused));
const enum rtt_evict_kind *unused_evict __attribute__((unused));

static __always_inline __u64 ticks(struct phv *phv)
{
	return clock_now(phv) >> rtt_tick;
}

static __always_inline __u32 id_of(__u64 word)
{
	return word >> RECORD_TIME_BITS;
}

/* Slot of a record in a stage after the first. */
static __always_inline __u32 slot_of(__u32 id, int stage)
{
	return hash_mix(id + stage * 0x9e3779b97f4a7c15ULL) & ((1U << rtt_bits) - 1);
}

/* Overwrite and expiry: offers a stage's slot to a request; 0 if it must try further. */
static __always_inline int offer(__u64 *entry, __u64 word, int last, struct rtt_counters_t *count)
{
	__u64 old = reg_load(entry);
	int writable;

	if (rtt_evict == EVICT_EXPIRY)
		writable = old == 0 || ((word - old) & RECORD_TIME_MASK) > rtt_expiry;
	else if (last)
		writable = id_of(old) != id_of(word);
	else
		writable = old == 0;
	if (writable) {
		old = reg_swap(entry, word);
		count->c[RTT_INSERTED]++;
		count->c[RTT_EVICTED] += old != 0;
		count->c[RTT_EXPIRED] += old != 0 && rtt_evict == EVICT_EXPIRY;
		return 1;
	}
	if (id_of(old) != id_of(word))
		return 0;
	count->c[RTT_REPEATED]++;
	return 1;
}

#define OFFER(array, stage, slot)                                                                     \
	do {                                                                                          \
		__u64 *entry = reg_at(array, slot);                                                   \
		if (!entry || offer(entry, word, rtt_stages == stage, count))                         \
			return;                                                                       \
		if (rtt_stages == stage) {                                                            \
			count->c[RTT_REJECTED]++;                                                     \
			return;                                                                       \
		}                                                                                     \
	} while (0)

static __always_inline void insert(__u64 word, __u32 slot, struct rtt_counters_t *count)
{
	__u32 id = id_of(word);

	OFFER(rtt_stage1, 1, slot);
	OFFER(rtt_stage2, 2, slot_of(id, 2));
	OFFER(rtt_stage3, 3, slot_of(id, 3));
	OFFER(rtt_stage4, 4, slot_of(id, 4));
}

/* Cascade: a record has reached the last stage, where insertions are counted. */
static __always_inline void arrive(__u64 word, __u32 slot)
{
	__u32 *inserts = reg_at(rtt_inserts, 0), *survived, x;

	if (!inserts)
		return;
	x = reg_add(inserts, 1) + 1;
	survived = reg_at(rtt_survived, slot);
	if (survived)
		reg_store(survived, x << 8 | (id_of(word) & 0xff));
}

/* Writes `word` to a stage after the first and returns the old one. */
#define PUSH(array, stage)                                                                            \
	do {                                                                                          \
		__u64 *entry;                                                                         \
		if (rtt_stages < stage)                                                               \
			break;                                                                        \
		last = slot_of(id_of(word), stage);                                                   \
		entry = reg_at(array, last);                                                          \
		if (!entry)                                                                           \
			return;                                                                       \
		arrived = word;                                                                       \
		word = reg_swap(entry, word);                                                         \
		if (rtt_stages == stage)                                                              \
			goto last_stage;                                                              \
		if (!word)                                                                            \
			return;                                                                       \
	} while (0)

static __always_inline void cascade(__u64 word, __u32 slot, struct rtt_counters_t *count)
{
	__u64 *entry = reg_at(rtt_stage1, slot), old, arrived = word;
	__u32 last = slot;

	if (!entry)
		return;
	old = reg_load(entry);
	if (id_of(old) == id_of(word)) {
		count->c[RTT_REPEATED]++;
		return;
	}
	word = reg_swap(entry, word);
	count->c[RTT_INSERTED]++;
	if (rtt_stages > 1) {
		if (!word)
			return;
		PUSH(rtt_stage2, 2);
		PUSH(rtt_stage3, 3);
		PUSH(rtt_stage4, 4);
	}
last_stage:
	count->c[RTT_EVICTED] += word != 0;
	arrive(arrived, last);
}

/* Removes a response's record from a stage's slot. */
static __always_inline int take(__u64 *entry, __u32 id, __u64 *record)
{
	__u64 word = reg_load(entry);

	*record = word;
	return id_of(word) == id && reg_cas(entry, word, 0) == word;
}

#define SEARCH(array, stage, index)                                                                   \
	do {                                                                                          \
		__u64 *entry;                                                                         \
		if (rtt_stages < stage)                                                               \
			return 0;                                                                     \
		*slot = index;                                                                        \
		entry = reg_at(array, *slot);                                                         \
		if (!entry)                                                                           \
			return 0;                                                                     \
		if (take(entry, id, record))                                                         \
			return stage;                                                                 \
	} while (0)

/* The stage that a response's request was found in, 0 for none. */
static __always_inline __u32 search(__u32 id, __u32 first, __u32 *slot, __u64 *record)
{
	SEARCH(rtt_stage1, 1, first);
	SEARCH(rtt_stage2, 2, slot_of(id, 2));
	SEARCH(rtt_stage3, 3, slot_of(id, 3));
	SEARCH(rtt_stage4, 4, slot_of(id, 4));
	return 0;
}

/* Cascade: insertions survived in the last stage. */
static __always_inline __u32 survived(__u32 id, __u32 slot)
{
	__u32 *inserts = reg_at(rtt_inserts, 0), *then, word;

	if (!inserts)
		return 0;
	word = reg_load(inserts) << 8 | (id & 0xff);
	then = reg_at(rtt_survived, slot);
	if (!then)
		return 0;
	word -= reg_load(then);
	return (word & 0xff) || word >> 31 ? 0 : word >> 8; /* torn, or from the future: another core's request */
}

static __always_inline void response(struct phv *phv, __u32 id, __u32 first, struct rtt_counters_t *count)
{
	__u32 slot = 0, x = 0, stage, delay, cell;
	__u64 *sum, add, record = 0, age;

	count->c[RTT_RESPONSES]++;
	stage = search(id, first, &slot, &record);
	if (!stage)
		return;
	age = record_age(ticks(phv), record);
	if (record_too_long(age)) {
		count->c[RTT_TOO_LONG]++;
		return;
	}
	count->c[RTT_MATCHED]++;
	delay = bins_index(age, rtt_mantissa);
	if (rtt_evict == EVICT_CASCADE && stage == rtt_stages)
		x = survived(id, slot);
	cell = survival_cell(x, rtt_bits, delay, BINS(DELAY_BITS, rtt_mantissa), &add);
	sum = reg_bank(rtt_hist, phv, cell);
	if (sum)
		*sum += add;
}

ALGORITHM(rttarray)
{
	struct rtt_counters_t *count;
	struct match_hashes h;
	struct question q;
	__u32 id, slot;
	__u64 word;

	classify(&q, phv);
	if (likely(q.role != ROLE_REQUEST && q.role != ROLE_RESPONSE))
		return;
	count = counters_of(rtt_counters, phv);
	if (!count)
		return;
	match_hash(&h, phv, &q, 0);
	id = record_id(h.id);
	slot = h.slot & ((1U << rtt_bits) - 1);
	if (q.role == ROLE_RESPONSE) {
		response(phv, id, slot, count);
		return;
	}
	count->c[RTT_REQUESTS]++;
	word = record_word(id, ticks(phv));
	if (rtt_evict == EVICT_CASCADE)
		cascade(word, slot, count);
	else
		insert(word, slot, count);
}
